"""Where an incident may have begun: each machine's share, by its onset, its place in the topology and its evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

from pipelines.contracts.explanations.quantities import duration
from pipelines.contracts.records.incident import Candidate
from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.incidents.bursts import Burst, Rules
from pipelines.jobs.incidents.episode import LOGS, Episode

MOST = 5
"""The most candidates of an incident."""

TWO = 2
"""So many machines that depend on another and begin at one time come from it; a single one is rather the cause."""

_EFFECT = 1 / 3
"""What the evidence of a machine counts that shows what a machine does that depends on it."""


@dataclass(frozen=True)
class _Below:
    """The machines that depend on another one, and began when it did.

    Attributes:
        machines: Their names.
        parts: Of those that depend on it directly, how many are affected, or have affected ones below them.
        first: When the first of them began then, epoch milliseconds.
        earliest: When the first of them began, up to `Rules.quiet` and `Rules.reopen` before.
    """

    machines: frozenset[str]
    parts: int
    first: int
    earliest: int


def candidates(group: Sequence[Burst], above: Mapping[str, Sequence[str]], rules: Rules) -> list[Candidate]:
    """The machines at which an incident may have begun, the most likely first.

    A machine's weight is the product of three numbers: how early its novelties began (1 for the first machine, less by
    the factor e for each `Rules.together` after it), its highest score (as a share of 100), and its place. The place
    counts 1, but for machines on which others depend that began within `Rules.related`. It is 1 more than twice the
    number of these if two or more depend on it in different ways, if it began clearly first, by half of
    `Rules.together`, or if it has sent nothing, as no VM silences its host. Otherwise it is a third, as a host shows
    what its VM does. A share is a weight as a part of all weights.

    A machine began when half of the series of its first burst had begun. One on which two or more others depend began
    no later than the first of these, if that was within `Rules.quiet` and `Rules.reopen` before: what is alike on its
    VMs comes from it, even if one of them had a novelty of its own a moment earlier.
    """
    own = _by_machine(group)
    first = {entity: next((b for b in some if b.strong), some[0]) for entity, some in own.items()}
    began = {entity: burst.began for entity, burst in first.items()}
    below = _below(own, first, above, rules)
    start = min(began.values())
    scores = {entity: max(e.score for burst in some for e in burst.episodes) for entity, some in own.items()}
    weights, reasons = {}, {}
    best = max(scores.values())
    for entity, burst in first.items():
        others, after, place = below.get(entity), burst.began - start, 1.0
        early = after
        if others is not None:
            stopped = all(e.absent for e in burst.episodes)
            causes = others.parts >= TWO or stopped or burst.began < others.first - rules.together // 2
            place = 1 + 2 * len(others.machines) if causes else _EFFECT
            early = min(after, others.earliest - start) if causes else after
        weights[entity] = exp(-early / max(rules.together, 1)) * (scores[entity] / 100 + 0.01) * place
        reasons[entity] = _reason(after, others, place, scores[entity], scores[entity] >= best)
    total = sum(weights.values())
    found = sorted(weights, key=lambda entity: (-round(weights[entity], 9), began[entity], entity))
    return [
        Candidate(
            entity=entity,
            metric=first_metric(first[entity].episodes).metric,
            since=began[entity],
            share=round(weights[entity] / total, 3),
            reason=reasons[entity],
        )
        for entity in found[:MOST]
    ]


def first_metric(episodes: Sequence[Episode]) -> Episode:
    """The episode that tells most of where it began: a metric rather than the machine as a whole; the earliest one."""
    return min(episodes, key=lambda e: (e.metric in (JOINED, LOGS), e.since, -round(e.score), e.metric))


def _by_machine(group: Sequence[Burst]) -> dict[str, list[Burst]]:
    own: dict[str, list[Burst]] = defaultdict(list)
    for burst in sorted(group, key=lambda b: (b.onset, b.entity)):
        own[burst.entity].append(burst)
    return own


def _below(
    own: Mapping[str, Sequence[Burst]], first: Mapping[str, Burst], above: Mapping[str, Sequence[str]], rules: Rules
) -> dict[str, _Below]:
    """What depends on each machine that others of the incident depend on."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for entity in own:
        for part, higher in _steps(entity, above):
            if higher in first and any(_near(b, first[higher], rules.related) for b in own[entity]):
                found[higher][entity].add(part)
    made = {}
    for higher, some in found.items():
        begins = [burst for entity in some for burst in own[entity]]
        made[higher] = _Below(
            frozenset(some),
            len(set().union(*some.values())),
            min(b.began for b in begins if _near(b, first[higher], rules.related)),
            min(b.began for b in begins if _near(b, first[higher], rules.quiet + rules.reopen)),
        )
    return made


def _near(one: Burst, other: Burst, within: int) -> bool:
    """Whether a burst has strong evidence, and begins so many milliseconds before or after another one at most."""
    return one.strong and abs(one.onset - other.onset) <= within


def _steps(entity: str, above: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """All that a machine depends on, even in several steps: the last machine before it on a way there, and itself."""
    reached, left, steps = {entity}, [entity], []
    while left:
        name = left.pop(0)
        for higher in above.get(name, ()):
            if higher != entity:
                steps.append((name, higher))
            if higher not in reached:
                reached.add(higher)
                left.append(higher)
    return steps


def _reason(after: int, below: _Below | None, place: float, score: float, strongest: bool) -> str:
    """Why a machine is a candidate, in words."""
    reasons = ["it began first" if after == 0 else f"it began {duration(after)} after the first"]
    if below is not None and place < 1:
        reasons.append(f"it shows what {min(below.machines)} does, which depends on it")
    elif below is not None:
        count = len(below.machines)
        reasons.append(f"{count} of the other machines {'depends' if count == 1 else 'depend'} on it")
    reasons.append(f"{'the strongest evidence' if strongest else 'evidence'} (score {score:.0f})")
    return ", ".join(reasons)
