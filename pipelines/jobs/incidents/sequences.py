"""The bursts of one machine, one after the other: which of them are the same incident."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pipelines.jobs.incidents.bursts import Burst, Rules
from pipelines.jobs.incidents.groups import Groups
from pipelines.jobs.incidents.likeness import alike


class _Sequence:
    """Bursts of one machine that are linked.

    Attributes:
        onset: When the first of them began, epoch milliseconds.
        over: When the last of them ended; ``None`` while one lasts.
        shows: What each of them shows.
        times: How often it came: each that begins after all before it are over is one time more.
    """

    def __init__(self, burst: Burst) -> None:
        self.onset, self.over, self.shows, self.times = burst.onset, burst.end, {burst.shows}, 1

    def takes(self, burst: Burst, rules: Rules) -> bool:
        """Whether a later burst belongs to it, though it shows something else: only soon after it began.

        The silence of a machine does so only within `Rules.together`; later it is news of its own.
        """
        within = rules.together if burst.silent else rules.quiet + rules.reopen
        return burst.onset <= self.onset + within

    def add(self, burst: Burst) -> None:
        self.times += self.over is not None and burst.onset > self.over
        self.over = None if self.over is None or burst.end is None else max(self.over, burst.end)
        self.shows.add(burst.shows)


def by_machine(
    bursts: Sequence[Burst], of: Mapping[str, list[int]], groups: Groups, effects: Collection[int], rules: Rules
) -> set[int]:
    """Links a burst to one before it of the same machine that has not been over for `Rules.quiet` and `Rules.reopen`.

    What has come and gone twice is expected to come again: it is held for twice as long, three times for three times
    as long, and so on up to `Rules.patience`.

    It must show the same as that, or begin so soon after the first of the bursts that were linked that it is still a
    part of the same thing. So what goes on for hours does not take in all else that begins on its machine. What begins
    later than `Rules.longest` after the first begins anew: nothing depends on what was before, which may be forgotten.

    Args:
        bursts: The bursts, in the order of their onsets.
        of: The bursts of each machine with strong evidence, in the same order.
        groups: The groups of bursts until now; changed.
        effects: Bursts that show what another machine does; they begin anew.
        rules: The settings.

    Returns:
        The bursts that show again, and later than `Rules.quiet` and `Rules.reopen` after the first, what is known.
    """
    again = set()
    for own in of.values():
        sequences: list[tuple[int, _Sequence]] = []
        for i in own:
            burst = bursts[i]
            sequences = [entry for entry in sequences if _holds(entry[1], burst, rules)]
            open_ones = [] if i in effects else sequences
            same = [entry for entry in open_ones if any(alike(burst.shows, other) for other in entry[1].shows)]
            fit = same or [entry for entry in open_ones if entry[1].takes(burst, rules)]
            if fit:
                first, sequence = fit[-1]
                sequence.add(burst)
                groups.unite(first, i)
                if burst.onset > sequence.onset + rules.quiet + rules.reopen:
                    again.add(i)
            else:
                sequences.append((i, _Sequence(burst)))
    return again


def _holds(sequence: _Sequence, burst: Burst, rules: Rules) -> bool:
    if burst.onset > sequence.onset + rules.longest:
        return False
    patience = rules.patience(sequence.times)
    return sequence.over is None or burst.onset <= sequence.over + patience * (rules.quiet + rules.reopen)
