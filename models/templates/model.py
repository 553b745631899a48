"""Log templates (or severities) per window: unseen, more or fewer than usual, another mix; vectorised, sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows, prefixed
from models.evidence.combine import combine, score
from models.evidence.point import compress, nats_calibration
from models.families.gamma_poisson import GammaPoisson
from models.templates.config import TemplateConfig
from models.templates.mix import Mix, dispersion

_HALF = 8.0
_COUNTED = ("events", "exposure", "windows", "excess")


@dataclass(frozen=True)
class TemplateVerdicts:
    """What a window's log lines say.

    Args:
        record_score: Novelty of each entity's window, 0 to 100, shape (m,).
        probability: Chance of evidence at least so strong, shape (m,).
        evidence: Channels in nats, each of shape (m,): ``unseen``, ``mix``, ``burst``, ``silence``.
        typical: Lines expected of each (entity, template), shape (r,).
        burst: Evidence that a template came more often than usual, shape (r,).
        silence: Evidence that it came less often, shape (r,).
        unseen: Whether the template came for the first time, shape (r,).
    """

    record_score: Array
    probability: Array
    evidence: dict[str, Array]
    typical: Array
    burst: Array
    silence: Array
    unseen: Flags


@dataclass(frozen=True)
class _Judgement:
    verdicts: TemplateVerdicts
    known: GammaPoisson
    strangers: GammaPoisson
    mix: Mix
    memo: Any


class Templates:
    """Judges the counts of one window of any number of entities, then learns from them.

    There are two tables: one row an entity, and one row a pair of entity and template that has ever come (a sparse
    matrix). A row that is new in a window is appended by the caller, with `new_rows`, before the window is judged.
    A window is handed over with *all* rows of its entities, count 0 for those that did not come.

    Args:
        config: The constants.

    >>> model = Templates(TemplateConfig())
    >>> entities, pairs = model.new_state(1), model.new_rows(2)
    >>> one, owner, rng = np.array([0]), np.zeros(2, np.int64), np.random.default_rng(0)
    >>> for _ in range(200):
    ...     verdict = model.step(entities, one, pairs, np.arange(2), owner, rng.poisson([20.0, 0.5]).astype(float))
    >>> pairs = {name: np.concatenate([column, model.new_rows(1)[name]]) for name, column in pairs.items()}
    >>> verdict = model.step(entities, one, pairs, np.arange(3), np.zeros(3, np.int64), np.array([19.0, 0.0, 1.0]))
    >>> verdict.unseen, {name: float(nats[0].round(1)) for name, nats in verdict.evidence.items()}
    (array([False, False,  True]), {'unseen': 4.4, 'mix': 0.9, 'burst': 0.0, 'silence': 0.1})
    """

    def __init__(self, config: TemplateConfig) -> None:
        self.config = config
        self.calibration = nats_calibration(config.calibration_forget)

    def new_state(self, n: int) -> Columns:
        """The columns for n entities of which nothing is known."""
        columns: Columns = {"windows": np.zeros(n), "odd": np.zeros(n)}
        columns |= {f"strangers.{name}": np.zeros(n) for name in _COUNTED}
        return columns | prefixed("mix.", self.calibration.new_state(n))

    def new_rows(self, r: int) -> Columns:
        """The columns for r pairs of entity and template that come for the first time."""
        return {name: np.zeros(r) for name in _COUNTED} | {"born": np.full(r, -1.0)}

    def faint(self, pairs: Columns) -> Flags:
        """Which pairs may be dropped: so long gone that they are as good as unseen."""
        all_of_them = Rows(pairs, np.arange(len(pairs["born"])), "")
        gone: Flags = (all_of_them["born"] >= 0) & (all_of_them["events"] < self.config.faint)
        return gone

    def score(
        self, entities: Columns, rows: Ints, pairs: Columns, pair_rows: Ints, owner: Ints, count: Array
    ) -> TemplateVerdicts:
        """Verdicts on one window each of some entities; pure.

        Args:
            entities: As from `new_state`.
            rows: Distinct rows of it, shape (m,).
            pairs: As from `new_rows`.
            pair_rows: All rows of the pairs of those entities, in the same order each time, shape (r,).
            owner: Place in ``rows`` of the entity of each pair, shape (r,).
            count: Lines in this window, at least 0, shape (r,).
        """
        return self._judge(entities, rows, pairs, pair_rows, owner, count).verdicts

    def step(
        self, entities: Columns, rows: Ints, pairs: Columns, pair_rows: Ints, owner: Ints, count: Array
    ) -> TemplateVerdicts:
        """`score`, then learning from the same window. Arguments as of `score`."""
        judged = self._judge(entities, rows, pairs, pair_rows, owner, count)
        self._learn(entities, rows, pairs, pair_rows, owner, count, judged)
        return judged.verdicts

    def _judge(
        self, entities: Columns, rows: Ints, pairs: Columns, pair_rows: Ints, owner: Ints, count: Array
    ) -> _Judgement:
        own, pair, m = Rows(entities, rows, ""), Rows(pairs, pair_rows, ""), len(rows)
        known = GammaPoisson(*(pair[name] for name in _COUNTED))
        unseen: Flags = (pair["born"] < 0) & (count > 0)
        seen: Flags = pair["born"] >= 0
        windows = own["windows"]

        ahead = known.predictive(np.ones(len(count)))
        fewer, more = ahead.log_tails(count)
        burst, silence = np.where(seen, -more, 0.0), np.where(seen, -fewer, 0.0)
        tests = np.log(np.maximum(np.bincount(owner, seen, m), 1.0))

        strangers = GammaPoisson(*(own[f"strangers.{name}"] for name in _COUNTED))
        arrivals = np.bincount(owner, unseen, m).astype(np.float64)
        news = -strangers.predictive(np.ones(m)).log_tails(arrivals)[1]

        mix = Mix.of(owner, m, count, np.where(seen, known.events + 0.5, 0.0), seen)
        surprise = mix.surprise(dispersion(own["odd"], windows))
        odd, memo = self.calibration.evidence(Rows(entities, rows, "mix."), compress(surprise))

        trust = np.minimum(windows / self.config.warm_up, 1.0)
        evidence = {
            "unseen": np.where(arrivals > 0, news, 0.0) * trust,
            "mix": odd * trust,
            "burst": np.maximum(_strongest(owner, m, burst) - tests, 0.0) * trust,
            "silence": np.maximum(_strongest(owner, m, silence) - tests, 0.0) * trust,
        }
        joined = combine(list(evidence.values()))
        verdicts = TemplateVerdicts(
            score(joined, _HALF), np.exp(-joined), evidence, np.where(seen, ahead.expected, 0.0), burst, silence, unseen
        )
        return _Judgement(verdicts, known, strangers, mix, memo)

    def _learn(
        self,
        entities: Columns,
        rows: Ints,
        pairs: Columns,
        pair_rows: Ints,
        owner: Ints,
        count: Array,
        judged: _Judgement,
    ) -> None:
        own, pair, m = Rows(entities, rows, ""), Rows(pairs, pair_rows, ""), len(rows)
        forget, windows, born = self.config.forget, own["windows"], pair["born"]
        comes = (count > 0) | (born >= 0)
        typical = judged.verdicts.typical
        bounded = np.where(born >= 0, np.minimum(count, self.config.clip * (1 + typical)), count)
        after = judged.known.learn(bounded, np.ones(len(count)), comes.astype(np.float64), forget)
        arrivals = np.bincount(owner, judged.verdicts.unseen, m).astype(np.float64)
        strangers = judged.strangers.learn(arrivals, np.ones(m), 1.0, forget)
        for name in _COUNTED:
            pair[name] = getattr(after, name)
            own[f"strangers.{name}"] = getattr(strangers, name)
        pair["born"] = np.where((born < 0) & (count > 0), windows[owner], born)
        some = judged.mix.freedom > 0.01
        ratio = judged.mix.deviance / np.where(some, judged.mix.freedom, 1.0)
        usual = dispersion(own["odd"], windows)
        own["odd"] = own["odd"] * (1 - forget) + np.where(some, np.minimum(ratio, 20 * usual), usual)
        warm = some & (windows >= self.config.warm_up)
        self.calibration.learn(Rows(entities, rows, "mix."), judged.memo, warm)
        own["windows"] = windows * (1 - forget) + 1


def _strongest(owner: Ints, m: int, evidence: Array) -> Array:
    best = np.zeros(m)
    np.maximum.at(best, owner, evidence)
    return best
