"""What a comparison says of incidents and messages first, on incidents written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.contracts.records import Incident
from pipelines.contracts.records.incident import AffectedMachine
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.evaluation.comparison.comparison import Comparison, compare
from pipelines.evaluation.comparison.messages import Listener, listeners, messages
from pipelines.evaluation.comparison.page import page
from pipelines.evaluation.comparison.plain_data import plain_data
from pipelines.evaluation.comparison.words import figure, incidents
from tests.pipelines.evaluation.test_comparison import STEP, T0, judged, series


def incident(
    name: str, *machines: str, at: int = 10, status: str = "open", severity: str = "minor", **more: Any
) -> Incident:
    """A revision of an incident that began at a window and lasts for three."""
    start = T0 + at * STEP
    given: dict[str, Any] = {
        "id": name, "opened": start, "site": "default", "status": status, "severity": severity, "severity_score": 40,
        "record_score": 90, "start": start, "updated": start + 3 * STEP, "message": f"{name} is slow",
        "machine_count": len(machines), "series_count": 2 * len(machines), "open_series": 1,
        "machines": [AffectedMachine(entity=each, since=start, series=2, record_score=90) for each in machines],
    }  # fmt: skip
    return Incident(**given | ({"end": start + 3 * STEP} if status == "resolved" else {}) | more)


def life(name: str, *machines: str, **more: Any) -> tuple[Incident, ...]:
    """An incident as a live pipeline writes it: opened, more severe, over."""
    return (
        incident(name, *machines, **more),
        incident(name, *machines, severity="major", revision=1, **more),
        incident(name, *machines, severity="major", status="resolved", revision=2, **more),
    )


def compared(first: Any, second: Any, who: tuple[Listener, ...] = (Listener(),)) -> Comparison:
    one, two = judged("v1", series({10: "anomaly"})), judged("v2", series({10: "anomaly"}))
    sides = [type(one)(s.name, s.verdicts, 50.0, {}, "all", its) for s, its in ((one, first), (two, second))]
    return compare(sides[0], sides[1], listeners=who)


def test_the_first_words_are_how_many_incidents_how_large_and_how_many_messages() -> None:
    found = compared((life("a", "vm-1"), life("b", "vm-2", at=50)), (life("c", "vm-1", "vm-2", "vm-3"),))
    summary, rows, _ = incidents(found)
    assert summary == (
        "v1: 2 incidents (the largest of 1 machine), 6 messages; "
        "v2: 1 incident (the largest of 3 machines), 3 messages."
    )
    assert rows == [
        ["incidents", 2, 1],
        ["of them major", 2, 1],
        ["machines of the largest", 1, 3],
        ["series of the largest", 2, 6],
        ["messages", "6 (2 opened, 2 more severe, 2 over)", "3 (1 opened, 1 more severe, 1 over)"],
    ]
    text = page(found, T0)
    assert text.index("2 incidents") < text.index("agree on")
    assert list(found.figures())[:2] == ["versions", "incidents"]
    assert plain_data(found, 0, T0)["incidents"]["summary"] == summary


def test_each_channel_is_told_from_its_severity_on() -> None:
    settings = NotifySettings(
        channels={
            "all": {"kind": "webhook", "url": "http://127.0.0.1:1/"},  # type: ignore[dict-item]
            "pager": {"kind": "webhook", "url": "http://127.0.0.1:1/", "severity": "major"},  # type: ignore[dict-item]
        }
    )
    quiet = incident("b", "vm-2", at=50, severity="warning")
    summary, rows, _ = incidents(compared((life("a", "vm-1"), (quiet,)), (), listeners(settings)))
    assert "v1: 2 incidents (the largest of 1 machine), 4 messages to all, 2 messages to pager" in summary
    assert rows[-1] == ["messages to pager", "2 (1 opened, 1 over)", "0"], "it hears of it when it becomes major"


@pytest.mark.parametrize(
    ("revisions", "expected"),
    [
        pytest.param(life("a", "m"), {"opened": 1, "updated": 1, "resolved": 1}, id="live"),
        pytest.param(life("a", "m")[2:], {"opened": 1, "resolved": 1}, id="a replay writes its end only"),
        pytest.param((incident("a", "m"),), {"opened": 1}, id="it lasts"),
        pytest.param(
            (incident("a", "m", status="resolved", reopenings=2),),
            {"opened": 1, "reopened": 2, "resolved": 3},
            id="reopened twice, written once",
        ),
        pytest.param((incident("a", "m", status="merged"),), {}, id="a part of another before anybody was told"),
    ],
)
def test_messages_are_counted_alike_however_many_revisions_were_written(
    revisions: tuple[Incident, ...], expected: dict[str, int]
) -> None:
    assert dict(messages(revisions, Listener())) == expected


def test_incidents_are_of_one_version_only_if_the_other_has_none_there_and_then() -> None:
    first = (life("a", "vm-1", "vm-2"), life("gone", "vm-9", at=70), life("early", "vm-1", at=70))
    found = compared(first, (life("b", "vm-2", "vm-3", at=15),)).incidents
    assert found is not None
    assert [each.id for each in found[0].only] == ["gone", "early"]
    assert found[1].only == ()
    assert "Only v1" in incidents(compared(first, (life("b", "vm-2"),)))[2][0]


def test_what_became_part_of_another_incident_and_what_lies_outside_is_not_counted() -> None:
    part = (*life("part", "vm-4")[:1], incident("part", "vm-4", status="merged", merged_into="a", revision=1))
    found = compared((life("a", "vm-1"), part, life("late", "vm-1", at=500)), (life("a", "vm-1"),)).incidents
    assert found is not None
    assert (len(found[0].last), found[0].left_out, found[0].only) == (1, 1, ())
    assert found[0].messages[Listener()] == {"opened": 2, "updated": 1, "resolved": 2}


def test_incidents_that_are_not_known_are_not_said_to_be_none() -> None:
    assert incidents(compared(None, ()))[0].startswith("The incidents of both versions are not known")
    assert incidents(compared((), ()))[0] == "v1: 0 incidents, 0 messages; v2: 0 incidents, 0 messages."


@pytest.mark.parametrize(
    ("value", "text"),
    [(1039.6, "1,040"), (12.345, "12.3"), (0.0, "0"), (0.25, "0.25"), (99.96, "100"), (3e-5, "0.00003")],
)
def test_figures_are_written_as_people_do(value: float, text: str) -> None:
    assert figure(value) == text
