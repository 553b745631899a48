"""Log templates per window: what is usual does not alarm; the unseen, the burst, the silence and another mix do."""

import numpy as np

from models.arrays import Columns
from models.templates.config import TemplateConfig
from models.templates.mix import Mix
from models.templates.model import Templates, TemplateVerdicts

RATES = np.array([40.0, 15.0, 5.0, 1.0, 0.1, 0.02])


class _Site:
    """n entities with the same templates, window by window."""

    def __init__(self, n: int, templates: int, seed: int = 0) -> None:
        self.model, self.n, self.templates = Templates(TemplateConfig()), n, templates
        self.entities, self.pairs = self.model.new_state(n), self.model.new_rows(n * templates)
        self.owner = np.repeat(np.arange(n), templates)
        self.rng = np.random.default_rng(seed)

    def step(self, counts: np.ndarray) -> TemplateVerdicts:
        flat = counts.astype(float).reshape(-1)
        return self.model.step(self.entities, np.arange(self.n), self.pairs, np.arange(len(flat)), self.owner, flat)

    def usual(self, rates: np.ndarray = RATES) -> np.ndarray:
        return self.rng.poisson(rates, (self.n, self.templates))

    def settle(self, windows: int) -> None:
        for _ in range(windows):
            self.step(self.usual())


def _scored(change: np.ndarray) -> TemplateVerdicts:
    site = _Site(50, len(RATES))
    site.settle(400)
    return site.step(change)


def test_usual_windows_do_not_alarm() -> None:
    site = _Site(200, len(RATES))
    site.settle(300)
    loud = [(site.step(site.usual()).record_score >= 50).mean() for _ in range(200)]
    assert np.mean(loud) < 1e-3


def test_an_unseen_template_is_novel_with_a_single_line() -> None:
    site = _Site(50, len(RATES) + 1)
    for _ in range(400):
        site.step(np.column_stack([site.rng.poisson(RATES, (50, 6)), np.zeros(50)]))
    verdict = site.step(np.column_stack([site.rng.poisson(RATES, (50, 6)), np.ones(50)]))
    assert (verdict.evidence["unseen"] > 4).all()
    np.testing.assert_array_equal(verdict.unseen.reshape(50, 7)[:, -1], True)
    again = site.step(np.column_stack([site.rng.poisson(RATES, (50, 6)), np.ones(50)]))
    assert not again.unseen.any()


def test_a_burst_a_silence_and_another_mix_are_each_told_as_such() -> None:
    quiet = np.round(RATES)
    burst, silence, mixed = (np.tile(quiet, (50, 1)) for _ in range(3))
    burst[:, 3] = 30
    silence[:, 0] = 0
    mixed[:, :3] = [14, 40, 6]
    assert (_scored(burst).evidence["burst"] > 15).all()
    verdict = _scored(silence)
    assert (verdict.evidence["silence"] > 15).all()
    assert (verdict.silence.reshape(50, -1).argmax(axis=1) == 0).all()
    assert np.median(_scored(mixed).evidence["mix"]) > 6


def test_bursty_templates_widen_what_is_expected_of_them() -> None:
    site = _Site(200, 3)
    alarms = []
    for window in range(600):
        verdict = site.step(site.rng.poisson(np.array([50.0, 10.0, 1.0]) * site.rng.gamma(2, 0.5, (200, 3))))
        if window >= 300:
            alarms.append((verdict.record_score >= 50).mean())
    assert np.mean(alarms) < 2e-3


def test_surprise_at_the_mix_of_a_stationary_source_is_calibrated() -> None:
    site, nats = _Site(600, len(RATES)), []
    for window in range(1400):
        verdict = site.step(site.usual())
        if window >= 800:
            nats.append(verdict.evidence["mix"])
    for p in (1e-2, 1e-3, 1e-4):
        share = (np.exp(-np.array(nats)) < p).mean() / p
        least = 1 / 1.5 if p > 1e-4 else 1 / 2  # 0.69 at 1e-4 over 3.6 million windows; here 36 are expected
        assert least < share < 1.5, (p, share)


def test_the_deviance_of_independent_lines_is_about_its_expectation() -> None:
    rng, m, shares = np.random.default_rng(0), 5000, np.array([0.6, 0.3, 0.1])
    count = rng.multinomial(200, shares, m).astype(float)
    mix = Mix.of(np.repeat(np.arange(m), 3), m, count.reshape(-1), np.tile(shares * 1e6, m), np.ones(3 * m, bool))
    assert abs(mix.deviance.mean() - 2) < 0.1
    np.testing.assert_allclose(mix.freedom, 2, atol=0.02)


def test_an_entity_is_judged_the_same_whichever_others_are_in_the_call() -> None:
    together, alone = _Site(3, len(RATES)), _Site(1, len(RATES))
    rng = np.random.default_rng(5)
    for _ in range(60):
        counts = rng.poisson(RATES, (3, len(RATES)))
        one, own = together.step(counts), alone.step(counts[1:2])
        np.testing.assert_array_equal(one.record_score[1:2], own.record_score)
    for name, column in alone.entities.items():
        np.testing.assert_array_equal(together.entities[name][1:2], column)


def test_scoring_changes_nothing_and_faded_pairs_may_be_dropped() -> None:
    site = _Site(4, 3)
    for _ in range(20):
        site.step(site.rng.poisson([5.0, 1.0, 0.3], (4, 3)))
    before: list[Columns] = [{k: v.copy() for k, v in state.items()} for state in (site.entities, site.pairs)]
    site.model.score(site.entities, np.arange(4), site.pairs, np.arange(12), site.owner, np.full(12, 9.0))
    for state, copy in zip((site.entities, site.pairs), before, strict=True):
        for name, column in state.items():
            np.testing.assert_array_equal(column, copy[name])
    site.pairs["events"][5] = 1e-6
    assert site.model.faint(site.pairs).nonzero()[0].tolist() == [5] or (site.pairs["born"] < 0).any()
