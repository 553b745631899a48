"""Why nobody was alerted: each step of the page is where it ended, for what is known of a series."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.formats.dead_letters import DeadLetter
from pipelines.contracts.records import Incident, Label
from pipelines.contracts.records.incident import AffectedSeries
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
    "incident": [(here(verdicts=NEWS, **UNUSUAL), ["score of 80", "incidents.score = 50", "false_pages = 2"])],
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
    routed = load(
        **{
            "notify.channels": {"night": {"kind": "webhook", "url": "http://127.0.0.1:1"}},
            "notify.routes": [{"name": "databases", "machine": ["db-*"], "channels": ["night"]}],
        }
    )
    known = here(verdicts=NEWS, incidents=[OPENED], **UNUSUAL)
    answer = walk(known, routed, 58.4).answer
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


PEERLESS = "neither its name nor a label"
LASTS = AffectedSeries(
    entity="web-1", metric="cpu", kind="outlier", since=START - STEP, reported=START, record_score=60, change=""
)


@pytest.mark.parametrize(
    ("metric", "known", "name", "words"),
    [
        ("_peers.cpu", {}, "unusual", ["others of web-#", "four", "30 windows"]),
        ("_peers.cpu", {"rules": ["mute"]}, "rules", ["mute"]),
        ("_peers.cpu", {"verdicts": verdict("outlier", record_score=60.0)}, "incident", ["outlier with a score of 60"]),
        ("_peers.cpu", {"incidents": [incident(opened=START - STEP, end=None, series=[LASTS])]}, "open", ["3f2ab41c"]),
        ("_peers.cpu", ABSENT, "arrived", ["no values of"]),
        ("disk.used_percent~full", {}, "unusual", ["may never be full"]),
        ("cpu~full", {}, "unusual", ["cpu has no bound", "detector.bounds"]),
        (
            "disk.used_percent~full",
            {"belief": BELIEF | {"full_latest": START + 10**9, "full_median": START + 10**8}},
            "unusual",
            ["at the latest", "within 1 d", "detector.full_within"],
        ),
    ],
)
def test_what_verdicts_alone_have_is_walked_by_what_is_known_of_its_metric(
    metric: str, known: dict[str, Any], name: str, words: list[str]
) -> None:
    found = walked(replace(here(**UNUSUAL | known), metric=metric)).answer
    assert found is not None
    assert found.step.name == name, found.words
    for word in words:
        assert word in found.words


def test_machines_without_peers_are_told_so() -> None:
    found = walked(replace(here(**UNUSUAL), machine="mail", metric="_peers.cpu")).answer
    assert found is not None
    assert PEERLESS in found.words


@pytest.mark.parametrize("belief", [BELIEF, {}])
def test_a_window_without_a_value_is_walked_past(belief: dict[str, Any]) -> None:
    """The first window of a counter has no rate, a window of a log no value: what was said of it decides."""
    found = walked(here(windows=[window() | {"value": None}], belief=belief))
    assert found.answer is not None and found.answer.step.name == "score"
    assert any("no value that is judged by itself" in each.words for each in found.findings)
    told = walked(here(windows=[window() | {"value": None}], verdicts=NEWS, incidents=[OPENED])).answer
    assert told is not None and told.step.name == "told"


_VALUES = st.none() | st.floats(-1e300, 1e300)
_KINDS = st.sampled_from(
    ["normal", "learning", "anomaly", "absence", "recovered", "outlier", "exhaustion", "new_normal"]
)
_METRICS = st.sampled_from(
    ["cpu", "logs", "_machine", "_peers.cpu", "disk.used_percent~full", "_peers.x~full", "", "~full"]
)


@settings(max_examples=300, deadline=None)
@given(
    _METRICS, st.lists(_VALUES, max_size=3), st.none() | _KINDS, _VALUES, st.booleans(), st.booleans(), st.booleans(),
    st.sampled_from([None, START - STEP, END + STEP]),
)  # fmt: skip
def test_whatever_is_known_the_walk_ends_at_a_step_or_with_who_was_told(
    metric: str, values: list[float | None], kind: str | None, band: float | None, believed: bool, ruled: bool,
    opened: bool, watermark: int | None,
) -> None:  # fmt: skip
    windows = [window(0.0 if v is None else v, n) | {"value": v} for n, v in enumerate(values)]
    said = {} if kind is None else verdict(kind, lower=band, upper=band, record_score=60.0)
    known = here(
        windows=windows, verdicts=said, belief=BELIEF if believed else {}, rules=["mute"] if ruled else [],
        incidents=[OPENED] if opened else [], watermark=watermark,
    )  # fmt: skip
    found = walked(replace(known, metric=metric))
    assert found.findings and found.answer == found.findings[-1]
    assert spoken(found, END - START)
