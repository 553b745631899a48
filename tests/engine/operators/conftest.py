"""Streams, their random input, and what it means that the operator gives what the reference says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.reference import Arrival, Heartbeat, Watermark, interpret
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.record import Keyword, Record
from engine.spec.source import Source
from engine.stream import Stream
from engine.watermarks import BoundedOutOfOrderness

T0 = 1_700_000_000_000
SPAN = 30_000
ARRIVED = T0 + 86_400_000
Batch = list[Arrival | Watermark | Heartbeat]
Check = Callable[..., None]


class Point(Record):
    """A record of both keyed streams."""

    identity = ("key", "time")

    time: int
    key: Keyword
    value: float | None
    word: Keyword


class Rule(Record):
    """A record of the slow stream."""

    identity = ("rule", "time")

    time: int
    rule: Keyword
    word: Keyword
    limit: float
    active: bool


class Missed(Record):
    """What came too late of points and rules: the columns that both may have."""

    identity = ("key", "time")

    time: int
    key: Keyword | None = None
    value: float | None = None
    word: Keyword


class Result(Record):
    """All columns that any of the operators under test gives."""

    identity = ("key",)

    key: Keyword
    time: int | None = None
    value: float | None = None
    word: Keyword | None = None
    value_right: float | None = None
    word_right: Keyword | None = None
    left_time: int | None = None
    right_time: int | None = None
    window_start: int | None = None
    window_end: int | None = None
    revision: int | None = None
    n: int | None = None
    total: float | None = None
    mean: float | None = None
    first: float | None = None
    last: float | None = None
    rate: float | None = None
    pairs: int | None = None
    correlation: float | None = None
    rule: Keyword | None = None
    limit: float | None = None
    active: bool | None = None
    a_time: int | None = None
    b_time: int | None = None
    c_time: int | None = None
    a_value: float | None = None
    b_value: float | None = None
    c_value: float | None = None


def points(topic: str, bound: str = "0s", **more: Any) -> Source:
    watermark = BoundedOutOfOrderness(bound, "1h")
    return Source({topic: ColumnarDecoder(Point)}, Point, watermark=watermark, **more)


def rules(bound: str = "0s") -> Source:
    return Source({"rules": ColumnarDecoder(Rule)}, Rule, watermark=BoundedOutOfOrderness(bound, "1h"))


def job_of(stream: Stream, late: type[Record] = Point) -> Job:
    return stream.write("job", Output("out", Result), Output("dead", DeadLetter, "json"), Output("late", late))


def point(time: int, key: str = "a", value: float | None = 1.0, word: str = "x") -> dict[str, Any]:
    return {"time": T0 + time, "key": key, "value": value, "word": word}


def rule(time: int, name: str, word: str, limit: float, active: bool = True) -> dict[str, Any]:
    return {"time": T0 + time, "rule": name, "word": word, "limit": limit, "active": active}


def rows_of(rows: Sequence[dict[str, Any]], columns: Sequence[str] = tuple(Result.model_fields)) -> list[str]:
    """Rows in a form that can be compared: numbers to 9 digits."""

    def plain(value: Any) -> Any:
        return float(f"{value:.9g}") + 0.0 if isinstance(value, float) else value

    return sorted(repr({c: plain(row.get(c)) for c in columns}) for row in rows)


values = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 2.0, 3.0]), st.floats(-10, 10).map(lambda v: round(v, 3)))
times = st.integers(0, SPAN // 500).map(lambda t: t * 500)


def some_records(keys: str, span: int, values: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[dict[str, Any]]]:
    """Records of each topic: of some keys, within so many milliseconds."""
    at = st.integers(0, span // 500).map(lambda t: t * 500)
    a_point = st.builds(point, at, st.sampled_from(keys), values, st.sampled_from("xyz"))
    # a rule is seldom withdrawn, and in effect for a while: else there is little that it could concern
    limits, active = st.sampled_from([-5.0, 0.5, 1.5]), st.sampled_from([True, True, True, False])
    early = st.integers(0, span // 1000).map(lambda t: t * 500)
    a_rule = st.builds(rule, early, st.sampled_from("pq"), st.sampled_from("xy"), limits, active)
    return {"l": a_point, "r": a_point, "rules": a_rule}


@st.composite
def arrivals(draw: st.DrawFn, topics: Sequence[str], most: int = 30, partitions: int = 2) -> list[Arrival]:
    """Records of some topics in any order, on any partition: few or many, of one key or some, close or far apart."""
    often = st.sampled_from([0.0, 1.0, 2.0, 3.0])
    keys, span = draw(st.sampled_from(["a", "a", "ab", "abc"])), draw(st.sampled_from([SPAN // 3, SPAN]))
    records = some_records(keys, span, draw(st.sampled_from([values, often])))
    least = draw(st.sampled_from([0, most - 6, most - 2]))
    found = draw(st.lists(st.sampled_from(topics), min_size=least, max_size=most))
    return [Arrival(t, draw(st.integers(0, partitions - 1)), ARRIVED, draw(records[t])) for t in found]


def ends(topics: Sequence[str], partitions: int = 2) -> Batch:
    return [Watermark(topic, p, ARRIVED, T0 + 10 * SPAN) for topic in topics for p in range(partitions)]


@st.composite
def any_batches(draw: st.DrawFn, topics: Sequence[str]) -> list[Batch]:
    """Input in any order and any batches; writers send watermarks at any moment, so that some of it is late."""
    entries: Batch = list(draw(arrivals(topics)))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2, 4]))):
        told = Watermark(draw(st.sampled_from(topics)), draw(st.integers(0, 1)), ARRIVED, T0 + draw(times))
        entries.insert(draw(st.integers(0, len(entries))), told)
    cuts = sorted(draw(st.lists(st.integers(0, len(entries)), max_size=5)))
    parts = [entries[a:b] for a, b in zip([0, *cuts], [*cuts, len(entries)], strict=True)]
    return [*parts, ends(topics)]


@st.composite
def shuffled_batches(draw: st.DrawFn, topics: Sequence[str], bound: int) -> tuple[list[Batch], list[Batch]]:
    """Input out of order by less than a bound, in any batches; and the same at once."""
    found = draw(arrivals(topics))
    moved = sorted(found, key=lambda e: (e.record["time"] + draw(st.integers(0, bound - 1)),))
    cuts = sorted(draw(st.lists(st.integers(0, len(moved)), max_size=6)))
    parts: list[Batch] = [list(moved[a:b]) for a, b in zip([0, *cuts], [*cuts, len(moved)], strict=True)]
    return [*parts, ends(topics)], [list(found), ends(topics)]


some_examples = settings(
    deadline=None,
    max_examples=8,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="session")
def agrees(driven: Callable[..., Any]) -> Check:
    """``agrees(job, input, shards)``: operator and reference give the same rows, late records and watermarks."""

    def check(job: Job, batches: list[Batch], shards: int, at_once: list[Batch] | None = None) -> None:
        run, reference = driven(job, shards).run(batches), interpret(job, at_once or batches)
        assert rows_of(run.rows) == rows_of(reference.rows)
        late = tuple(job.late.record.model_fields) if job.late else ()
        assert rows_of(run.late, late) == rows_of(reference.late, late)
        assert run.dead == [] or getattr(job.processor, "most", None), "nothing is refused but keys beyond the most"
        if at_once:
            assert run.late == []
        else:
            assert run.watermarks == reference.watermarks

    return check
