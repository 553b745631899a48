"""A key may have any name that the results themselves do not need: the engine's own columns have names of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine import (
    AfterCount,
    AfterWatermark,
    Broadcast,
    Constant,
    Correlation,
    Count,
    CountWindows,
    Deduplicate,
    DeltaWindows,
    Distinct,
    EachKey,
    Event,
    First,
    Histogram,
    Instant,
    IntervalJoin,
    KeyCallback,
    Last,
    Mean,
    Pattern,
    Process,
    Quantile,
    Rate,
    Record,
    Session,
    Sliding,
    Std,
    Stream,
    Sum,
    TemporalJoin,
    TopK,
    Tumbling,
    WindowJoin,
)
from engine.operators.turn import Logic, Turn
from engine.spec.job import Job
from engine.testing import TestStream, run
from tests.engine.readings import T0, Reading

pytestmark = pytest.mark.filterwarnings("ignore:Field name")  # "register", of a record class
NAMES = (
    *(
        "n",
        "bucket",
        "item",
        "rank",
        "register",
        "opened",
        "fresh",
        "open",
        "number",
        "first",
        "start",
        "last",
        "passed",
    ),
    *(
        "slot",
        "x",
        "y",
        "xy",
        "most_x",
        "increase",
        "elapsed",
        "key",
        "seen",
        "timer",
        "state",
        "due",
        "until",
        "count",
    ),
    *("partial", "end", "changed", "row", "kind", "room", "sum", "mean", "records", "group", "left", "right", "stage"),
)
AGGREGATES = {
    "c": Count(),
    "total": Sum("v"),
    "average": Mean("v"),
    "spread": Std("v"),
    "a": First("v"),
    "b": Last("v"),
    "same": Constant("v"),
    "kinds": Distinct("s"),
    "top": TopK("s", 2),
    "mid": Quantile("v", 0.5),
    "histogram": Histogram("v", (1.0, 2.0)),
}


class Total(KeyCallback):
    """The sum of a key so far."""

    def on_record(self, record: Any, state: Any, timer: Any) -> Any:
        state["total"] = state.get("total", 0.0) + record["v"]
        yield {"total": state["total"]}


class Counts(Logic):
    """The sum of a key so far, over columns, in a state that has the name of a key."""

    state = {"seen": 0.0}  # noqa: RUF012

    def on_records(self, turn: Turn) -> None:
        turn.state["seen"] += turn["v"]
        turn.emit({"total": turn.state["seen"]})


Names = tuple[str, ...]


def read(names: Names, topic: str = "t") -> Stream:
    return Stream.read_json(topic, Reading).select("time", "v", "s", **dict.fromkeys(names, "k")).key_by(*names)


def joined(how: Any) -> Callable[[Names], Stream]:
    return lambda names: read(names).join(read(names, "u"), how)


RISE = Pattern((Event("a", "v > 0"), Event("b", "v > a_v")), within="1m", columns=("v",), after="past_last")
JOBS: dict[str, Callable[[Names], Stream]] = {
    "slices": lambda names: read(names).window(Tumbling("10s"), "5s").aggregate(**AGGREGATES, rate=Rate("v")),
    "several slices": lambda names: read(names).window(Sliding("10s", every="2s"), "5s").aggregate(**AGGREGATES),
    "blocks": lambda names: read(names).window(Sliding("40s", every="1s"), "5s").aggregate(**AGGREGATES),
    "a trigger": lambda names: (
        read(names).window(Tumbling("10s"), "5s").trigger(AfterWatermark(early=AfterCount(2))).aggregate(**AGGREGATES)
    ),
    "sessions": lambda names: read(names).window(Session("3s"), "5s").aggregate(**AGGREGATES),
    "counts": lambda names: read(names).window(CountWindows(2)).aggregate(**AGGREGATES),
    "deltas": lambda names: read(names).window(DeltaWindows("v", 1.0)).aggregate(**AGGREGATES),
    "windows of windows": lambda names: (
        read(names).window(Tumbling("5s")).aggregate(total=Sum("v")).window(Tumbling("10s")).aggregate(t=Sum("total"))
    ),
    "deduplicate": lambda names: read(names).process(Deduplicate(("v",), within="5s")),
    "pattern": lambda names: read(names).process(RISE),
    "interval join": joined(IntervalJoin("-3s", "3s", how="left")),
    "temporal join": joined(TemporalJoin("left")),
    "window join": joined(WindowJoin(Tumbling("5s"))),
    "correlation": joined(Correlation("v", "v", Sliding("10s", every="1s"))),
    "broadcast": lambda names: read(names).join(
        read(names, "u"), Broadcast(identity=(*names, "s"), on=names, where='v >= "v_right"')
    ),
}


def job(kind: str, names: Names) -> Job:
    return JOBS[kind](names).write("o")


def stream(topics: tuple[str, ...]) -> TestStream:
    """Records that are in time, out of order, late within the lateness, and too late, in both topics."""
    input = TestStream(T0, topics=topics).advance_clock("1h")
    for seconds in ([1, 2, 4, 3], [6, 5, 8], [12, 17, 14], [3, 9, 21]):
        for topic in topics:
            rows = [
                {"time": T0 + s * 1000, "k": k, "v": float((s * 7 + i) % 5), "s": "pq"[s % 2]}
                for s in seconds
                for i, k in enumerate("ab")
            ]
            input = input.add(*rows, topic=topic)
        input = input.advance_watermark(f"{max(seconds)}s").restart()
    return input.advance_watermark("1h")


def outcome(kind: str, names: Names) -> tuple[list[str], list[str]]:
    """The results and late records without the names of the key."""
    results = run(job(kind, names), stream(tuple(job(kind, names).topics)))
    assert not results.dead

    def plain(rows: list[dict[str, Any]]) -> list[str]:
        assert all(len({row[name] for name in names}) == 1 for row in rows)
        return sorted(f"{row[names[0]]} {sorted((c, v) for c, v in row.items() if c not in names)}" for row in rows)

    return plain(results.rows), plain(results.late)


@pytest.mark.parametrize("kind", JOBS)
def test_results_and_late_records_do_not_depend_on_the_names_of_the_key(kind: str) -> None:
    """The key has a column of each name, all with the same value."""
    rows, late = outcome(kind, tuple(f"subject_{name}" for name in NAMES))
    assert rows
    assert late or kind == "blocks"
    assert outcome(kind, NAMES) == (rows, late)


def test_a_process_with_a_key_of_any_name() -> None:
    class Running(Record):
        time: Instant
        total: float

    types = type("Named", (Running,), {"__annotations__": dict.fromkeys(NAMES, str), "identity": NAMES})
    process = Process(Counts(), idle_after="1h"), Process(EachKey(Total(), ("v",)))
    for each in process:
        made = run(read(NAMES).process(each).write("o", types), stream(("t",)))
        assert {row["seen"] for row in made.rows} == {"a", "b"}
