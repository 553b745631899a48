"""Where an incident may have begun: each machine's share, by its onset, its place in the topology and its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp

from pipelines.contracts.records.incident import Candidate
from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.incidents.bursts import Burst, Rules
from pipelines.jobs.incidents.episode import LOGS, Episode

MOST = 5
"""The most candidates of an incident."""


def candidates(group: Sequence[Burst], parents: Mapping[str, str], rules: Rules) -> list[Candidate]:
    """The machines at which an incident may have begun, the most likely first.

    A machine's weight is the product of three numbers: how early its novelties began (1 for the first machine, less by
    the factor e for each `Rules.together` after it), its highest score (as a share of 100), and 1 more than twice the
    number of the incident's machines that depend on it. Its share is its weight, as a share of all machines' weights. A
    machine on which two or more others depend began no later than the first of these, if that was within `Rules.quiet`
    and `Rules.reopen` before, as long as a machine's novelties are one incident: what is alike on its VMs comes from
    it, even if one of them had a novelty of its own a moment earlier.
    """
    first: dict[str, Burst] = {}
    for burst in sorted(group, key=lambda b: (b.onset, b.entity)):
        first.setdefault(burst.entity, burst)
    start = min(burst.onset for burst in group)
    children = dict.fromkeys(first, 0)
    began = {entity: burst.onset for entity, burst in first.items()}
    for entity, own in first.items():
        for above in _above(entity, parents):
            if above in children:
                children[above] += 1
                if first[above].onset - rules.quiet - rules.reopen <= own.onset:
                    began[above] = min(began[above], own.onset)
    began = {entity: onset if children[entity] > 1 else first[entity].onset for entity, onset in began.items()}
    scores = _scores(group)
    weights = {
        entity: exp(-(began[entity] - start) / max(rules.together, 1))
        * (scores[entity] / 100 + 0.01)
        * (1 + 2 * children[entity])
        for entity in first
    }
    total, best = sum(weights.values()), max(scores.values())
    found = sorted(weights, key=lambda entity: (-round(weights[entity], 9), first[entity].onset, entity))
    return [
        Candidate(
            entity=entity,
            metric=first_metric(first[entity].episodes).metric,
            since=first[entity].onset,
            share=round(weights[entity] / total, 3),
            reason=_reason(first[entity].onset - start, children[entity], scores[entity], scores[entity] >= best),
        )
        for entity in found[:MOST]
    ]


def first_metric(episodes: Sequence[Episode]) -> Episode:
    """The episode that tells most of where it began: a metric rather than the machine as a whole; the earliest one."""
    return min(episodes, key=lambda e: (e.metric in (JOINED, LOGS), e.since, -round(e.score), e.metric))


def _scores(group: Sequence[Burst]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for burst in group:
        scores[burst.entity] = max(scores.get(burst.entity, 0.0), *(episode.score for episode in burst.episodes))
    return scores


def _above(entity: str, parents: Mapping[str, str]) -> list[str]:
    """The machines that a machine depends on, from its parent up."""
    found = [entity]
    while (parent := parents.get(found[-1])) is not None and parent not in found:
        found.append(parent)
    return found[1:]


def _reason(after: int, children: int, score: float, strongest: bool) -> str:
    """Why a machine is a candidate, in words."""
    reasons = ["it began first" if after == 0 else f"it began {after / 1000:g} s after the first"]
    if children:
        reasons.append(f"{children} of the other machines {'depends' if children == 1 else 'depend'} on it")
    reasons.append(f"{'the strongest evidence' if strongest else 'evidence'} (score {score:.0f})")
    return ", ".join(reasons)
