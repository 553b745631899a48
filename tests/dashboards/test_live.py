"""The terminal's live view: a table in a terminal, lines where there is none, no trust in names."""

from __future__ import annotations

import io

from rich.console import Console

from dashboards.live import LiveView
from dashboards.status import JobStatus, PipelineStatus

NOVELTY = {
    "host.name": "[red]evil\x1b[2J[/red]", "metric": "cpu.user", "@timestamp": 1_700_000_000_000, "kind": "anomaly",
    "record_score": 91.0, "typical": 40.0, "actual": 67.7, "revision": 0,
}  # fmt: skip
STATUS = PipelineStatus(
    started=1_699_999_000_000,
    jobs=(JobStatus("detector", 10, 10, 1350.0, 17, 12, 3, 1_699_999_995_000, 48_200_000, 10_000, 510.0),),
    novelties=(NOVELTY,),
    latency_ms=1_840.0,
    indexed=81_000,
)


def shown(terminal: bool, updates: int = 1) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=150, color_system=None, legacy_windows=False)
    with LiveView("http://127.0.0.1:8880", console, clock=lambda: 1_700_000_000.0) as view:
        for _ in range(updates):
            view.update(STATUS)
    return out.getvalue()


def test_a_terminal_shows_jobs_and_novelties() -> None:
    text = shown(terminal=True)
    for part in (
        "detector",
        "1,350",
        "48.2 MB",
        "22:13:15",
        "5.0 s",
        "17",
        "12",
        "cpu.user",
        "91",
        "67.7",
        ":8880",
        "1.8 s",
    ):
        assert part in text, part


def test_without_a_terminal_each_novelty_is_one_plain_line() -> None:
    lines = shown(terminal=False, updates=3).splitlines()
    assert len(lines) == 2
    assert lines[0] == (
        "2023-11-14T22:13:20.000Z anomaly [red]evil?[2J[/red] cpu.user score 91, typical 40, actual 67.7"
    )
    assert lines[1].startswith("detector 1,350/s lag 3; late 17; dead letters 12; latency 1.8 s; indexed 81000")


def test_names_of_machines_do_not_steer_the_terminal() -> None:
    assert "\x1b[2J" not in shown(terminal=True).replace("\x1b[2K", "")
    assert "[red]evil?[2J[/red]" in shown(terminal=True)
