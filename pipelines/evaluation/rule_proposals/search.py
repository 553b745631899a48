"""Looks for the conditions that together hold for the most false alarms and for no true one.

All combinations of a machine glob, a metric glob, times of the week and an effect are tried, but for those that can be
no better than the best so far. The work is bounded by a number of steps and not by a clock, so that the same labels
always give the same proposals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.evaluation.rule_proposals.rows import Cover, positions
from pipelines.evaluation.rule_proposals.traits import LEAST, Trait, Traits

PROPOSALS = 5
STEPS = 3_000_000
"""So many combinations are tried for one proposal at most."""

OTHERS = 4
"""So many alarms without a label that a rule would remove too weigh as much as one false alarm."""

EXCUSE = 8
"""So much a condition costs that the alarms may share by chance: it must spare more than that."""

_RARE = 0.001
"""What holds for all alarms of a combination with a smaller chance than this is something that they have in common."""


@dataclass(frozen=True)
class Common:
    """What some false alarms have in common.

    Attributes:
        machine: Condition on the machine.
        metric: Condition on the metric.
        times: Condition on the time of the week.
        effect: Condition on the direction or size.
        cover: What all of them hold for.
    """

    machine: Trait
    metric: Trait
    times: Trait
    effect: Trait
    cover: Cover

    @property
    def fields(self) -> dict[str, object]:
        """The fields of a rule that removes these alarms."""
        effect = self.effect.fields or {"skip_result": True}
        return {**self.machine.fields, **self.metric.fields, **self.times.fields, **effect}

    def value(self, days: Sequence[int]) -> int:
        """What a rule is worth.

        It is `OTHERS` for each false alarm that it removes, less 1 for each alarm without a label, and less `EXCUSE`
        for each time of the week, direction or size that is no reason.

        Args:
            days: The day of each false alarm.
        """
        apart = self._apart(days)
        excuses = (_looseness(self.times, apart) == _EXCUSED) + (_looseness(self.effect, apart) == _EXCUSED)
        removed, others = self.cover.false.bit_count(), self.cover.others.bit_count()
        return OTHERS * removed - others - EXCUSE * excuses

    def rank(self, days: Sequence[int]) -> tuple[object, ...]:
        """Of two that are worth the same the better has the lower one: fewer others, more in common, narrower.

        Args:
            days: The day of each false alarm.
        """
        apart = self._apart(days)
        loose = (not self.machine.fields) + (not self.metric.fields)
        loose += _looseness(self.times, apart) + _looseness(self.effect, apart)
        orders = (self.metric.order, self.machine.order, self.times.order, self.effect.order)
        return self.cover.others.bit_count(), loose, *orders

    def _apart(self, days: Sequence[int]) -> int:
        """On how many further days the alarms were, after the first one."""
        return len({days[at] for at in positions(self.cover.false)}) - 1


@dataclass(frozen=True)
class Search:
    """What was found.

    Attributes:
        found: The best first; each counts only false alarms that none before it removes.
        complete: False if the number of steps has cut the search short, so that there may be better ones.
    """

    found: Sequence[Common]
    complete: bool


def search(traits: Traits, days: Sequence[int], proposals: int = PROPOSALS, steps: int = STEPS) -> Search:
    """Finds what false alarms have in common that no true alarm has.

    Args:
        traits: The conditions.
        days: The day of each false alarm.
        proposals: So many are found at most.
        steps: So many combinations are tried for each at most.
    """
    wanted, found, complete = (1 << len(days)) - 1, list[Common](), True
    while len(found) < proposals and wanted.bit_count() >= LEAST:
        best, whole = _best(traits, wanted, days, steps)
        complete = complete and whole
        if best is None:
            break
        found.append(best)
        wanted &= ~best.cover.false
    return Search(found, complete)


def _best(traits: Traits, wanted: int, days: Sequence[int], steps: int) -> tuple[Common | None, bool]:
    """The best combination for some of the false alarms, and whether all were tried."""
    best, left = _Best(days), steps
    for machine in traits.machines:
        first = Cover(machine.cover.false & wanted, machine.cover.true, machine.cover.others)
        for metric, second in _narrowed(first, traits.metrics, best):
            if not machine.fields and not metric.fields:
                continue
            for times, third in _narrowed(second, traits.times, best):
                left -= len(traits.effects)
                for effect, cover in _narrowed(third, traits.effects, best):
                    if not cover.true:
                        best.take(Common(machine, metric, times, effect, cover))
            left -= len(traits.times)
            if left < 0:
                return best.common, False
    return best.common, True


class _Best:
    def __init__(self, days: Sequence[int]) -> None:
        self._days, self._value, self._rank = days, 0, tuple[object, ...]()
        self.common: Common | None = None
        self.least = LEAST  # a combination of fewer false alarms is worth less

    def take(self, common: Common) -> None:
        value = common.value(self._days)
        if value <= 0 or value < self._value:
            return
        rank = common.rank(self._days)
        if value > self._value or rank < self._rank:
            self.common, self._value, self._rank = common, value, rank
            self.least = max(LEAST, -(-value // OTHERS))


def _narrowed(cover: Cover, traits: Sequence[Trait], best: _Best) -> Iterator[tuple[Trait, Cover]]:
    """What is left with each of some conditions, where that may still be as good as the best so far."""
    for trait in traits:
        if (cover.false & trait.cover.false).bit_count() >= best.least:
            yield trait, cover & trait.cover


def _looseness(trait: Trait, apart: int) -> int:
    """0: the alarms, on so many further days, hardly have this by chance; 1: no condition; 2: one that is no reason."""
    if not trait.fields:
        return 1
    return 0 if trait.common and trait.chance**apart < _RARE else _EXCUSED


_EXCUSED = 2
