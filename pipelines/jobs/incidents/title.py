"""The title of an incident: one sentence that says what happened, how much of it, where, and which machines show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipelines.contracts.quantities.words import duration, instant, listed
from pipelines.contracts.records import Placement
from pipelines.contracts.records.incident import AffectedMachine, AffectedSeries, LogChange
from pipelines.contracts.records.novelty import JOINED, UNTIL_FULL
from pipelines.jobs.incidents.affected import ZONE, quoted, silence
from pipelines.jobs.incidents.episode import LOGS
from pipelines.jobs.incidents.fleet import NOT_COUNTED, Living, all_at_once

_NAMED = 2
"""So many series are named; one more is named rather than counted."""

_SILENT = 3
"""Up to so many machines that have sent nothing are named, more are counted."""

_FLAPS = (3, 5, 10, 20, 50, 100, 200, 500)
"""What came so often is flapping. It is counted roughly, as an incident is written again when its title changes."""


@dataclass(frozen=True)
class _Workloads:
    """The workloads of an incident.

    Attributes:
        of: The workload of each machine that has one.
        series: The series of the incident.
        living: How many replicas there were.
    """

    of: Mapping[str, str]
    series: Sequence[AffectedSeries]
    living: Living

    def replicas(self, workload: str, number: int) -> str:
        """So many replicas of a workload, and of how many, if that is known."""
        instants = {one.reported for one in self.series if self.of.get(one.entity) == workload}
        every = self.living.replicas_at(workload, instants)
        if every == number:
            return f"all {number} replicas of {workload}"
        return f"{number}{f' of {every}' if every and every > number else ''} replicas of {workload}"


def title(
    machines: Sequence[AffectedMachine],
    series: Sequence[AffectedSeries],
    cause: str,
    above: Mapping[str, Sequence[str]],
    runs: Mapping[str, str],
    logs: Sequence[LogChange],
    living: Living = NOT_COUNTED,
) -> str:
    """The sentence without what moved, and what changed in the logs.

    Args:
        machines: The machines of the incident.
        series: All its series, in order: what has sent nothing first, then the strongest.
        cause: The machine at which it probably began.
        above: For machines with a place in the topology: what each depends on.
        runs: Those of them that run on another: on which.
        logs: What changed in the logs, see `in_the_log`.
        living: How many machines the site and its workloads have.
    """
    silent = {one.entity: one for one in series if one.kind == "absence" and one.metric == JOINED}
    workloads = _Workloads({m.entity: m.workload for m in machines if m.workload}, series, living)
    if silent:
        head, named = _silence(silent, cause, workloads), set(silent)
        cause = cause if cause in silent else min(silent)
    else:
        names = [machine.entity for machine in machines]
        own = [one for one in series if one.entity == cause]
        alike = _alike(own, series, workloads)
        named = {cause, *alike}
        below = sum(cause in above.get(name, ()) for name in names)
        replicas = max(Counter(workloads.of.values()).values(), default=0)
        reported = min((one.reported for one in series), default=0)
        if 2 * max(below, replicas) < len(names) and (fleet := all_at_once(series, names, living.at(reported))):
            return fleet
        who = workloads.replicas(workloads.of[cause], len(named)) if alike else cause
        head = _change(who, own, bool(logs))
    head += _flapping([one for one in series if one.entity == cause])
    return head + _shown_by([m.entity for m in machines if m.entity not in named], cause, above, runs, workloads)


def _alike(own: Sequence[AffectedSeries], series: Sequence[AffectedSeries], workloads: _Workloads) -> frozenset[str]:
    """The other replicas of a machine's workload that show what it shows most."""
    shown = next((one for one in own if one.metric != JOINED), None)
    if shown is None or shown.entity not in workloads.of:
        return frozenset()
    workload = workloads.of[shown.entity]
    same = (one for one in series if one.metric == shown.metric and workloads.of.get(one.entity) == workload)
    return frozenset(one.entity for one in same if one.entity != shown.entity)


def _silence(silent: Mapping[str, AffectedSeries], cause: str, workloads: _Workloads) -> str:
    """Which machines send nothing, since when; and which did, for how long, and send again."""
    names = sorted(silent, key=lambda name: (name != cause, name))
    lasting, over = ([name for name in names if (silent[name].end is None) is still] for still in (True, False))
    lasted = {name: (silent[name].end or 0) - silent[name].since for name in over}
    length = {name: duration(ms) for name, ms in lasted.items()}
    same = len(set(length.values())) == 1
    longest = max(lasted.values(), default=0)
    for_long = f" for {'' if same else 'up to '}{duration(longest)}" if longest > 0 else ""
    if lasting:
        verb = "has" if len(lasting) == 1 else "have"
        again = (
            f"; {_who(over, workloads)} sent nothing{for_long} and send{'s' if len(over) == 1 else ''} again"
            if over
            else ""
        )
        return f"{_who(lasting, workloads)} {verb} sent nothing since {_begun(lasting, silent)}{again}"
    if same or len(over) > _SILENT:
        again = "it sends again" if len(over) == 1 else "they send again"
        return f"{_who(over, workloads)} sent nothing{for_long} from {_begun(over, silent)}; {again}"
    parts = [f"for {length[name]} from {_begun([name], silent)}" for name in over]
    sentence = ", ".join(f"{name} {'sent nothing ' if n == 0 else ''}{parts[n]}" for n, name in enumerate(over))
    return f"{sentence}; they send again"


