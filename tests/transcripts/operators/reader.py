"""Reads transcripts of operators in event-time order.

Input: micro-batches divided by ``|``: records ``KEY TIME=VALUE WORD`` divided by commas, ``TOPIC:`` in front if not
``l``; of ``rules``, ``RULE TIME=LIMIT WORD``, with ``off`` behind if it is to end; or ``W TIME`` (watermark of all
topics; ``W TIME TOPIC`` of one), or ``C SECONDS`` (processing time goes on).

Results: the columns of ``show``, ``-`` for none; ``[ACTION]`` in front says which action brings them, as in the
transcripts of windows. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from engine import aggregates, triggers, windows
from engine import operators as ordered
from engine.operators import Logic, Turn
from engine.spec.duration import duration_ms
from engine.spec.job import Job
from engine.stream import Stream
from engine.testing import ABORT, RESTART, Run, TestStream
from tests.engine.operators.conftest import ARRIVED, T0, Missed, job_of, point, points, rule, rules
from tests.engine.operators.test_examples import Silence
from tests.engine.operators.test_inputs import Countdown
from tests.engine.operators.test_operators_match_reference import Longest
from tests.transcripts.scenarios import firings_of, new_name

KILLED = " / killed and restarted"
TIMES = {"time", "left_time", "right_time", "a_time", "b_time", "window_start", "window_end"}


class Totals(Logic):
    """Running count and sum of a key."""

    state = {"n": 0, "total": 0.0}  # noqa: RUF012

    def on_records(self, turn: Turn) -> None:
        turn.state["n"] += 1
        turn.state["total"] += turn["value"]
        turn.emit({"n": turn.state["n"].copy(), "total": np.array(turn.state["total"])})


@dataclass(frozen=True)
class Scenario:
    """One input, and what must come out; ``final``: as bounded input."""

    name: str
    job: Job
    stream: TestStream
    show: list[str]
    firings: list[list[str]]
    late: list[str]
    final: list[str]

    def shown(self, rows: Iterable[dict[str, Any]]) -> list[str]:
        """Results in the notation of the transcript."""
        return sorted(" ".join(_shown(row.get(name), name) for name in self.show) for row in rows)

    def fired(self, some: Run) -> list[list[str]]:
        """For each micro-batch what it has written, in the notation of the transcript."""
        return [self.shown(written.rows) for written in some.written]


@cache
def scenarios(file: Path) -> tuple[Scenario, ...]:
    """All scenarios, each as it is, and once more with a crash and a restart in the middle of it; read once."""
    return tuple(_read(file))


def _read(file: Path) -> Iterator[Scenario]:
    for case in yaml.load(file.read_text(), yaml.CSafeLoader):
        job = job_of(_stream(case["stream"]), late=Missed)
        late = sorted(_split(case.get("late", ""), "|"))
        plain, actions = _input(case["input"], job)
        firings = [sorted(some) for some in firings_of(case.get("expect", ""), actions, len(plain.batches))]
        lines = _split(case["final"], "|") if "final" in case else [line for some in firings for line in some]
        for label, stream in (("", plain), (KILLED, killed(plain))):
            yield Scenario(case["case"] + label, job, stream, case["show"].split(), firings, late, sorted(lines))


def killed(stream: TestStream) -> TestStream:
    """The same: killed where half of it has been read and again at the end, stopped and restored in between."""
    last = len(stream.batches) - 1
    return stream.crashing({last: ABORT} | {last // 2: ABORT, last // 2 + 1: RESTART})


def shown_late(some: Run) -> list[str]:
    """Late records in the notation of the input."""
    names = ("key", "time", "value", "word")
    rows = ((_shown(row[name], name) for name in names) for row in some.late)
    return sorted(f"{key} {time}={value} {word}" for key, time, value, word in rows)


def _shown(value: Any, name: str) -> str:
    if value is None:
        return "-"
    if name in TIMES:
        return f"{(value - T0) / 1000:g}"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _stream(text: str) -> Stream:
    names = {name: getattr(m, name) for m in (aggregates, ordered, triggers, windows) for name in m.__all__}
    inputs = {name: Stream.read(points(name)).key_by("key") for name in ("l", "r", "back")}
    inputs |= {"rules": Stream.read(rules())}
    own = {"Silence": Silence, "Totals": Totals, "Longest": Longest, "Countdown": Countdown}
    # `back` is read as a source by loop() and as a stream by all else
    names |= inputs | own | ({"back": points("back")} if "loop(" in text else {})
    made = eval(text.strip().replace("\n", ""), {"__builtins__": {}}, names)
    assert isinstance(made, Stream)
    return made


def _input(text: str, job: Job) -> tuple[TestStream, dict[str, int]]:
    actions: dict[str, int] = {}
    stream = TestStream(T0, tuple(job.topics), clock=ARRIVED if job.clock == "event" else T0)
    for step in _split(text, "|"):
        if step.startswith("W "):
            when, _, topic = step[2:].partition(" ")
            stream = stream.advance_watermark(duration_ms(when + "s"), topic=topic or None)
            actions.pop("W " + when, None)
            told = ["W " + when]
        elif step.startswith("C "):
            stream = stream.advance_clock(duration_ms(step[2:] + "s"))
            told = [step]
        else:
            topic, _, records = step.rpartition(":")
            topic = topic or "l"
            told = _split(records, ",")
            stream = stream.add(*(_record(item, topic) for item in told), topic=topic)
        for item in told:
            actions[new_name(item, actions)] = len(stream.batches) - 1
    return stream, actions


def _record(text: str, topic: str) -> dict[str, Any]:
    key, when, word, *off = text.split()
    time, _, value = when.partition("=")
    at = round(float(time) * 1000)
    if topic == "rules":
        return rule(at, key, word, float(value), active=not off)
    return point(at, key, float(value), word)


def _split(text: str, by: str) -> list[str]:
    return [part.strip() for part in text.replace("\n", " ").split(by) if part.strip()]
