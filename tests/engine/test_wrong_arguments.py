"""Every public call with wrong arguments: it is accepted, or refused by a code with the call; no bare Python error."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import engine
from engine import (
    AfterAny,
    AfterCount,
    AfterProcessingTime,
    Constant,
    Correlation,
    Count,
    CountWindows,
    CustomTrigger,
    Deduplicate,
    DeltaWindows,
    Discarding,
    Distinct,
    First,
    Histogram,
    Instant,
    IntervalJoin,
    Job,
    KeepLast,
    Max,
    Mean,
    Output,
    Pattern,
    Quantile,
    Rate,
    Record,
    Sliding,
    Stream,
    Sum,
    TopK,
    Tumbling,
    WindowJoin,
)
from engine.operators.two_sided import TwoSided
from engine.operators.windows import BOUNDS, PANE_COLUMNS
from engine.spec.errors import NewnormalError


class Reading(Record):
    """A record with a field of each kind."""

    time: Instant
    k: str
    v: float | None = None
    n: int | None = None
    s: str | None = None


WRONG: tuple[Any, ...] = (
    None, 0, -5, 1.5, float("nan"), True, "", "x", "10s", b"x", [], ["k"], (), {}, object(), Count, Count(), Reading,
    Tumbling("10s"), KeepLast(3), AfterCount(1), Discarding, lambda r: r, 2**70,
)  # fmt: skip
JOINS = (IntervalJoin("0s", "1m"), WindowJoin(Tumbling("10s")), Correlation("v", "v", Sliding("10s", every="1s")))
BASE = Stream.read_json("t", Reading).key_by("k")
ONCE = BASE.window(Tumbling("1s")).aggregate(n=Count())
BUILDERS = {
    "key_by": BASE,
    "window": BASE,
    "trigger": BASE.window(Tumbling("10s")),
    "aggregate": BASE.window(Tumbling("10s")),
    "write": BASE.window(Tumbling("10s")).aggregate(n=Count()),
    "join": BASE,
    "process": BASE,
    "filter": BASE,
    "map": BASE,
    "select": BASE,
    "flat_map": BASE,
    "merge": BASE,
    "loop": BASE,
    "timed": BASE,
    "read": Stream,
    "read_json": Stream,
    "read_columnar": Stream,
}
VALUES = [
    name
    for name in engine.__all__
    if inspect.isclass(getattr(engine, name))
    and "__init__" in vars(getattr(engine, name))
    and hasattr(getattr(engine, name), "__dataclass_fields__")
    and not inspect.isabstract(getattr(engine, name))
]


def explained(call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    try:
        call(*args, **kwargs)
    except NewnormalError as error:
        assert error.code and error.where, error


def test_all_methods_of_the_builder_are_walked() -> None:
    public = {name for name, member in vars(Stream).items() if not name.startswith("_") and callable(member)}
    public |= {name for name, member in vars(Stream).items() if isinstance(member, classmethod) and name[0] != "_"}
    dataclass_fields = {"sources", "key", "windows", "lateness", "when", "panes", "evict", "processor"}
    assert public - dataclass_fields == set(BUILDERS)
    assert len(VALUES) > 35


@pytest.mark.parametrize("method", BUILDERS)
def test_a_wrong_argument_of_the_builder_is_explained(method: str) -> None:
    call = getattr(BUILDERS[method], method)
    explained(call)
    for wrong in WRONG:
        explained(call, wrong)
        explained(call, wrong, wrong)
        explained(call, "t", wrong)
        explained(call, Tumbling("10s"), wrong)
        for name, parameter in inspect.signature(call).parameters.items():
            if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
                explained(call, **{name: wrong})
        explained(call, unknown=wrong)


@pytest.mark.parametrize("name", VALUES)
def test_a_wrong_argument_of_a_value_is_explained(name: str) -> None:
    kind = getattr(engine, name)
    explained(kind)
    for wrong in WRONG:
        explained(kind, wrong)
        explained(kind, wrong, wrong)
        explained(kind, "v", wrong)
        explained(kind, wrong, wrong, wrong, wrong, wrong, wrong, wrong, wrong, wrong, wrong, wrong)
        explained(kind, unknown=wrong)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: f"{value!r:.20}")
def test_a_wrong_value_within_a_right_one_is_explained_when_the_job_is_built(wrong: Any) -> None:
    def built(aggregate: Callable[[], Any]) -> None:
        explained(lambda: BASE.window(Tumbling("10s")).aggregate(m=aggregate()).write("o"))

    for kind in (Sum, Mean, Max, Distinct, First, Rate):
        built(lambda kind=kind: kind(wrong))  # type: ignore[misc]
    built(lambda: Quantile("v", wrong))
    built(lambda: TopK("s", wrong))
    built(lambda: Histogram("v", wrong))
    explained(lambda: BASE.process(Pattern(wrong, within="10s")).write("o"))
    explained(lambda: BASE.join(Stream.read_json("u", Reading), Correlation("v", "v", wrong)).write("o"))


REFUSED: dict[str, tuple[str, Callable[[], Any]]] = {
    "panes as a class": ("ARGUMENT_INVALID", lambda: BUILDERS["trigger"].trigger(AfterCount(1), Discarding)),
    "panes as text": ("ARGUMENT_INVALID", lambda: BUILDERS["trigger"].trigger(AfterCount(1), "discarding")),
    "an evictor as a trigger": ("ARGUMENT_INVALID", lambda: BUILDERS["trigger"].trigger(KeepLast(3))),
    "a trigger as an evictor": (
        "ARGUMENT_INVALID",
        lambda: BUILDERS["trigger"].trigger(AfterCount(1), evict=AfterCount(1)),
    ),
    "a length as a window": ("ARGUMENT_INVALID", lambda: BASE.window("10s")),
    "a list as a key": ("ARGUMENT_INVALID", lambda: BASE.key_by(["k"])),
    "an aggregate without a name": ("ARGUMENT_INVALID", lambda: BUILDERS["aggregate"].aggregate(Count())),
    "a function as a condition": ("ARGUMENT_INVALID", lambda: BASE.filter(lambda r: r)),
    "no aggregate": ("STREAM_INCOMPLETE", BUILDERS["aggregate"].aggregate),
    "no topic": ("STREAM_INCOMPLETE", lambda: Stream.read_json([], Reading)),
    "no records in a window": ("WINDOW_INVALID", lambda: CountWindows(0)),
    "fewer records than none": ("WINDOW_INVALID", lambda: CountWindows(-5)),
    "a negative threshold": ("WINDOW_INVALID", lambda: DeltaWindows("v", -1.0)),
    "a threshold that is no number": ("WINDOW_INVALID", lambda: DeltaWindows("v", float("nan"))),
    "a negative lateness": ("DURATION_INVALID", lambda: BASE.window(Tumbling("10s"), -5000)),
    "a negative period": ("DURATION_INVALID", lambda: AfterProcessingTime(-5)),
    "text in a histogram": ("AGGREGATE_INVALID", lambda: BUILDERS["aggregate"].aggregate(h=Histogram("s", (1.0,)))),
    "text in a quantile": ("AGGREGATE_INVALID", lambda: BUILDERS["aggregate"].aggregate(h=Quantile("s", 0.5))),
    "text in delta windows": ("AGGREGATE_INVALID", lambda: BASE.window(DeltaWindows("s", 1.0)).aggregate(n=Count())),
    "no event time": ("COLUMN_UNKNOWN", lambda: Stream.read_json("t", Reading).select("k", "v").key_by("k").write("o")),
    "an event time that is text": ("EXPRESSION_INVALID", lambda: BASE.map(time="cast(time as varchar)").write("o")),
    "an event time that is a float": ("EXPRESSION_INVALID", lambda: BASE.map(time="time * 0.5").write("o")),
    "text as the time between windows": (
        "EXPRESSION_INVALID",
        lambda: ONCE.map(window_end="cast(window_end as varchar)").window(Tumbling("1m")).aggregate(n=Count()),
    ),
    "several results of windows through another operator": (
        "PANES_REPEATED",
        lambda: (
            BASE.window(Tumbling("1s"), "1m")
            .aggregate(n=Count())
            .process(Deduplicate(by=("n",)))
            .window(Tumbling("1m"))
            .aggregate(n=Count())
        ),
    ),
    "the topic that is read": ("OUTPUT_READ", lambda: BASE.filter("v > 0").write("t")),
    "a dead-letter topic that is read": (
        "OUTPUT_READ",
        lambda: Stream.read_json("o.deadletter", Reading).key_by("k").write("o"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_refused_when_the_job_is_built(case: str) -> None:
    code, build = REFUSED[case]
    with pytest.raises(NewnormalError) as refused:
        build()
    assert (refused.value.code, bool(refused.value.where)) == (code, True)


def test_a_number_of_numpys_is_the_number_that_it_stands_for() -> None:
    assert CountWindows(np.int64(3)) == CountWindows(3)  # type: ignore[arg-type]
    assert type(CountWindows(np.int64(3)).size) is int  # type: ignore[arg-type]
    assert DeltaWindows("v", np.float32(0.5)) == DeltaWindows("v", 0.5)  # type: ignore[arg-type]


def named(name: str, aggregates: dict[str, Any], window: Any = Tumbling("10s")) -> Job:  # noqa: B008
    return (
        Stream.read_json("t", Reading).map(**{name: "k"}).key_by(name).window(window).aggregate(**aggregates).write("o")
    )


@pytest.mark.parametrize(
    ("name", "aggregates"),
    [
        *((name, {"m": Count()}) for name in (*BOUNDS, *PANE_COLUMNS, "m", "__m")),
        *(("g", {name: Count()}) for name in (*BOUNDS, *PANE_COLUMNS, "__m")),
    ],
)
@pytest.mark.parametrize("window", [Tumbling("10s"), CountWindows(3)])
def test_a_name_that_all_results_have_is_refused_when_the_job_is_built(
    name: str, aggregates: dict[str, Any], window: Any
) -> None:
    with pytest.raises(NewnormalError, match="NAME_RESERVED"):
        named(name, aggregates, window)


@pytest.mark.parametrize(("name", "aggregate"), [("v", Constant("k")), ("v", Rate("v")), ("rate.increase", Rate("v"))])
def test_a_key_with_the_name_of_a_column_that_an_aggregate_keeps_is_refused(name: str, aggregate: Any) -> None:
    named = Stream.read_json("t", Reading).map(**{name: "v"}).key_by("k", name)
    with pytest.raises(NewnormalError, match="AGGREGATE_INVALID"):
        named.window(Tumbling("10s")).aggregate(m=aggregate)


class Often(CustomTrigger):
    """A trigger of one's own, which sees the number of new records under the name ``fresh``."""

    def should_fire(self, windows: pl.DataFrame) -> pl.Series:
        return windows["fresh"] > 2