def _who(names: Sequence[str], workloads: _Workloads) -> str:
    """Machines by name, several replicas as those of their workload; if these are too many, how many machines."""
    units = _units(names, workloads)
    return listed(units) if len(units) <= _SILENT else f"{len(names)} machines"


def _units(names: Sequence[str], workloads: _Workloads) -> list[str]:
    """The machines by name; instead of several replicas of a workload, how many of it.

    >>> _units(["a", "s/b-1", "s/b-2"], _Workloads({"s/b-1": "s/b", "s/b-2": "s/b"}, [], NOT_COUNTED))
    ['a', '2 replicas of s/b']
    """
    number = Counter(workloads.of.get(name, name) for name in names)
    units = []
    for name in names:
        whole = workloads.of.get(name, name)
        units.append(name if number[whole] == 1 else workloads.replicas(whole, number[whole]))
    return list(dict.fromkeys(units))


def _begun(names: Sequence[str], silent: Mapping[str, AffectedSeries]) -> str:
    """When the first of some machines fell silent."""
    return instant(min(silent[name].since for name in names), min(silent[name].reported for name in names), ZONE)


def _change(cause: str, own: Sequence[AffectedSeries], logs: bool) -> str:
    """What changed most on a machine, or on replicas; the text of its log is left out where the title ends with it."""
    single = [one for one in own if one.metric != JOINED]
    if not single:
        return f"{cause} is {own[0].change}" if own else cause
    stopped = [one for one in single if one.kind == "absence"]
    if len(stopped) > 1:
        stopped = [one for one in stopped if one.end is None] or stopped
        end = None if stopped[0].end is None else max(one.end for one in stopped if one.end is not None)
        since, reported = min(one.since for one in stopped), min(one.reported for one in stopped)
        verb = "have" if len(stopped) > 1 else "has"
        return f"{cause}: {_counted([one.metric for one in stopped])} {silence(since, reported, end, verb)}"
    texts = [
        ("its log unusual" if logs else f"its log has {one.change}")
        if one.metric == LOGS
        else f"{one.metric.removesuffix(UNTIL_FULL)} {one.change}"
        for one in single
    ]
    return f"{cause}: {_counted(texts)}"


def _flapping(own: Sequence[AffectedSeries]) -> str:
    """How often the series came that came and went most; empty if that is no flapping."""
    most = max(own, key=lambda each: (each.times, each.metric), default=None)
    if most is None or most.times < _FLAPS[0]:
        return ""
    times = max(times for times in _FLAPS if times <= most.times)
    metric = "" if most.metric in (JOINED, own[0].metric) else f"{most.metric} "
    since = (
        "" if most.kind == "absence" else f" since {instant(most.since, most.reported, ZONE)}"
    )  # that of the last one
    return f", {metric}flapping ({times} times or more{since})"


def _counted(texts: Sequence[str]) -> str:
    """The first texts, and how many more there are."""
    if len(texts) <= _NAMED + 1:
        return ", ".join(texts)
    return ", ".join(texts[:_NAMED]) + f" and {len(texts) - _NAMED} more"


def _shown_by(
    others: Sequence[str],
    cause: str,
    above: Mapping[str, Sequence[str]],
    runs: Mapping[str, str],
    workloads: _Workloads,
) -> str:
    """Which other machines show it, and how they depend on that at which it began; empty if none does."""
    if not others:
        return ""
    higher = next((name for name in above.get(cause, ()) if name in others), "")
    how = "runs" if runs.get(cause) == higher else "depends"
    below = [name for name in others if cause in above.get(name, ())]
    run = all(runs.get(name) == cause for name in below)
    if len(others) == 1:
        if higher:
            return f"; {higher}, on which it {how}, shows it"
        return f"; {others[0]}" + (
            f", which {'runs' if run else 'depends'} on it, shows it" if below else " shows it too"
        )
    if higher:
        more = len(others) - 1
        return f"; {higher}, on which it {how}, and {more} more machine{'s' if more > 1 else ''} show it"
    if len(below) == len(others):
        return f"; {len(below)} machines that {'run' if run else 'depend'} on it show it"
    units = _units(sorted(others), workloads)
    few = len(units) <= _NAMED and (len(others) == _NAMED or len(units) < len(others))
    return f"; {listed(units)} show it too" if few else f"; {len(others)} more machines show it"


def moved(moves: Iterable[Placement]) -> str:
    """The beginning of a title that names the machine that moved then; empty if none did."""
    in_order = sorted(moves, key=lambda move: (move.moved_at, move.entity))
    if not in_order:
        return ""
    more = f", and {len(in_order) - 1} more moved" if len(in_order) > 1 else ""
    first = in_order[0]
    went = f"moved from {first.moved_from} to {first.parent}" if first.parent else f"left {first.moved_from}"
    return f"{first.entity} {went}{more}; "


def in_the_log(changes: Sequence[LogChange]) -> str:
    """The end of a title: the template that explains most; empty if no log changed.

    No line is quoted, as titles are sent to others, and a line may hold what is secret.
    """
    if not changes:
        return ""
    first = changes[0]
    where = first.entity if first.machines == 1 else f"{first.machines} machines"
    return f"; the log of {where} changed: {quoted(first.template)}"
