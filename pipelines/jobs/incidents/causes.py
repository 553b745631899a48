"""Where an incident may have begun: each machine's share, by onset, strength, breadth and its place in the topology."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import exp, log2

from pipelines.contracts.quantities.words import duration
from pipelines.contracts.records.incident import Candidate
from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.incidents.bursts import Burst, Rules
from pipelines.jobs.incidents.calls import Calls
from pipelines.jobs.incidents.episode import LOGS, Episode

MOST = 5
"""The most candidates of an incident."""

TWO = 2
"""So many machines that run on another and begin at one time come from it; a single one is rather the cause."""

_EXPLAINED = 2.0
"""What each machine adds to the weight of another one that explains it, in parts of that weight."""

_EFFECT = 1 / 3
"""What the evidence of a machine counts that is explained by another one."""

_UNSEEN = 5.0
"""The weight of a cause that the novelties do not show: that of a single machine with three series of score 66."""

_SILENT = 9.0
"""The evidence of a machine that has sent nothing, which is sure: that of a score of 90."""

_SURE = 99.0
"""The most evidence of a machine: that of a score of 99."""

_DEEP = 20
"""So many machines run on one another at most: a container on a VM on a host of a rack has three below it."""


@dataclass(frozen=True)
class Causes:
    """The machines at which an incident may have begun, the most likely first, and the share of none of them."""

    candidates: list[Candidate]
    unknown: float


def causes(group: Sequence[Burst], above: Mapping[str, Sequence[str]], runs: Mapping[str, str], rules: Rules) -> Causes:
    """Where an incident may have begun.

    A machine's weight is the product of three numbers. *Its evidence*: the odds of its highest score (1 for 50, 3 for
    75), times 1 more than log2 of the number of its series. *How early it began*: less by the factor e for each
    `Rules.together` after the middle of the evidence, and more by e at most before it. *Its place*: 1 more than twice
    the number of machines that it explains, and down to a third if another machine explains it.

    A machine explains those that call it, in one or several steps, unless they began before it: less by the factor e
    for each `Rules.together`. A machine is explained by one that it calls as far as that has as much evidence, and did
    not begin after it. So of a chain of calls the deepest service with strong evidence weighs most.

    A host explains what runs on it if two or more of these began within `Rules.related` of it, if it began clearly
    first, by half of `Rules.together`, or if it has sent nothing, as no VM silences its host. Otherwise it shows what
    its VM does, and counts a third.

    A machine began when half of the series of its first burst had begun. One on which two or more others run began no
    later than the first of these, if that was within `Rules.quiet` and `Rules.reopen` before: what is alike on its VMs
    comes from it, even if one of them had a novelty of its own a moment earlier.

    A share is a weight as a part of all weights, less the share of causes that no novelty shows: that of the weight
    `_UNSEEN` beside the largest one.

    Args:
        group: The bursts of the incident.
        above: For machines with a place in the topology: what each depends on.
        runs: Those of them that run on another: on which.
        rules: The settings.
    """
    own = _by_machine(group)
    first = {entity: next((b for b in own_bursts if b.strong), own_bursts[0]) for entity, own_bursts in own.items()}
    began = {entity: burst.began for entity, burst in first.items()}
    hosts = _below_hosts(own, first, runs, rules)
    evidence = {entity: _evidence([e for b in own_bursts for e in b.episodes]) for entity, own_bursts in own.items()}
    middle, start = _middle(began, evidence), min(began.values())
    calls = Calls(began, evidence, above, runs, max(rules.together, 1))
    best = max(max(e.score for e in b.episodes) for b in group)
    weights, reasons = {}, {}
    for entity, burst in first.items():
        others, since = hosts.get(entity), burst.began
        explained, callers = calls.explained(entity)
        effect, callee = calls.effect(entity)
        if others is not None and _causes(burst, others, rules):
            explained, since = explained + len(others.machines), min(since, others.earliest)
        elif others is not None:
            effect = 1.0
        early = exp(min(1.0, (middle - since) / max(rules.together, 1)))
        weights[entity] = evidence[entity] * early * (1 + _EXPLAINED * explained) * (1 - (1 - _EFFECT) * effect)
        shows = min(others.machines) if others is not None and effect == 1.0 and not callee else ""
        score = max(e.score for b in own[entity] for e in b.episodes)
        count = callers | (others.machines if others is not None and not shows else frozenset())
        reasons[entity] = _reason(burst.began - start, len(count), shows, callee, score, score >= best)
    total = sum(weights.values())
    unknown = _UNSEEN / (_UNSEEN + max(weights.values()))
    ranked = sorted(weights, key=lambda entity: (-round(weights[entity], 9), began[entity], entity))
    candidates = [
        Candidate(
            entity=entity,
            metric=first_metric(first[entity].episodes).metric,
            since=began[entity],
            share=round((1 - unknown) * weights[entity] / total, 3),
            reason=reasons[entity],
        )
        for entity in ranked[:MOST]
    ]
    return Causes(candidates, round(unknown, 3))


def first_metric(episodes: Sequence[Episode]) -> Episode:
    """The episode that shows best where it began: a metric rather than the machine as a whole; the earliest one."""
    return min(episodes, key=lambda e: (e.metric in (JOINED, LOGS), e.since, -round(e.score), e.metric))


def _by_machine(group: Sequence[Burst]) -> dict[str, list[Burst]]:
    own: dict[str, list[Burst]] = defaultdict(list)
    for burst in sorted(group, key=lambda b: (b.onset, b.entity)):
        own[burst.entity].append(burst)
    return own


def _evidence(episodes: Sequence[Episode]) -> float:
    """The evidence of a machine: by its strongest series, and by how many there are."""
    strongest = max(_SILENT if e.silent else e.evidence for e in episodes)
    return min(strongest, _SURE) * (1 + log2(max(len({e.metric for e in episodes} - {JOINED}), 1)))


def _middle(began: Mapping[str, int], evidence: Mapping[str, float]) -> int:
    """When machines with half of all evidence had begun, epoch milliseconds."""
    order = sorted(began, key=lambda entity: (began[entity], entity))
    sums = list(accumulate(evidence[entity] for entity in order))
    return next(began[entity] for entity, so_far in zip(order, sums, strict=True) if 2 * so_far >= sums[-1])


def _causes(host: Burst, others: _Below, rules: Rules) -> bool:
    """Whether a machine causes what runs on it, rather than showing what that does."""
    stopped = all(e.absent for e in host.episodes)
    return others.parts >= TWO or stopped or host.began < others.first - rules.together // 2


def _reason(after: int, count: int, shows: str, callee: str, score: float, strongest: bool) -> str:
    """Why a machine is a candidate, in words."""
    reasons = ["it began first" if after == 0 else f"it began {duration(after)} after the first"]
    if shows:
        reasons.append(f"it shows what {shows} does, which depends on it")
    if callee:
        reasons.append(f"it may show what {callee} does, on which it depends")
    if count:
        reasons.append(f"{count} of the other machines {'depends' if count == 1 else 'depend'} on it")
    reasons.append(f"{'the strongest evidence' if strongest else 'evidence'} (score {score:.0f})")
    return ", ".join(reasons)


@dataclass(frozen=True)
class _Below:
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


def _below_hosts(
    own: Mapping[str, Sequence[Burst]], first: Mapping[str, Burst], runs: Mapping[str, str], rules: Rules
) -> dict[str, _Below]:
    """What runs on each machine of an incident, by the bursts of each machine, and the first one of each."""
    parts_below: dict[str, dict[str, str]] = defaultdict(dict)
    for entity in own:
        for part, above in pairwise([entity, *_above(entity, runs)]):
            if above in first and any(_near(b, first[above], rules.related) for b in own[entity]):
                parts_below[above][entity] = part
    below = {}
    for above, parts in parts_below.items():
        begins = [burst for entity in parts for burst in own[entity]]
        below[above] = _Below(
            frozenset(parts),
            len(set(parts.values())),
            min(b.began for b in begins if _near(b, first[above], rules.related)),
            min(b.began for b in begins if _near(b, first[above], max(rules.related, rules.quiet + rules.reopen))),
        )
    return below


def _near(one: Burst, other: Burst, within: int) -> bool:
    """Whether a burst has strong evidence, and begins so many milliseconds before or after another one at most."""
    return one.strong and abs(one.onset - other.onset) <= within


def _above(entity: str, runs: Mapping[str, str]) -> list[str]:
    """The machines that a machine runs on, from the next one up; `_DEEP` at most."""
    machines = [entity]
    while (on := runs.get(machines[-1])) is not None and on not in machines and len(machines) <= _DEEP:
        machines.append(on)
    return machines[1:]
