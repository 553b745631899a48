"""Machines without a link that show the same at one time: which of their bursts belong together."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pipelines.contracts.roles import role_of
from pipelines.jobs.incidents.bursts import Burst, Rules
from pipelines.jobs.incidents.groups import Groups

MANY = 3
"""So many machines that show the same at one time are no coincidence, whatever else is known of them."""


def by_likeness(
    bursts: Sequence[Burst], groups: Groups, places: Sequence[frozenset[str]], again: Collection[int], rules: Rules
) -> Groups:
    """Links bursts of different machines that begin within `Rules.together` and show the same.

    Two of them are linked if they have two metrics or more in common, or have both sent nothing, and if no topology
    sets them apart (at most one of them has a place in it, or both have a root in common). `MANY` or more with
    different roots are always linked, if they are as many groups until now; of one role (`pipelines.contracts.roles`)
    also if each begins within `Rules.related` of the one before, as in a rollout. One after another they may
    go on for `Rules.quiet` and `Rules.reopen`; the more machines they are, the longer: six times as long for eighteen.
    Only bursts with strong evidence count, and none with which a machine shows again what it has shown for longer: one
    that comes and goes for hours would link all that begin meanwhile.

    Args:
        bursts: The bursts, in the order of their onsets.
        groups: The groups of bursts until now; changed.
        places: For each burst the roots of its machine in the topology; empty if it has no place there.
        again: The bursts with which machines show again what they have shown for longer.
        rules: The settings.

    Returns:
        The bursts that show the same one after another, whether they are linked or not: how many groups they are by the
        other rules decides that, and may still change for as long as one of them lasts.
    """
    like = Groups(len(bursts))
    latest: dict[tuple[frozenset[str], frozenset[str], str | None], int] = {}
    machines = [{burst.entity} for burst in bursts]
    for i, burst in enumerate(bursts):
        if not burst.shows or not burst.strong or i in again:
            continue
        role = role_of(burst.entity)
        for (shows, place, other), j in list(latest.items()):
            if burst.onset - bursts[j].onset > max(rules.related, rules.together):
                del latest[shows, place, other]
                continue
            together = burst.onset - bursts[j].onset <= rules.together
            if not (together or (role is not None and other == role)) or not alike(shows, burst.shows):
                continue
            first = like.find(j)
            lasts = rules.patience(max(len(machines[first]) // MANY, 1)) * (rules.quiet + rules.reopen)
            if burst.onset - bursts[first].onset <= lasts:
                both = machines[first] | machines[like.find(i)]
                like.unite(i, j)
                machines[like.find(i)] = both
                apart = bool(place) and bool(places[i]) and place.isdisjoint(places[i])
                if together and (len(shows & burst.shows) > 1 or burst.silent) and not apart:
                    groups.unite(i, j)
        latest[burst.shows, places[i], role] = i
    many = [
        members
        for members in like.members()
        if len({places[i] or frozenset({bursts[i].entity}) for i in members}) >= MANY
        and len({groups.find(i) for i in members}) >= MANY
    ]
    for members in many:
        for i in members[1:]:
            groups.unite(members[0], i)
    return like


def alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether what two bursts show is the same: at least half of all metrics that either shows."""
    return 2 * len(one & other) >= len(one | other)
