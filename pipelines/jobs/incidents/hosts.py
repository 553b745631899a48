"""What runs on the machines of an incident, and is a part of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipelines.jobs.incidents.bursts import Burst, Rules

_DEEP = 20
"""So many machines run on one another at most: a container on a VM on a host of a rack has three below it."""


@dataclass(frozen=True)
class Below:
    """The machines that run on another one, and began when it did.

    Attributes:
        machines: Their names.
        parts: Of those that run on it directly, how many are affected, or have affected ones below them.
        first: When the first of them began then, epoch milliseconds.
        earliest: When the first of them began, up to `Rules.quiet` and `Rules.reopen`, or `Rules.related`, before.
    """

    machines: frozenset[str]
    parts: int
    first: int
    earliest: int


def below_hosts(
    own: Mapping[str, Sequence[Burst]], first: Mapping[str, Burst], runs: Mapping[str, str], rules: Rules
) -> dict[str, Below]:
    """What runs on each machine of an incident, by the bursts of each machine, and the first one of each."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for entity in own:
        for part, above in pairwise([entity, *_above(entity, runs)]):
            if above in first and any(_near(b, first[above], rules.related) for b in own[entity]):
                found[above][entity] = part
    made = {}
    for above, some in found.items():
        begins = [burst for entity in some for burst in own[entity]]
        made[above] = Below(
            frozenset(some),
            len(set(some.values())),
            min(b.began for b in begins if _near(b, first[above], rules.related)),
            min(b.began for b in begins if _near(b, first[above], max(rules.related, rules.quiet + rules.reopen))),
        )
    return made


def _near(one: Burst, other: Burst, within: int) -> bool:
    """Whether a burst has strong evidence, and begins so many milliseconds before or after another one at most."""
    return one.strong and abs(one.onset - other.onset) <= within


def _above(entity: str, runs: Mapping[str, str]) -> list[str]:
    """The machines that a machine runs on, from the next one up; `_DEEP` at most."""
    found = [entity]
    while (on := runs.get(found[-1])) is not None and on not in found and len(found) <= _DEEP:
        found.append(on)
    return found[1:]
