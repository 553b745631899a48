"""The answers to operators' questions, each with the command that gives the same. Knows nothing of MCP."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from dashboards.console.store import Store
from engine.clock import now_ms
from engine.spec.duration import iso
from pipelines.contracts import topics
from pipelines.contracts.records.incident import STANDING
from pipelines.contracts.settings import Settings
from pipelines.query import incidents as stored
from pipelines.query.view.client import ViewClient
from pipelines.why_not.asking import ask, span
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
        options: Options with which commands ask the same version of the same servers, by the first word of a command.
    """

    settings: Callable[[], Settings]
    view: ViewClient
    compared: Callable[[str, str], dict[str, Any]]
    options: Mapping[str, Sequence[str]] = MappingProxyType({})


class Answers:
    """Answers questions; nothing is changed by one.

    Args:
        sources: Whom it asks.
    """

    def __init__(self, sources: Sources) -> None:
        self._settings, self._view, self._compared, self._options = sources

    def incidents(self, everything: bool = False, machine: str = "", limit: int = 20) -> dict[str, Any]:
        """Which incidents there are, the last opened first; those that are not over unless all are wanted."""
        known = [
            each for each in stored.incidents(self._settings())
            if (everything or each.status in STANDING) and (not machine or stored.concerns(each, machine))
        ]  # fmt: skip
        brief = [_brief(each.model_dump(mode="json")) for each in known[:limit]]
        options = [*(["--all"] if everything else []), *([f"--machine={machine}"] if machine else [])]
        return self._answer(
            ("incidents", "list", *options, f"--limit={limit}"), (),
            {"incidents": brief, "left_out": max(0, len(known) - limit)},
        )  # fmt: skip

    def why(self, incident: str) -> dict[str, Any]:
        """What is known of one incident: what happened, where it may have begun, its machines, series and log lines."""
        it = stored.named(stored.incidents(self._settings()), incident)
        whole = _times(it.model_dump(mode="json", exclude_none=True))
        proof = command(("prove", *self._options.get("prove", ())), (it.id,))
        return self._answer(("incidents", "show"), (it.id,), {"incident": whole, "proof": proof})

    def why_not(self, machine: str, metric: str, time: str, within: str = "5m") -> dict[str, Any]:
        """Why nobody was alerted of a series at a time: the step at which it ended, with the numbers."""
        start, end = span(time, within, now_ms())
        walked = ask(self._settings(), machine, metric, start, end)
        steps = [{"question": each.step.question, "found": each.words} for each in walked.findings]
        return self._answer(("why-not", f"--within={within}"), (machine, metric, iso(start)), {
            "answer": spoken(walked, end - start), "ended_at": walked.answer.step.name if walked.answer else None,
            "steps": steps,
        })  # fmt: skip

    def series(self, machine: str = "", limit: int = 50) -> dict[str, Any]:
        """Which series there are of machines whose names begin with a text, with what is believed of each."""
        answer = self._view.every("/states", prefix=machine, limit=limit + 1)
        states = sorted(answer["states"], key=lambda each: (each["host.name"], each["metric"]))
        return self._answer(("query", "states", f"--limit={limit}"), (machine,), {
            "series": [_times(each) for each in states[:limit]], "more": len(states) > limit, "age": answer["age"],
        })  # fmt: skip

    def state(self, machine: str, metric: str) -> dict[str, Any]:
        """What is believed of one series now: what is typical, the band, whether something is open."""
        answer = self._view.one("/state", entity=machine, metric=metric)
        found = {"state": _times(answer["state"]), "age": answer["age"]}
        return self._answer(("query", "state"), (machine, metric), found)

    def windows(self, machine: str, metric: str, last: int = 30) -> dict[str, Any]:
        """The last windows of one series: its values, and what was said of them."""
        answer = self._view.one("/windows", entity=machine, metric=metric, n=last)
        windows = [_times(each) for each in answer["windows"]]
        return self._answer(("query", "windows", "-n", str(last)), (machine, metric), {"windows": windows})

    def verdicts(self, machine: str, metric: str, time: str, within: str = "5m") -> dict[str, Any]:
        """What was said of one series at a time, and why: the verdicts that are stored."""
        start, end = span(time, within, now_ms())
        settings = self._settings()
        found = evidence(settings, machine, metric, start, end)
        said = [
            _times({"@timestamp": at} | {name: found.verdicts[at].get(name) for name in _NOTED})
            for at in sorted(found.verdicts)
        ]
        topic = settings.reads(topics.NOVELTIES).removeprefix(settings.namespace)
        series = f"entity = {_quoted(machine)} AND metric = {_quoted(metric)}"
        query = f'SELECT * FROM "{topic}" WHERE {series} AND window_end > {start} AND window_start < {end}'
        return self._answer(("sql",), (query,), {"verdicts": said, "windows": len(found.windows)})

    def top(self, count: int = 10) -> dict[str, Any]:
        """Which series are the most abnormal now, and how many series there are by kind of their last verdict."""
        states, counts = self._view.every("/top", k=count), self._view.every("/counts")
        first = sorted(states["states"], key=lambda each: -each["record_score"])[:count]
        return self._answer(("query", "top"), (str(count),), {
            "series": [_times(each) for each in first], "counts": counts["counts"], "age": states["age"],
        })  # fmt: skip

    def full(self, count: int = 10) -> dict[str, Any]:
        """What will be full next: when at the earliest, the median and at the latest, with 95 % between."""
        found = self._view.every("/full", k=count)
        nearest = sorted(found["states"], key=lambda each: each["full_median"])[:count]
        return self._answer(("query", "full"), (str(count),), {
            "series": [_times(each) for each in nearest], "age": found["age"],
        })  # fmt: skip

    def compare(self, first: str, second: str) -> dict[str, Any]:
        """How two versions differ: incidents, messages, alarms that are new, gone or changed, precision and recall."""
        found = self._compared(first, second)
        for difference in found["differences"]:  # without the points of their plots, which are most of it
            difference["versions"] = [{n: each[n] for n in ("version", "reason")} for each in difference["versions"]]
        return self._answer(("compare",), (first, second), {"comparison": _times(found)})

    def similar(self, incident: str) -> dict[str, Any]:
        """Earlier incidents on the same machines or with the same metrics, the most similar first, with their notes."""
        settings = self._settings()
        store = Store(settings.elasticsearch.url or "", settings.alias, settings.incident_alias, settings.change_alias)
        it = stored.named(stored.incidents(settings), incident)
        try:
            known = store.incidents.one(it.id) or it.model_dump(mode="json", by_alias=True)
            found = store.similar.similar(known)
        finally:
            store.close()
        answer = {"of": it.message, "similar": [_times(each) for each in found]}
        return self._answer(("incidents", "list", "--all"), (), answer)

    def _answer(self, words: Sequence[str], operands: Sequence[str], answer: dict[str, Any]) -> dict[str, Any]:
        """An answer with the command that gives the same."""
        return answer | {"command": command((*words, *self._options.get(words[0], ())), operands)}


def command(words: Sequence[str], operands: Sequence[str]) -> str:
    """A command that a shell and our programs read as it is meant, whatever machines and metrics are called.

    >>> command(("query", "state"), ("web-1", "cpu"))
    'newnormal query state web-1 cpu'
    >>> command(("query", "state"), ("--view=http://evil.example", "$(reboot)"))
    "newnormal query state -- --view=http://evil.example '$(reboot)'"
    """
    end = ["--"] if any(each.startswith("-") for each in operands) else []
    return shlex.join(("newnormal", *words, *end, *operands))


def _quoted(name: str) -> str:
    """A name as a text of SQL.

    >>> _quoted("x' OR '1' = '1")
    "'x'' OR ''1'' = ''1'"
    """
    return "'" + name.replace("'", "''") + "'"


_INSTANTS = frozenset(
    {
        *("@timestamp", "window_start", "window_end", "since", "start", "end", "opened", "updated", "reported"),
        *("event.start", "event.end", "ingested", "full_earliest", "full_median", "full_latest"),
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
