"""Why nobody was alerted: each step of the page is where it ended, for what is known of a series."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.formats.dead_letters import DeadLetter
from pipelines.contracts.records import Incident, Label
from pipelines.contracts.settings import load
from pipelines.query.dead_letters.letters import Letter
from pipelines.query.told import SentMessage
from pipelines.why_not.evidence import Evidence
from pipelines.why_not.steps import STEPS, with_steps
from pipelines.why_not.walk import Walk, spoken, walk
from tests.pipelines.proof.test_comparison import incident

PAGE = Path(__file__).parents[3] / "docs" / "why-no-alert.md"
START, STEP = 1_795_219_200_000, 10_000
END = START + 3 * STEP
BELIEF = {"@timestamp": START - STEP, "kind": "normal", "typical": 50.0, "lower": 45.0, "upper": 55.0, "values": 400}


def window(value: float = 50.0, number: int = 0, **fields: Any) -> dict[str, Any]:
    known = {"value": value, "mean": value, "min": value - 1, "max": value + 1, "count": 10}
    return known | {"window_start": START + number * STEP, "window_end": START + (number + 1) * STEP} | fields


def verdict(kind: str = "normal", **fields: Any) -> dict[int, dict[str, Any]]:
    known = {"kind": kind, "record_score": 20.0, "lower": 45.0, "upper": 55.0, "revision": 0}
    return {START + STEP: known | {"window_start": START, "@timestamp": START + STEP} | fields}


def here(**known: Any) -> Evidence:
    """What is known: the values arrived, are usual, and nothing was said of them; but for what is given."""
    usual: dict[str, Any] = {"windows": [window()], "watermark": END + STEP, "belief": BELIEF}
    return Evidence("web-1", "cpu", START, END, **usual | known)


ABSENT: dict[str, Any] = {"windows": [], "verdicts": {}}
NEWS = verdict("anomaly", record_score=80.0)
UNUSUAL = {"windows": [window(90.0)]}
OPENED: Incident = incident(opened=START + STEP, start=START, end=None)
LABEL = Label(entity="web-1", metric="cpu", start=START, verdict="false_alarm")
SENT = SentMessage(START + 2 * STEP, "night", "opened", "web-1: cpu", (OPENED.id,))
LETTER = Letter(
    DeadLetter(
        time=START, job="normalizer", code="JSON_MALFORMED", reason="no JSON", topic="telemetry.json", partition=0,
        offset=7, payload='{"host.name": "web-1"',
    ),
    "deadletter",
)  # fmt: skip

CASES: dict[str, list[tuple[Evidence, list[str]]]] = {
    "arrived": [
        (here(**ABSENT, belief={}), ["not known", "no machine web-1"]),
        (here(**ABSENT, belief={}, known=["cpu.util", "mem"]), ["known of web-1: cpu.util, mem"]),
        (here(**ABSENT), ["no values of cpu of web-1"]),
        (here(**ABSENT, letters=[LETTER]), ["telemetry.json/0@7", "JSON_MALFORMED"]),
        (here(**ABSENT, watermark=START - STEP), ["not judged yet", "2026-11-21T"]),
        (here(**ABSENT, watermark=None), ["not judged yet", "none are complete"]),
    ],
    "in_time": [(here(**ABSENT, late=3), ["3 samples", "allowed_lateness"])],
    "shown": [(here(windows=[window(max=300.0)]), ["300", "the peak is lost"])],
    "learned": [(here(verdicts=verdict("learning"), **UNUSUAL), ["learned"])],
    "unusual": [(here(), ["50 is within 45 to 55"]), (here(verdicts=verdict()), ["within"])],
    "score": [
        (here(**UNUSUAL), ["no verdict is stored", "58"]),
        (here(verdicts=verdict(record_score=31.5), **UNUSUAL), ["31.5", "58", "50"]),
    ],
    "recurs": [(here(verdicts=verdict(record_score=72.0), **UNUSUAL), ["72", "come before"])],
    "rules": [
        (here(rules=["upgrade"], verdicts=verdict(rules=["upgrade"], record_score=0.0), **UNUSUAL), ["upgrade"]),
        (here(rules=["upgrade"], **UNUSUAL), ["upgrade"]),
        (here(rules=["upgrade"], labels=[LABEL], **UNUSUAL), ["false_alarm"]),
    ],
    "open": [
        (here(verdicts=NEWS, incidents=[incident(opened=START - STEP, end=None)], **UNUSUAL), ["3f2ab41c"]),
        (
            here(verdicts=verdict(**{"incident.state": "open", "since": START - STEP}, record_score=9.0), **UNUSUAL),
            ["had begun at"],
        ),
    ],
    "incident": [(here(verdicts=NEWS, **UNUSUAL), ["anomaly with a score of 80", "incidents.score = 50"])],
    "told": [(here(verdicts=NEWS, incidents=[OPENED], **UNUSUAL), ["notify.channels"])],
}  # fmt: skip


def walked(known: Evidence) -> Walk:
    return walk(known, load(), 58.4)


@pytest.mark.parametrize(("name", "known", "words"), [(name, *case) for name, cases in CASES.items() for case in cases])
def test_it_ends_at_the_step_that_explains_it_with_the_numbers(name: str, known: Evidence, words: list[str]) -> None:
    found = walked(known)
    assert found.answer
    assert found.answer.step.name == name
    assert [each.step for each in found.findings] == list(STEPS[: len(found.findings)]), (
        "each step before it was looked at"
    )
    for word in words:
        assert word in found.answer.words
    assert spoken(found, END - START).startswith(f"Step {len(found.findings)}, ")


def test_each_step_of_the_page_has_a_case() -> None:
    assert list(CASES) == [step.name for step in STEPS]


def test_who_was_told_hears_who_took_the_message_and_when() -> None:
    found = walked(here(verdicts=NEWS, incidents=[OPENED], told=[SENT], **UNUSUAL))
    assert found.answer is None
    assert "night took it at 2026-11-21T" in spoken(found, END - START)


def test_routes_that_do_not_take_it_say_why() -> None:
    settings = load(
        **{
            "notify.channels": {"night": {"kind": "webhook", "url": "http://127.0.0.1:1"}},
            "notify.routes": [{"name": "databases", "machine": ["db-*"], "channels": ["night"]}],
        }
    )
    known = here(verdicts=NEWS, incidents=[OPENED], **UNUSUAL)
    answer = walk(known, settings, 58.4).answer
    assert answer
    assert (answer.step.name, "route databases: machine" in answer.words) == ("told", True)


def test_the_window_that_is_farthest_off_is_looked_at() -> None:
    known = here(windows=[window(), window(95.0, 1), window(56.0, 2)])
    answer = walked(known).answer
    assert answer
    assert answer.step.name == "score"
    assert any("value 95" in each.words for each in walked(known).findings)
    assert walked(replace(known, windows=[window(54.0), window(53.0, 1)])).answer.step.name == "unusual"  # type: ignore[union-attr]


def test_the_page_has_the_steps_of_the_command_in_their_order() -> None:
    page = PAGE.read_text()
    assert with_steps(page) == page
    rows = [line for line in page.splitlines() if line.startswith("| ") and line[2:3].isdigit()]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [
        f"{number} {step.question}" for number, step in enumerate(STEPS, 1)
    ]
    assert with_steps("no table") == "no table"
