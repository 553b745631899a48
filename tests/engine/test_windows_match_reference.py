"""The sharded operator gives what the reference interpreter says, whatever the order, batches, partitions or shards."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine.aggregates import AnyAggregate, Constant, Count, Last, Max, Mean, Min, Quantile, Rate, Std
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.reference import Arrival, Heartbeat, Outcome, Watermark, interpret
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.source import Source
from engine.stream import Stream
from engine.watermarks import BoundedOutOfOrderness
from engine.windows import Sliding, Tumbling
from pipelines.contracts.records import Features, Telemetry

T0 = 1_700_000_000_000
ARRIVED = T0 + 86_400_000
"""After all event times, so that no time lies ahead of its arrival."""
SPAN = 60_000
SQUARES_UNDERFLOW = 1e-150
TOPIC = "telemetry"
EXACT = ("entity", "metric", "kind", "window_start", "window_end", "count", "min", "max")
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

AGGREGATES: dict[str, AnyAggregate] = {
    "kind": Constant("kind"),
    "count": Count(),
    "mean": Mean("value"),
    "std": Std("value"),
    "min": Min("value"),
    "max": Max("value"),
    "last": Last("value"),
    **{name: Quantile("value", q) for name, q in QUANTILES.items()},
    "rate": Rate("value", only=("kind", "counter"), lookback="25s"),
}
WINDOWS = {
    "tumbling": Tumbling("10s"),
    "sliding": Sliding("20s", every="5s"),
    "odd": Sliding("21s", every="7s", offset="2s"),
    "of many slices": Sliding("40s", every="500ms", offset="200ms"),
}

Batch = list[Arrival | Watermark | Heartbeat]
some_examples = settings(
    deadline=None,
    max_examples=15,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
"""A counterexample is not shrunk: inputs are small, and shrinking takes minutes."""


def extractor(window: Sliding, lateness: str, bound: str = "0s") -> Job:
    source = Source({TOPIC: ColumnarDecoder(Telemetry)}, Telemetry, watermark=BoundedOutOfOrderness(bound, "1h"))
    stream = Stream.read(source).key_by("entity", "metric").window(window, lateness).aggregate(**AGGREGATES)
    dead, late = Output("deadletter", DeadLetter, "json"), Output("features.late", Telemetry)
    return stream.write("extractor", Output("features", Features), dead, late)


def sample(entity: str, kind: str, time: int, value: float) -> dict[str, Any]:
    return {"time": T0 + time, "entity": entity, "metric": kind, "value": value, "kind": kind}


gauges = st.one_of(
    st.floats(-1e6, 1e6), st.sampled_from([0.0, -0.0, 1e-300, -1e-13, 5e-12, 1e-9, -1e100, 1e12]), st.integers(-5, 5)
)
counters = st.integers(0, 50)


@st.composite
def records(draw: st.DrawFn, most: int = 40) -> list[dict[str, Any]]:
    """Samples of some series, at most one of a series at a time, in any order."""
    times = st.integers(0, SPAN // 250 - 1).map(lambda t: t * 250)
    where = st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["gauge", "counter"]), times)
    places = draw(st.lists(where, min_size=1, max_size=most, unique=True))
    return [sample(e, k, t, float(draw(counters if k == "counter" else gauges))) for e, k, t in places]


@st.composite
def batches(draw: st.DrawFn) -> list[Batch]:
    """Samples in any order, on any partition, cut into any batches; at last all partitions say that they have ended."""
    partitions = draw(st.integers(1, 3))
    arrivals: Batch = [
        Arrival(TOPIC, draw(st.integers(0, partitions - 1)), ARRIVED, record) for record in draw(records())
    ]
    cuts = sorted(draw(st.lists(st.integers(0, len(arrivals)), max_size=5)))
    parts = [arrivals[a:b] for a, b in zip([0, *cuts], [*cuts, len(arrivals)], strict=True)]
    return [*parts, end_of(partitions)]


def end_of(partitions: int, end: int = T0 + 10 * SPAN) -> Batch:
    return [Watermark(TOPIC, p, ARRIVED, end) for p in range(partitions)]


def in_one_batch(batches: Sequence[Batch]) -> list[Batch]:
    everything = [entry for batch in batches[:-1] for entry in batch if isinstance(entry, Arrival)]
    return [sorted(everything, key=lambda e: e.record["time"]), batches[-1]]


def final(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    ordered = sorted(rows, key=lambda row: row["revision"])
    return {(row["entity"], row["metric"], row["window_end"]): row for row in ordered}


def assert_same(row: dict[str, Any], expected: dict[str, Any], revision: bool = True) -> None:
    """Equal: floats to 1e-9 of the window's largest value, quantiles to 2 %."""
    scale = max(abs(expected["min"]), abs(expected["max"]), SQUARES_UNDERFLOW)
    for name in EXACT if not revision else (*EXACT, "revision"):
        assert row[name] == expected[name], (name, row, expected)
    for name in ("mean", "std", "last"):
        assert math.isclose(row[name], expected[name], rel_tol=1e-9, abs_tol=1e-9 * scale), (name, row, expected)
    for name in QUANTILES:
        assert math.isclose(row[name], expected[name], rel_tol=0.02, abs_tol=1e-12), (name, row, expected)
    if expected["rate"] is None:
        assert row["rate"] is None, (row, expected)
    else:
        assert row["rate"] == pytest.approx(expected["rate"], rel=1e-9), (row, expected)


def assert_matches(run: Any, outcome: Outcome) -> None:
    """Equal in every window and every revision."""
    assert run.watermarks == outcome.watermarks
    got = {(r["entity"], r["metric"], r["window_end"], r["revision"]): r for r in run.rows}
    wanted = {(r["entity"], r["metric"], r["window_end"], r["revision"]): r for r in outcome.rows}
    assert len(got) == len(run.rows), "a revision was written twice"
    assert got.keys() == wanted.keys()
    for name, row in got.items():
        assert_same(row, wanted[name])
    assert sorted(map(repr, run.late)) == sorted(map(repr, outcome.late))


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@some_examples
@given(input=batches(), shards=st.sampled_from([1, 2, 4]), lateness=st.sampled_from(["0s", "5s", "20s"]))
def test_every_revision_and_every_late_record_is_as_the_reference_says(
    driven: Callable[..., Any], window: Sliding, input: list[Batch], shards: int, lateness: str
) -> None:
    job = extractor(window, lateness)
    assert_matches(driven(job, shards).run(input), interpret(job, input))


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@some_examples
@given(input=batches(), shards=st.sampled_from([1, 2, 4]))
def test_final_windows_do_not_depend_on_order_batches_partitions_or_shards(
    driven: Callable[..., Any], window: Sliding, input: list[Batch], shards: int
) -> None:
    job = extractor(window, lateness="2m")
    run = driven(job, shards).run(input)
    wanted = final(interpret(job, in_one_batch(input)).rows)
    assert run.final().keys() == wanted.keys()
    for name, row in run.final().items():
        assert_same(row, wanted[name], revision=False)
    assert run.late == []


@some_examples
@given(input=batches(), shards=st.sampled_from([1, 2, 4]), lateness=st.sampled_from(["0s", "3s", "10s"]))
def test_every_record_is_in_a_window_or_in_the_late_topic(
    driven: Callable[..., Any], input: list[Batch], shards: int, lateness: str
) -> None:
    run = driven(extractor(Tumbling("10s"), lateness), shards).run(input)
    arrivals = [e for batch in input for e in batch if isinstance(e, Arrival)]
    assert sum(row["count"] for row in run.final().values()) + len(run.late) == len(arrivals)
    assert run.dead == []
