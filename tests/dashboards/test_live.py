"""The terminal's live view: a table in a terminal, the log where there is none, no trust in names."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from rich.console import Console
from structlog.testing import capture_logs

from dashboards.live_view import LiveView
from dashboards.status import JobStatus, PipelineStatus

NOVELTY = {
    "host.name": "[red]evil\x1b[2J[/red]", "metric": "cpu.user", "@timestamp": 1_700_000_000_000, "kind": "anomaly",
    "record_score": 91.0, "typical": 40.0, "actual": 67.7, "revision": 0, "event.ingested": 1_700_000_005_000,
}  # fmt: skip
STATUS = PipelineStatus(
    started=1_699_999_000_000,
    jobs=(JobStatus("detector", 10, 10, 1350.0, 17, 12, 3, 1_699_999_995_000, 48_200_000, 10_000, 510.0),),
    novelties=(NOVELTY,),
    latency_ms=11_840.0,
    waits_ms=10_000,
    indexed=81_000,
)


def shown(terminal: bool, updates: int = 1, width: int = 150, status: PipelineStatus = STATUS) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=width, color_system=None, legacy_windows=False)
    with LiveView("http://127.0.0.1:8880", console, clock=lambda: 1_700_000_000.0) as view:
        for _ in range(updates):
            view.update(status)
    return out.getvalue()


def test_a_terminal_shows_jobs_and_novelties() -> None:
    text = shown(terminal=True)
    for part in (
        "detector",
        "1,350",
        "48.2 MB",
        "22:13:15",
        "5 s",
        "17",
        "12",
        "cpu.user",
        "91",
        "67.7",
        ":8880",
        "latency 11.8 s (10 s of it wait for late records)",
    ):
        assert part in text, part


def test_in_80_columns_what_matters_most_is_whole() -> None:
    lines = [line for line in shown(terminal=True, width=80).splitlines() if "detector" in line or "lag" in line]
    head, row = (line.strip("│ ").split() for line in lines[:2])
    assert head == ["job", "in/s", "lag", "watermark", "delay", "late", "dead"]
    assert row == ["detector", "1,350", "3", "22:13:15", "5", "s", "17", "12"]
    assert not any("…" in line for line in lines)


def test_without_a_terminal_each_novelty_is_logged_once_and_there_is_no_status_line() -> None:
    with capture_logs() as logged:
        assert shown(terminal=False, updates=3) == ""
    assert logged == [
        {
            "event": "novelty", "log_level": "info", "at": "2023-11-14T22:13:20.000Z", "kind": "anomaly", "score": 91.0,
            "machine": "[red]evil\\u001b[2J[/red]", "metric": "cpu.user", "typical": 40.0, "actual": 67.7,
        }
    ]  # fmt: skip


def test_without_a_terminal_what_is_not_well_is_logged_every_ten_seconds() -> None:
    now = [0.0]
    view = LiveView("", Console(file=io.StringIO()), clock=lambda: now[0])
    with capture_logs() as logged:
        for now[0] in range(21):
            view.update(PipelineStatus(started=0, problems=("kafka: no answer for 12 s",)))
    assert [line["problem"] for line in logged] == ["kafka: no answer for 12 s"] * 3


def test_what_the_log_says_of_a_server_already_is_not_said_twice() -> None:
    view = LiveView("", Console(file=io.StringIO()), clock=lambda: 100.0)
    with capture_logs() as logged:
        view.update(PipelineStatus(started=0, problems=("kafka: no answer for 12 s",)), logged=True)
        view.update(PipelineStatus(started=0, problems=("detector: failed and starts again",)))
    assert [line["problem"] for line in logged] == ["detector: failed and starts again"]


def test_names_of_machines_do_not_steer_the_terminal() -> None:
    assert "\x1b[2J" not in shown(terminal=True).replace("\x1b[2K", "")
    assert "[red]evil\\u001b[2J[/red]" in shown(terminal=True)


def incident(state: str, severity: str, number: int = 1) -> dict[str, Any]:
    """A document of an incident that began on the first of three hosts."""
    return {
        "event.id": f"id-{number}", "incident.state": state, "severity": severity, "event.start": 1_700_000_000_000,
        "machine_count": 3, "series_count": 41, "message": f"outage {number}",
        "candidates": [{"entity": "host-07\x1b[2J", "metric": "cpu", "since": 1, "share": 0.9, "reason": "first"}],
    }  # fmt: skip


def test_what_was_stored_before_the_start_is_not_logged_as_news() -> None:
    """As by ``newnormal run archive``, beside a pipeline that has run for days."""
    old = NOVELTY | {"event.ingested": STATUS.started - 1}
    with capture_logs() as logs:
        shown(terminal=False, status=replace(STATUS, novelties=(NOVELTY, old)))
    assert [line["event"] for line in logs] == ["novelty"]


def test_where_a_job_finds_incidents_a_terminal_shows_these_and_no_single_novelties() -> None:
    both = (incident("open", "critical"), incident("resolved", "minor", 2))
    text = shown(True, status=replace(STATUS, incidents=both))
    row, *_ = (line for line in text.splitlines() if "outage 1" in line)
    for part in ("22:13:20", "critical", "open", "3", "41", "host-07\\u001b[2J"):
        assert part in row, part
    assert "outage 2" in text
    assert "67.7" not in text
    assert "no incidents so far" in shown(True, status=replace(STATUS, incidents=()))


def test_in_80_columns_an_incident_is_one_line() -> None:
    text = shown(True, width=80, status=replace(STATUS, incidents=(incident("open", "critical"),)))
    row, *_ = (line for line in text.splitlines() if "critical" in line)
    assert "outage 1" in row


def test_without_a_terminal_an_incident_is_logged_when_its_state_or_severity_changes() -> None:
    looks = [("open", "minor"), ("open", "minor"), ("open", "major"), ("resolved", "major"), ("resolved", "major")]
    view = LiveView("", Console(file=io.StringIO()), clock=lambda: 0.0)
    with capture_logs() as logged:
        for look in looks:
            view.update(replace(STATUS, incidents=(incident(*look), incident("resolved", "critical", 2))))
    assert [(line["event"], line["state"], line["severity"]) for line in logged] == [
        ("incident", "open", "minor"), ("incident", "open", "major"), ("incident", "resolved", "major"),
    ]  # fmt: skip
