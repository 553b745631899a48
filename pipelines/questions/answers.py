"""The answers to operators' questions, each with the command that gives the same. Knows nothing of MCP."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dashboards.console.store import Store
from engine.clock import now_ms
from engine.spec.duration import duration_ms, iso
from engine.spec.errors import NewnormalError
from pipelines.contracts.records.incident import STANDING
from pipelines.contracts.settings import Settings
from pipelines.query import incidents as stored
from pipelines.query.control_topics import instant
from pipelines.query.view.client import ViewClient
from pipelines.why_not.asking import ask
from pipelines.why_not.evidence import evidence
from pipelines.why_not.walk import spoken

_BRIEF = ("id", "status", "severity", "start", "end", "message", "machine_count")
_NOTED = ("kind", "record_score", "actual", "typical", "lower", "upper", "since", "message", "details", "rules")


class Sources(NamedTuple):
    """Whom the answers ask.

    Attributes:
        settings: Gives the settings of the version that readers see, with the addresses of servers; asked each time.
        view: The state view.
        compared: Compares two versions; see `pipelines.cli.console_versions.ConsoleVersions.compared`.
    """

    settings: Callable[[], Settings]
    view: ViewClient
    compared: Callable[[str, str], dict[str, Any]]


class Answers:
    """Answers questions; nothing is changed by one.

    Args:
        sources: Whom it asks.
    """

    def __init__(self, sources: Sources) -> None:
        self._settings, self._view, self._compared = sources

    def incidents(self, everything: bool = False, machine: str = "", limit: int = 20) -> dict[str, Any]:
        """Which incidents there are, the last opened first; those that are not over unless all are wanted."""
        known = [
            each for each in stored.incidents(self._settings())
            if (everything or each.status in STANDING) and (not machine or machine in {m.entity for m in each.machines})
        ]  # fmt: skip
        brief = [_brief(each.model_dump(mode="json")) for each in known[:limit]]
        return _answer(("incidents", "list", *(["--all"] if everything else []), "--limit", str(limit)), {
            "incidents": brief, "left_out": max(0, len(known) - limit),
        })  # fmt: skip

    def why(self, incident: str) -> dict[str, Any]:
        """What is known of one incident: what happened, where it may have begun, its machines, series and log lines."""
        it = stored.named(stored.incidents(self._settings()), incident)
        whole = _times(it.model_dump(mode="json", exclude_none=True))
        return _answer(("incidents", "show", it.id), {"incident": whole, "proof": f"newnormal prove {it.id}"})

    def why_not(self, machine: str, metric: str, time: str, within: str = "5m") -> dict[str, Any]:
        """Why nobody was alerted of a series at a time: the step at which it ended, with the numbers."""
        start, end = _span(time, within)
        walked = ask(self._settings(), machine, metric, start, end)
        steps = [{"question": each.step.question, "found": each.words} for each in walked.findings]
        return _answer(("why-not", machine, metric, iso(start), "--within", within), {
            "answer": spoken(walked, end - start), "ended_at": walked.answer.step.name if walked.answer else None,
            "steps": steps,
        })  # fmt: skip

    def series(self, machine: str = "", limit: int = 50) -> dict[str, Any]:
        """Which series there are of machines whose names begin with a text, with what is believed of each."""
        answer = self._view.every("/states", prefix=machine, limit=limit + 1)
        states = sorted(answer["states"], key=lambda each: (each["host.name"], each["metric"]))
        return _answer(("query", "states", machine, "--limit", str(limit)), {
            "series": [_times(each) for each in states[:limit]], "more": len(states) > limit, "age": answer["age"],
        })  # fmt: skip

    def state(self, machine: str, metric: str) -> dict[str, Any]:
        """What is believed of one series now: what is typical, the band, whether something is open."""
        answer = self._view.one("/state", entity=machine, metric=metric)
        return _answer(("query", "state", machine, metric), {"state": _times(answer["state"]), "age": answer["age"]})

    def windows(self, machine: str, metric: str, last: int = 30) -> dict[str, Any]:
        """The last windows of one series: its values, and what was said of them."""
        answer = self._view.one("/windows", entity=machine, metric=metric, n=last)
        windows = [_times(each) for each in answer["windows"]]
        return _answer(("query", "windows", machine, metric, "-n", str(last)), {"windows": windows})

    def verdicts(self, machine: str, metric: str, time: str, within: str = "5m") -> dict[str, Any]:
        """What was said of one series at a time, and why: the verdicts that are stored."""
        start, end = _span(time, within)
        found = evidence(self._settings(), machine, metric, start, end)
        said = [
            _times({"@timestamp": at} | {name: found.verdicts[at].get(name) for name in _NOTED})
            for at in sorted(found.verdicts)
        ]
        series = f"entity = {_quoted(machine)} AND metric = {_quoted(metric)}"
        where = f"{series} AND window_end > {start} AND window_start < {end}"
        return _answer(("tail", "novelties", "--where", where), {"verdicts": said, "windows": len(found.windows)})

    def top(self, count: int = 10) -> dict[str, Any]:
        """Which series are the most abnormal now, and how many series there are by kind of their last verdict."""
        states, counts = self._view.every("/top", k=count), self._view.every("/counts")
        first = sorted(states["states"], key=lambda each: -each["record_score"])[:count]
        return _answer(("query", "top", str(count)), {
            "series": [_times(each) for each in first], "counts": counts["counts"], "age": states["age"],
        })  # fmt: skip

    def compare(self, first: str, second: str) -> dict[str, Any]:
        """How two versions differ: incidents, messages, alarms that are new, gone or changed, precision and recall."""
        found = self._compared(first, second)
        for difference in found["differences"]:  # without the points of their plots, which are most of it
            difference["versions"] = [{n: each[n] for n in ("version", "reason")} for each in difference["versions"]]
        return _answer(("compare", first, second), {"comparison": _times(found)})

    def similar(self, incident: str) -> dict[str, Any]:
        """Earlier incidents on the same machines or with the same metrics, the most similar first, with their notes."""
        settings = self._settings()
        store = Store(settings.elasticsearch.url or "", settings.alias, settings.incident_alias)
        it = stored.named(stored.incidents(settings), incident)
        try:
            known = store.incidents.one(it.id) or it.model_dump(mode="json", by_alias=True)
            found = store.similar.similar(known)
        finally:
            store.close()
        return _answer(("incidents", "list", "--all"), {"of": it.message, "similar": [_times(each) for each in found]})


def _answer(command: Sequence[str], answer: dict[str, Any]) -> dict[str, Any]:
    """An answer with the command that gives the same."""
    return answer | {"command": shlex.join(("newnormal", *command))}


def _quoted(name: str) -> str:
    """A name as a text of SQL.

    >>> _quoted("x' OR '1' = '1")
    "'x'' OR ''1'' = ''1'"
    """
    return "'" + name.replace("'", "''") + "'"


def _span(time: str, within: str) -> tuple[int, int]:
    lasting = duration_ms(within, "within")
    start = instant(time, now_ms(), "time")
    assert start is not None
    if lasting > 86_400_000:
        raise NewnormalError("USAGE_INVALID", f"within is {within}", "within", "at most 1d", "nothing was read")
    return start, start + lasting


_INSTANTS = frozenset(
    {
        *("@timestamp", "window_start", "window_end", "since", "start", "end", "opened", "updated", "reported"),
        *("event.start", "event.end", "ingested"),
    }
)


def _times(value: Any) -> Any:
    """The same with instants as ISO 8601."""
    if isinstance(value, list):
        return [_times(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: iso(each) if name in _INSTANTS and isinstance(each, int) else _times(each) for name, each in value.items()
    }


def _brief(incident: dict[str, Any]) -> dict[str, Any]:
    named = [each["entity"] for each in incident["machines"][:10]]
    shown: dict[str, Any] = _times({name: incident[name] for name in _BRIEF} | {"machines": named})
    return shown