@pytest.mark.parametrize("name", Often().shown)
def test_what_a_trigger_of_ones_own_sees_has_names_of_its_own(name: str) -> None:
    windows = Stream.read_json("t", Reading).map(**{name: "k"}).key_by("k").window(Tumbling("10s"))
    assert windows.aggregate(**{name: Count()}).write("o")
    with pytest.raises(NewnormalError, match="NAME_RESERVED"):
        windows.trigger(AfterAny(AfterCount(1), Often())).aggregate(**{name: Count()})


@pytest.mark.parametrize("how", JOINS)
def test_a_key_of_a_join_may_not_be_called_as_its_results(how: TwoSided) -> None:
    own = {"left_time", "right_time"} if not isinstance(how, Correlation) else {"pairs", "correlation"}
    for name in own if isinstance(how, IntervalJoin) else own | set(BOUNDS):
        left, right = (Stream.read_json(topic, Reading).map(**{name: "k"}) for topic in ("t", "u"))
        with pytest.raises(NewnormalError, match="NAME_RESERVED"):
            left.key_by(name).join(right, how).write("o")


def test_right_arguments_pass() -> None:
    joined = BASE.join(Stream.read_json("u", Reading), IntervalJoin("0s", "1m"))
    assert joined.write("o", late=Output("l", Reading, "json", by="k")).late is not None
    assert (
        BASE.window(Tumbling(10_000), 5_000).trigger(AfterCount(1), Discarding(), KeepLast(2), "10s").lateness == 10_000
    )


def test_a_duration_may_be_a_number_of_milliseconds_wherever_a_stream_takes_one() -> None:
    said, counted = (
        Stream.read_json("t", Reading, out_of_orderness=some[0], idle_after=some[1], max_ahead=some[2])
        for some in (("5s", "20s", "2m"), (5_000, 20_000, 120_000))
    )
    assert said.source == counted.source


def test_an_unknown_column_with_quotes_in_its_name_is_named_whole() -> None:
    with pytest.raises(NewnormalError) as refused:
        BASE.key_by('a "b"')
    assert refused.value.what == 'there is no column a "b"'
