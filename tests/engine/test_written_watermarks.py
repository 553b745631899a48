"""The watermark that a job writes behind its results: as often as it says something new, and never late.

The boundary is `Operator.result_grid`: without it each advance of the watermark would be a micro-batch of every job
that follows; if it were too coarse, a job that follows would wait for windows that are complete.
"""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.aggregates import Count
from engine.formats import columnar
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.reference import Arrival
from engine.spec.duration import NEVER
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.source import Source
from engine.stream import Stream
from engine.testing.driven import Driven
from engine.watermarks import BoundedOutOfOrderness
from engine.windows import Session, Sliding, Window
from pipelines.contracts.records import Telemetry
from tests.engine.test_watermarks import Counted

T0 = 1_700_000_000_000
PARTITIONS = 4
SECONDS = st.integers(1, 40)


def counting(window: Window, lateness: str = "0s") -> Job:
    source = Source({"t": ColumnarDecoder(Telemetry)}, Telemetry, watermark=BoundedOutOfOrderness("2s", "10s"))
    stream = Stream.read(source).key_by("entity", "metric").window(window, lateness).aggregate(n=Count())
    return stream.write("job", Output("out", Counted, partitions=PARTITIONS), Output("dead", DeadLetter, "json"))


def arrival(time: int) -> list[Arrival]:
    record = {"time": time, "entity": "host", "metric": "m", "value": 1.0, "kind": "gauge"}
    return [Arrival("t", 0, T0 + 10_000_000, record)]


def behind_results(driven: Driven) -> list[tuple[int, int]]:
    """For each message of the results so far its partition and the watermark in it."""
    messages = [message for _, message in driven.messages if message.topic == "out"]
    return [(each.partition, columnar.decode(each.value, Counted.arrow_schema())[1]) for each in messages]


@given(
    size=SECONDS,
    every=SECONDS,
    offset=st.integers(0, 39),
    lateness=st.sampled_from(["0s", "15s"]),
    shards=st.sampled_from([1, 2, 4]),
    steps=st.lists(st.integers(-5_000, 25_000), min_size=2, max_size=12),
)
def test_a_watermark_is_written_where_it_passes_the_end_of_a_window_and_only_there(
    size: int, every: int, offset: int, lateness: str, shards: int, steps: list[int]
) -> None:
    job = counting(Sliding(f"{size}s", every=f"{every}s", offset=f"{offset}s"), lateness)
    driven, time, seen, watermarks = Driven(job, shards), T0, 0, [NEVER]
    for step in steps:
        time += step
        written = driven.run([arrival(time)]).written[-1]
        watermarks.append(max(written.watermark, watermarks[-1]))
        now = watermarks[-1]
        messages = behind_results(driven)
        new, seen = messages[seen:], len(messages)

        last_end = now - (now - 1000 * (offset + size)) % (1000 * every)  # the newest end of a window that is complete
        known = {p: max((mark for part, mark in messages if part == p), default=NEVER) for p in range(PARTITIONS)}
        assert set(known.values()) == {last_end}, "all partitions say so, whichever of them had results since"
        if watermarks[-2] >= last_end and not written.rows:
            assert not new, "a watermark between two ends of windows says nothing"


def test_where_results_may_lie_anywhere_each_advance_is_written() -> None:
    driven, marks = Driven(counting(Session("30s"))), []
    for second in (1, 2, 3):
        messages = behind_results(driven.run([arrival(T0 + 1000 * second)]))
        marks.append(min(mark for _, mark in messages[-PARTITIONS:]))
    assert [later - earlier for earlier, later in pairwise(marks)] == [1000, 1000]
