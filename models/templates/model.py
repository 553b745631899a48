"""Log templates (or severities) per window: unseen, more or fewer than usual, another mix; vectorised, sparse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.evidence.point import compress, nats_calibration
from models.evidence.score import combine, score
from models.families.gamma_poisson import GammaPoisson
from models.families.negative_binomial import NegativeBinomial
from models.numbers.arrays import Array, Flags, Ints, Rows, clamp
from models.templates.config import TemplateConfig
from models.templates.mix import Mix, dispersion
from models.templates.newcomers import PREFIX, Newcomers
from models.templates.tables import (
    LogWindow,
    TemplateTables,
    new_entities,
    new_fleets,
    new_pairs,
    new_templates,
    read,
    write,
)

CHANNELS = ("unseen", "mix", "burst", "silence")
"""Evidence channels of a window."""


@dataclass(frozen=True)
class TemplateVerdicts:
    """What a window's log lines say.

    Args:
        record_score: Novelty of each entity's window, 0 to 100, shape (m,).
        probability: Chance of evidence at least so strong, shape (m,).
        evidence: `CHANNELS` in nats, each of shape (m,).
        lines: Lines of each entity, shape (m,).
        expected: What was expected of their number.
        usual: What is unusual of it but for new templates, in nats, shape (m,).
        persists: Whether the unusual has persisted: 0 no, 1 surely, shape (m,).
        typical: Lines expected of each (entity, template), shape (r,).
        gain: Evidence of each pair, in nats, shape (r,).
        unseen: Whether the template came for the first time on this entity, shape (r,).
        again: Evidence of templates that are `Newcomers` and come again, in nats; 0 of all others; shape (r,). It is in
            none of the numbers above.
    """

    record_score: Array
    probability: Array
    evidence: dict[str, Array]
    lines: Array
    expected: NegativeBinomial
    usual: Array
    persists: Array
    typical: Array
    gain: Array
    unseen: Flags
    again: Array


@dataclass(frozen=True)
class _Judgement:
    verdicts: TemplateVerdicts
    rates: GammaPoisson
    local: GammaPoisson
    fleet: GammaPoisson
    lines: GammaPoisson
    new: Flags
    arrived: Array
    elsewhere: Array
    mix: Mix
    memo: Any
    unrest: Array
    quiet: Array


class Templates:
    """Judges the counts of one window of any number of entities, then learns from them.

    A template that no entity of the fleet has had before is judged by how often such a thing happens in the fleet; one
    that only this entity has not had, by how often that happens to it.

    Args:
        config: The constants.

    >>> model, rng = Templates(TemplateConfig()), np.random.default_rng(0)
    >>> tables = model.new_tables(entities=1, templates=3, pairs=3)
    >>> one, three, owner = np.array([0]), np.arange(3), np.zeros(3, np.int64)
    >>> for _ in range(400):
    ...     count = np.array([*rng.poisson([20.0, 0.5]), 0.0])
    ...     verdict = model.step(tables, LogWindow(one, one, three, owner, three, count))
    >>> verdict = model.step(tables, LogWindow(one, one, three, owner, three, np.array([19.0, 0.0, 1.0])))
    >>> verdict.unseen, {name: float(nats[0].round(1)) for name, nats in verdict.evidence.items()}
    (array([False, False,  True]), {'unseen': 5.6, 'mix': 0.8, 'burst': 0.0, 'silence': 0.1})
    """

    def __init__(self, config: TemplateConfig) -> None:
        self.config, self.newcomers = config, Newcomers(config)
        self.calibration = nats_calibration(config.calibration_forget)

    def new_tables(self, entities: int = 0, templates: int = 0, pairs: int = 0, fleets: int = 1) -> TemplateTables:
        """Tables of which nothing is known, with so many rows."""
        own = new_entities(entities, self.calibration)
        return TemplateTables(new_fleets(fleets), own, new_templates(templates), new_pairs(pairs))

    def faint(self, tables: TemplateTables) -> Flags:
        """Which pairs may be dropped: so long gone that they are as good as unseen."""
        pairs = Rows(tables.pairs, np.arange(len(tables.pairs["born"])), "")
        gone: Flags = (pairs["born"] >= 0) & (pairs["events"] < self.config.faint)
        return gone

    def score(self, tables: TemplateTables, window: LogWindow) -> TemplateVerdicts:
        """Verdicts on one window each of some entities; pure."""
        return self._judge(tables, window).verdicts

    def step(self, tables: TemplateTables, window: LogWindow) -> TemplateVerdicts:
        """`score`, then learning from the same window."""
        judgement = self._judge(tables, window)
        self._learn(tables, window, judgement)
        return judgement.verdicts

    def accept(self, tables: TemplateTables, rows: Ints, pairs: Ints, owner: Ints, named: Flags) -> None:
        """Takes the present rates of some entities' templates for typical; changes those rows of the tables.

        Where all of an entity are named they count as few windows from then on. One that is named alone counts as much
        as the others, which stay as they were: else their shares could not be compared. The present rate of an entity
        that is absent is 0.

        Args:
            tables: The tables.
            rows: Distinct rows of the entities, shape (m,).
            pairs: Rows of all their pairs, shape (r,).
            owner: Place in ``rows`` of the entity of each pair, shape (r,).
            named: Whether the pair takes its present rate, shape (r,).
        """
        config, own, pair = self.config, Rows(tables.entities, rows, ""), Rows(tables.pairs, pairs, "")
        rates, all_named = read(pair), np.bincount(owner, ~named, len(rows)) == 0
        windows = np.where(all_named, np.minimum(own["windows"], config.few), own["windows"])
        present = np.where(own["quiet"][owner] >= config.lost, 0.0, pair["recent"])
        moved = named & (pair["born"] >= 0)
        rate = np.where(moved, present, rates.events / np.maximum(rates.exposure, 1e-12))
        events = np.maximum(rate * windows[owner], np.minimum(rates.events, config.trace))
        here = Rows(tables.pairs, pairs[moved], "")
        write(here, _worth(read(here), events[moved], windows[owner[moved]]))
        lines = np.bincount(owner, rate, len(rows)).astype(np.float64) * windows
        write(own, _worth(read(own, "lines."), lines, windows), "lines.")
        own["unrest"], own["quiet"] = np.zeros(len(rows)), np.zeros(len(rows))

    def _judge(self, tables: TemplateTables, window: LogWindow) -> _Judgement:
        config, m = self.config, len(window.rows)
        own, pair = Rows(tables.entities, window.rows, ""), Rows(tables.pairs, window.pairs, "")
        fleets = Rows(tables.fleets, window.fleet, "")
        rates, count, windows = read(pair), window.count, own["windows"]
        seen: Flags = pair["born"] >= 0
        unseen: Flags = ~seen & (count > 0)
        new: Flags = unseen & (Rows(tables.templates, window.template, "")["born"] < 0)

        ahead = rates.predictive(np.ones(len(count)))
        fewer, more = ahead.log_tails(count)
        tests = np.log(np.maximum(window.total(seen), 1.0))
        burst, silence = np.where(seen, -more, 0.0), np.where(seen, -fewer, 0.0)
        excess = np.maximum(burst - tests[window.owner], 0.0)
        dearth = np.maximum(silence - tests[window.owner], 0.0)

        local, fleet = read(own, "strangers."), read(fleets, "strangers.")
        elsewhere, nowhere = window.total(unseen & ~new), np.minimum(window.total(new), 1.0)
        moved = _arrival(local, elsewhere)
        strange = _arrival(fleet, nowhere) * np.minimum(fleets["windows"] / config.warm_up, 1.0)

        of_fleet = Rows(tables.fleets, window.fleet[window.owner], PREFIX)
        age = windows[window.owner] - pair["born"]
        newcomers = Rows(tables.pairs, window.pairs, PREFIX)
        again = self.newcomers.nats(newcomers, of_fleet, age, count, window.owner, window.errors)

        mix = Mix.of(window.owner, m, count, np.where(seen, rates.events + 0.5, 0.0), seen)
        surprise = mix.surprise(dispersion(own["odd"], windows))
        odd, memo = self.calibration.evidence(Rows(tables.entities, window.rows, "mix."), compress(surprise))

        lines, expectation = window.total(count), read(own, "lines.")
        expected = expectation.predictive(np.ones(m))
        none = lines == 0
        quiet = np.where(none, own["quiet"] - np.where(windows > 0, expected.log_tails(lines)[0], 0.0), 0.0)

        trust = np.minimum(windows / config.warm_up, 1.0)
        with_lines = trust * ~none
        evidence = {
            "unseen": np.maximum(moved, strange) * trust,
            "mix": odd * with_lines,
            "burst": window.strongest(excess) * with_lines,
            "silence": np.where(none, quiet * trust, window.strongest(dearth) * with_lines),
        }
        usual = combine([evidence["mix"], evidence["burst"], np.where(none, 0.0, evidence["silence"])])
        unrest = own["unrest"] + config.unrest_pace * (np.minimum(usual, config.unrest_clip) - own["unrest"])
        joined = combine(list(evidence.values()))
        weight = np.maximum(joined, np.where(nowhere > 0, config.weight_unseen * strange * trust, 0.0))
        weight = np.where(none & (quiet < config.lost), 0.0, weight)
        gain = np.where(unseen, evidence["unseen"][window.owner], np.maximum(np.maximum(excess, dearth), again))
        verdicts = TemplateVerdicts(
            score(weight, config.half),
            np.exp(-joined),
            evidence,
            lines,
            expected,
            usual,
            clamp(unrest / config.unrest_clip * 5 - 2.5, 0.0, 1.0),
            np.where(seen, ahead.expected, 0.0),
            np.maximum(gain, 0.5 * np.maximum(mix.gain, 0.0) * seen) * trust[window.owner],
            unseen,
            again,
        )
        news = np.where(config.weight_unseen * strange * trust >= config.half, strange, 0.0)
        arrived = np.where(new, news[window.owner], again)
        return _Judgement(verdicts, rates, local, fleet, expectation, new, arrived, elsewhere, mix, memo, unrest, quiet)

    def _learn(self, tables: TemplateTables, window: LogWindow, judgement: _Judgement) -> None:
        config, count = self.config, window.count
        own, pair = Rows(tables.entities, window.rows, ""), Rows(tables.pairs, window.pairs, "")
        windows, born, verdicts = own["windows"], pair["born"], judgement.verdicts
        usual = np.maximum(verdicts.evidence["mix"], verdicts.evidence["burst"])
        usual = np.maximum(usual, verdicts.evidence["silence"])
        doubt = np.minimum(1.0, config.doubt / np.maximum(usual, config.doubt))
        weight = doubt + (1 - doubt) * verdicts.persists
        forget = config.forget + config.hurry * verdicts.persists

        comes = (count > 0) | (born >= 0)
        most = config.clip * (1 + verdicts.typical)
        bounded = np.where((born >= 0) & (verdicts.persists[window.owner] == 0), np.minimum(count, most), count)
        by_pair = np.where(comes, weight[window.owner], 0.0)
        write(pair, _learned(judgement.rates, bounded, by_pair, forget[window.owner], config.forget))
        write(own, _learned(judgement.lines, verdicts.lines, weight, forget, config.forget), "lines.")
        self.newcomers.learn(
            Rows(tables.pairs, window.pairs, PREFIX),
            tables.fleets,
            window.fleet[window.owner],
            windows[window.owner] - born,
            verdicts.again,
            judgement.arrived,
            verdicts.persists[window.owner] >= 1,
        )
        pair["born"] = np.where((born < 0) & (count > 0), windows[window.owner], born)
        pair["recent"] = pair["recent"] + np.where(born < 0, 1.0, config.present) * (count - pair["recent"])

        one, early = np.ones(len(window.rows)), np.maximum(config.forget, config.early / (10 + windows))
        write(own, judgement.local.learn(judgement.elsewhere, one, 1.0, early), "strangers.")
        self._learn_fleets(tables, window, judgement.new)

        mixed = judgement.mix.freedom > 0.01
        ratio = judgement.mix.deviance / np.where(mixed, judgement.mix.freedom, 1.0)
        spread = dispersion(own["odd"], windows)
        odd = np.where(mixed, np.minimum(ratio, 20 * spread), spread)
        own["odd"] = own["odd"] * (1 - config.forget) + np.where(verdicts.persists > 0, spread, odd)
        warm = mixed & (windows >= config.warm_up) & (verdicts.lines > 0)
        self.calibration.learn(Rows(tables.entities, window.rows, "mix."), judgement.memo, warm)
        own["unrest"], own["quiet"] = judgement.unrest, judgement.quiet
        own["windows"] = windows * (1 - config.forget) + 1

    def _learn_fleets(self, tables: TemplateTables, window: LogWindow, new: Flags) -> None:
        """How many templates that none of its entities had before each fleet met, in so many windows of entities."""
        fleets, first = np.unique(window.fleet), np.unique(window.template[new])
        of_template = np.zeros(len(tables.templates["born"]), np.int64)
        of_template[window.template] = window.fleet[window.owner]
        size = len(tables.fleets["windows"])
        arrivals = np.bincount(of_template[first], minlength=size)[fleets].astype(np.float64)
        members = np.bincount(window.fleet, minlength=size)[fleets].astype(np.float64)
        own = Rows(tables.fleets, fleets, "")
        windows = own["windows"]
        early = np.maximum(self.config.forget, self.config.early / (10 + windows))
        write(own, read(own, "strangers.").learn(arrivals, members, 1.0, early), "strangers.")
        own["windows"] = windows * (1 - self.config.forget) + 1
        Rows(tables.templates, first, "")["born"] = np.zeros(len(first))


def _arrival(strangers: GammaPoisson, arrivals: Array) -> Array:
    """-ln of the chance that so many new templates come to one entity in one window; 0 where none came."""
    ahead = strangers.predictive(np.ones(len(arrivals)))
    nats: Array = np.where(arrivals > 0, -ahead.log_tails(arrivals)[1], 0.0)
    return nats


def _worth(rates: GammaPoisson, events: Array, windows: Array) -> GammaPoisson:
    """Another rate, known from so many windows; what is known of the dispersion is worth no more than they are."""
    left = np.minimum(windows / np.maximum(rates.windows, 1e-12), 1.0)
    return GammaPoisson(events, windows, rates.windows * left, rates.excess * left)


def _learned(rates: GammaPoisson, count: Array, weight: Array, forget: Array, usual: float) -> GammaPoisson:
    """The statistics after a window; in haste, errors are those of the old level and say nothing of the spread."""
    after = rates.learn(count, np.ones(len(count)), weight, forget)
    same = rates.excess * (1 - forget) + weight * rates.dispersion()
    return replace(after, excess=np.where(forget > usual, same, after.excess))
