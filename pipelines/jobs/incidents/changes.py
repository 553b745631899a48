"""What was done at a site shortly before an incident began: deployments, configuration, restarts, feature flags."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from pipelines.contracts.globs import is_glob, matches
from pipelines.contracts.quantities.words import duration
from pipelines.contracts.records import Change
from pipelines.contracts.records.change import ChangeKind
from pipelines.contracts.records.incident import EarlierChange
from pipelines.jobs.incidents.affected import quoted

MOST = 5
"""The most changes that an incident names."""
BEFORE = 1_800_000
"""A change that was over for longer when an incident began is not named, milliseconds."""
_SHOWN = 200
_WORDS: dict[ChangeKind, str] = {
    "deployment": "deployment",
    "configuration": "new configuration",
    "restart": "restart",
    "feature_flag": "feature flag",
    "ended": "end on purpose",
    "ending": "stop",
    "cordon": "cordon",
    "uncordon": "uncordon",
    "other": "change",
}


def earlier_changes(
    machines: Collection[str],
    above: Mapping[str, Sequence[str]],
    changes: Iterable[Change],
    start: int,
    reported: int,
) -> list[EarlierChange]:
    """The changes that may explain an incident, at most `MOST`.

    Those on its machines come first, then those on what they depend on, then those of the whole site; in each class the
    last one comes first. What was done after the incident was reported explains nothing.

    Args:
        machines: The machines of the incident, in the order of their onsets.
        above: For machines with a place in the topology: what each depends on; for what that depends on, too.
        changes: The changes of the site, in any order.
        start: Earliest onset of its novelties, epoch milliseconds.
        reported: When it was first reported, epoch milliseconds.

    >>> done = [Change(id="1", time=100_000, message="cart 1.4", machines=["web-*"]), Change(id="2", time=150_000,
    ...     message="kernel", machines=["host"]), Change(id="3", time=900_000, message="cart 1.5", machines=["web-*"])]
    >>> found = earlier_changes(["web-1"], {"web-1": ["host"]}, done, 160_000, 170_000)
    >>> [(each.message, each.entity) for each in found]
    [('cart 1.4', 'web-1'), ('kernel', 'host')]
    """
    near = [each for each in changes if each.time <= reported and each.over >= start - BEFORE]
    if not near:
        return []
    own = list(dict.fromkeys(machines))
    names = list(dict.fromkeys([*own, *(name for higher in above.values() for name in higher)]))
    order, column = {name: place for place, name in enumerate(names)}, pl.Series(names, dtype=pl.String)
    ranked = []
    for change in near:
        place = _first(change.machines, order, column)
        if place is not None or not change.machines:
            ranked.append((2 if place is None else 0 if place < len(own) else 1, change, place))
    ranked.sort(key=lambda each: (each[0], -each[1].time, each[1].id))
    return [
        EarlierChange(
            id=one.id, kind=one.kind, message=one.message[:_SHOWN], since=one.time,
            entity=None if place is None else names[place],
        )
        for _, one, place in ranked[:MOST]
    ]  # fmt: skip


def _first(globs: Sequence[str], order: Mapping[str, int], names: pl.Series) -> int | None:
    """The place of the first name that one of some globs matches; a name that is no glob is looked up."""
    places = [order[glob] for glob in globs if glob in order]
    for glob in globs:
        if is_glob(glob) and (found := matches(glob, names)).any():
            places.append(int(found.argmax()))
    return min(places, default=None)


def after(changes: Sequence[EarlierChange], start: int) -> str:
    """The end of a title that names the change which is likeliest to explain an incident; empty if there is none.

    >>> one = EarlierChange(id="1", kind="deployment", message="cart 1.4", since=60_000, entity="web-1")
    >>> after([one], 180_000), after([one], 60_000), after([], 0)
    ('; 2 min after the deployment "cart 1.4"', '; at the time of the deployment "cart 1.4"', '')
    """
    if not changes:
        return ""
    first = changes[0]
    when = f"{duration(start - first.since)} after" if first.since < start else "at the time of"
    return f"; {when} the {_WORDS[first.kind]} {quoted(first.message)}"
