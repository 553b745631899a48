"""Cases of late data that once went wrong, each by hand, and what an older state lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.aggregates import Count, Last, Max, Mean, Quantile, Rate
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.reference import Arrival, Watermark, interpret
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from engine.spec.operator import Operator
from engine.spec.output import Output
from engine.spec.record import Finite, Keyword, Record
from engine.spec.source import Source
from engine.stream import Stream
from engine.windows import Sliding, Tumbling
from pipelines.contracts.records import Telemetry

T0 = 1_700_000_000_000
ARRIVED = T0 + 86_400_000


class Panes(Record):
    """Results that may all be absent: what a job writes whose aggregates come and go."""

    identity = ("entity", "metric", "window_end")

    entity: Keyword
    metric: Keyword
    window_start: int
    window_end: int
    revision: int
    count: int | None = None
    mean: Finite | None = None
    max: Finite | None = None
    p50: Finite | None = None
    last: Finite | None = None
    rate: Finite | None = None


def job(window: Sliding, lateness: str, **aggregates: Any) -> Job:
    stream = Stream.read(Source({"t": ColumnarDecoder(Telemetry)}, Telemetry)).key_by("entity", "metric")
    out, dead, late = Output("out", Panes), Output("dead", DeadLetter, "json"), Output("late", Telemetry)
    return stream.window(window, lateness).aggregate(**aggregates).write("job", out, dead, late)


def at(second: float, value: float, metric: str = "m") -> Arrival:
    time = T0 + round(second * 1000)
    record = {"time": time, "entity": "a", "metric": metric, "value": value, "kind": "counter"}
    return Arrival("t", 0, ARRIVED, record)


def watermark(second: float) -> Watermark:
    return Watermark("t", 0, ARRIVED, T0 + round(second * 1000))


def rates(rows: list[dict[str, Any]]) -> list[tuple[int, int, Any]]:
    return sorted(((r["window_end"] - T0) // 1000, r["revision"], r["rate"]) for r in rows)


def test_a_late_last_sample_is_where_the_next_window_of_the_counter_starts(driven: Callable[..., Any]) -> None:
    counter = job(Tumbling("10s"), "1m", count=Count(), rate=Rate("value"))
    input = [[at(5, 10), watermark(10)], [at(8, 2)], [at(12, 5), watermark(20)]]
    run = driven(counter).run(input)
    assert rates(run.rows) == rates(interpret(counter, input).rows)
    assert rates(run.rows) == [(10, 0, None), (10, 1, None), (20, 0, pytest.approx(3 / 4))]  # 10, then 2: begun anew


def test_a_late_sample_revises_no_window_ahead_of_it(driven: Callable[..., Any]) -> None:
    counter = job(Tumbling("10s"), "10m", count=Count(), rate=Rate("value", lookback="20s"))
    steady = [at(t, t) for t in range(5, 100, 10)]
    input = [[*steady, watermark(100)], [at(88, 87)], [watermark(200)]]
    run = driven(counter).run(input)
    assert rates(run.rows) == rates(interpret(counter, input).rows)
    assert [end for end, revision, _ in rates(run.rows) if revision] == [90, 100]


@pytest.mark.parametrize("reset_at", [0, 3, 100], ids=["down by 100 s", "down by 97 s", "no reset"])
def test_the_first_windows_after_a_restart_have_the_true_rate_or_none(
    reset_at: int, driven: Callable[..., Any]
) -> None:
    """A counter of 7 a second, silent from 30 s to 130 s, begins anew so many seconds before it is heard again."""
    counter = job(Tumbling("10s"), "1m", count=Count(), rate=Rate("value"))
    before = [at(t, 7 * t) for t in range(5, 31, 5)]
    anew = 0 if reset_at == 100 else 7 * (130 - reset_at)
    after = [at(t, 7 * t - anew) for t in range(130, 160, 5)]
    input = [[*before, watermark(40)], [*after, watermark(160)]]
    run = driven(counter).run(input)
    assert rates(run.rows) == rates(interpret(counter, input).rows)
    ends = (20, 30, 40, 140, 150, 160)
    assert rates(run.rows) == [(10, 0, None), *((end, 0, pytest.approx(7.0)) for end in ends)]


def test_a_window_with_one_sample_of_a_counter_that_began_anew_has_no_rate(driven: Callable[..., Any]) -> None:
    counter = job(Tumbling("10s"), "1m", count=Count(), rate=Rate("value"))
    input = [[at(5, 100), at(15, 170), at(105, 10), at(115, 80), watermark(200)]]
    run = driven(counter).run(input)
    assert rates(run.rows) == rates(interpret(counter, input).rows)
    assert rates(run.rows) == [(10, 0, None), (20, 0, 7.0), (110, 0, None), (120, 0, 7.0)]


@st.composite
def restarts(draw: st.DrawFn) -> list[list[Arrival | Watermark]]:
    """A counter of 7 a second with gaps and new beginnings anywhere, in batches; some of its samples come late.

    A new beginning shows: the first value after it is lower than the last one before it.
    """
    now, began = 0.0, 0.0
    batches: list[list[Arrival | Watermark]] = [[]]
    for _ in range(draw(st.integers(2, 25))):
        before = now - began
        now += draw(st.sampled_from([1.0, 2.5, 5.0, 10.0, 40.0, 400.0]))
        up = draw(st.sampled_from([0.0, 0.5, 30.0]))
        if draw(st.integers(0, 4)) == 0 and up < before:
            began = now - up
        late = draw(st.booleans())
        if draw(st.booleans()):
            batches.append([])
        if late:
            batches[-1].append(watermark(now + 5))
        batches[-1].append(at(now, 7 * (now - began)))
    return [*batches, [watermark(now + 10_000)]]


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(input=restarts())
@pytest.mark.parametrize("window", [Tumbling("10s"), Sliding("20s", every="5s")], ids=["tumbling", "sliding"])
def test_a_counter_of_constant_rate_never_shows_another_rate_whatever_restarts_gaps_and_lateness(
    window: Sliding, driven: Callable[..., Any], input: list[list[Arrival | Watermark]]
) -> None:
    counter = job(window, "10m", count=Count(), rate=Rate("value"))
    for found in (driven(counter).run(input).rows, interpret(counter, input).rows):
        final = {end: rate for end, _, rate in rates(found)}
        assert all(rate is None or rate == pytest.approx(7.0) for rate in final.values())


def test_a_lookback_of_no_whole_slices_finds_the_sample_before(driven: Callable[..., Any]) -> None:
    counter = job(Tumbling("7s"), "10m", count=Count(), rate=Rate("value", lookback="10s"))
    late = T0 - T0 % 7000 + 70_000 - T0
    input = [[at(late / 1000 - 9.5, 1), at(late / 1000 + 30, 5), watermark(120)], [at(late / 1000, 20)]]
    run = driven(counter).run(input)
    assert rates(run.rows) == rates(interpret(counter, input).rows)
    assert rates(run.rows)[-2][2] == pytest.approx(2.0)


def test_a_window_revised_at_the_edge_of_the_lateness_is_still_whole(driven: Callable[..., Any]) -> None:
    """Windows over the late record end at 50, 60, ..., 100 s; for the first of them the lateness is over at 81 s."""
    sliding = job(Sliding("60s", every="10s"), "31s", count=Count(), last=Last("value"))
    early, late = at(1, 1), at(41, 2)
    input = [[early, watermark(90)], [late]]
    run = driven(sliding).run(input)
    wanted = {(r["window_end"], r["revision"]): r["count"] for r in interpret(sliding, input).rows}
    assert {(r["window_end"], r["revision"]): r["count"] for r in run.rows} == wanted
    assert wanted[(T0 + 60_000, 1)] == 2
    assert (T0 + 50_000, 1) not in wanted


def test_a_key_that_had_nothing_fires_first_with_revision_0(driven: Callable[..., Any]) -> None:
    counting = job(Tumbling("10s"), "1m", count=Count())
    run = driven(counting).run([[at(5, 1), watermark(20)], [at(6, 1, "new")], [at(7, 1, "new"), at(8, 1)]])
    got = sorted((r["metric"], r["revision"], r["count"]) for r in run.rows)
    assert got == [("m", 0, 1), ("m", 1, 2), ("new", 0, 1), ("new", 1, 2)]


def test_a_late_record_revises_its_window_even_where_it_changes_no_result(driven: Callable[..., Any]) -> None:
    largest = job(Tumbling("10s"), "1m", max=Max("value"))
    run = driven(largest).run([[at(5, 9), watermark(10)], [at(6, 1)]])
    assert [(r["revision"], r["max"]) for r in run.rows] == [(0, 9.0), (1, 9.0)]


def test_samples_of_one_time_leave_last_at_one_of_their_values(driven: Callable[..., Any]) -> None:
    """Which of them is open: an identity (series and time) with two values is a fault of its sender."""
    last = job(Tumbling("10s"), "1m", last=Last("value"))
    run = driven(last).run([[at(1, 9), at(5, 1), at(5, 2), watermark(10)]])
    assert [r["last"] for r in run.rows] in ([1.0], [2.0])


def test_a_job_with_new_aggregates_goes_on_from_the_state_of_the_old_one(driven: Callable[..., Any]) -> None:
    window = Sliding("20s", every="10s")
    old = driven(job(window, "1m", count=Count())).run([[at(1, 4)], [at(9, 6)]])
    new = job(window, "1m", count=Count(), mean=Mean("value"), max=Max("value"), p50=Quantile("value", 0.5))
    run = driven(new, 1, old.states).run([[at(12, 8), at(35, 2), watermark(60)]])
    got = {(r["window_end"] - T0) // 1000: (r["count"], r["mean"], r["max"]) for r in run.rows}
    assert got[10] == (2, None, None), "nothing is known of the records before the change but their number"
    assert got[20] == (3, 8.0, 8.0), "of the records that came after it"
    assert got[40] == got[50] == (1, 2.0, 2.0)


def test_a_job_with_fewer_aggregates_goes_on_from_the_state_of_the_old_one(driven: Callable[..., Any]) -> None:
    old = driven(job(Tumbling("10s"), "1m", count=Count(), max=Max("value"), p50=Quantile("value", 0.5)))
    run = driven(job(Tumbling("10s"), "1m", count=Count()), 1, old.run([[at(1, 4)]]).states)
    run.run([[at(2, 6), watermark(20)]])
    assert [(r["count"], r["max"]) for r in run.rows] == [(2, None)]


def test_state_is_forgotten_once_nothing_can_revise_it(driven: Callable[..., Any]) -> None:
    counting = job(Sliding("20s", every="10s"), "30s", count=Count(), rate=Rate("value", lookback="1m"))
    run = driven(counting).run([[at(t, 1), watermark(t)] for t in range(0, 2000, 25)])
    assert len([name for name in run.states[0].values if name.startswith("slices/")]) < 20
    run.run([[watermark(9000)]])
    assert not [name for name in run.states[0].values if name.startswith(("slices/", "late/"))]


class Unspecified(Operator):
    """Own logic without a reference."""


def test_what_has_no_reference_is_refused() -> None:
    counting = job(Tumbling("10s"), "1m", count=Count())
    with pytest.raises(NewnormalError, match="PROCESSOR_UNKNOWN"):
        interpret(replace(counting, processor=Unspecified()), [])


def test_a_rate_in_windows_with_an_offset_counts_from_the_sample_ahead_of_them(driven: Callable[..., Any]) -> None:
    """Windows begin at 3, 13, ... s; the counter rises by 6 from 11 s to 15 s, and by 20 from 15 s to 25 s."""
    window = Tumbling("10s", offset="3s")
    counter = job(window, "1m", count=Count(), rate=Rate("value"))
    batches = [[at(5, 1), at(11, 4)], [at(15, 10), at(25, 30)], [watermark(60)]]
    rows = driven(counter).run(batches).rows
    start = T0 // 10_000 * 10_000 + 3_000
    got = {row["window_start"] - start: row["rate"] for row in rows}
    assert got == {0: 3 / 6, 10_000: 6 / 4, 20_000: 20 / 10}
