"""A job that is built wrong is refused where it is built, with a code, the place and what is accepted."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

import engine
from engine import (
    AfterCount,
    Broadcast,
    Correlation,
    Count,
    Deduplicate,
    DeltaWindows,
    Discarding,
    EachKey,
    Event,
    Instant,
    IntervalJoin,
    Job,
    KeyCallback,
    Last,
    Mean,
    Output,
    Pattern,
    Process,
    Record,
    Session,
    Sliding,
    Stream,
    Sum,
    Tumbling,
)
from engine.operators.windows import WindowAggregate
from engine.spec.errors import NewnormalError


class Word(Record):
    """One word that somebody said."""

    time: Instant
    word: str
    user: int
    weight: float | None = None


class Counted(Record):
    """How often a word was said in a window."""

    identity = ("word", "window_end")

    word: str
    window_end: Instant
    n: int


class Answer(KeyCallback):
    """Gives no results."""

    def on_record(self, record: Any, state: Any, timer: Any) -> Any:
        return ()


def words(**more: Any) -> Stream:
    return Stream.read_json("words", Word, **more)


def keyed() -> Stream:
    return words().key_by("word")


def counts() -> Stream:
    return keyed().window(Tumbling("10s")).aggregate(n=Count())


WRONG: dict[str, tuple[Callable[[], object], str, str, str]] = {
    "no key before a window": (lambda: words().window(Tumbling("10s")), "KEY_MISSING", "window()", "word"),
    "no key before own logic": (
        lambda: words().process(Process(EachKey(Answer(), ()))),
        "KEY_MISSING",
        "process(Process)",
        "word",
    ),
    "no key at all": (lambda: words().write("copy"), "KEY_MISSING", "write('copy')", "word"),
    "a key that is a number": (lambda: words().key_by("user"), "KEY_INVALID", "key_by()", "cast(user as varchar)"),
    "an unknown key": (lambda: words().key_by("wrod"), "COLUMN_UNKNOWN", "key_by()", "word"),
    "a key after an operator": (lambda: counts().key_by("word"), "STREAM_ORDER", "key_by()", '.write("between")'),
    "a join after an operator": (
        lambda: counts().join(words(), IntervalJoin("0s", "1s")),
        "STREAM_ORDER",
        "join()",
        'Stream.read_json("between", ...).join(...)',
    ),
    "a join with an operator": (
        lambda: keyed().join(counts(), IntervalJoin("0s", "1s")),
        "STREAM_ORDER",
        "join()",
        '.write("between")',
    ),
    "windows that are not aggregated": (
        lambda: keyed().window(Tumbling("10s")).write("counts"),
        "STREAM_INCOMPLETE",
        "write('counts')",
        "aggregate",
    ),
    "an operator on windows that are not aggregated": (
        lambda: keyed().window(Tumbling("10s")).process(Deduplicate(("word",))),
        "STREAM_INCOMPLETE",
        "window()",
        "aggregate",
    ),
    "two windows, one aggregation": (
        lambda: keyed().window(Tumbling("10s")).window(Session("5s")),
        "STREAM_INCOMPLETE",
        "window()",
        "aggregate",
    ),
    "a trigger without a window": (lambda: keyed().trigger(AfterCount(1)), "STREAM_INCOMPLETE", "trigger()", "window"),
    "aggregates without a window": (
        lambda: keyed().aggregate(n=Count()),
        "STREAM_INCOMPLETE",
        "aggregate()",
        "window",
    ),
    "an aggregate of an unknown column": (
        lambda: keyed().window(Tumbling("10s")).aggregate(mean=Mean("wieght")),
        "COLUMN_UNKNOWN",
        "aggregate(mean=",
        "weight",
    ),
    "a sum of text": (
        lambda: keyed().window(Tumbling("10s")).aggregate(total=Sum("word")),
        "AGGREGATE_INVALID",
        "aggregate(total=",
        "type",
    ),
    "a filter on an unknown column": (lambda: words().filter("wrod = 'a'"), "COLUMN_UNKNOWN", "Where", "word"),
    "an expression of an unknown column": (lambda: words().map(twice="wieght * 2"), "COLUMN_UNKNOWN", "", "weight"),
    "a filter on an unknown column of results": (lambda: counts().filter("m > 1"), "COLUMN_UNKNOWN", "Where", "n"),
    "a function that fails without records": (
        lambda: words().map(lambda frame: frame["word"][0]),
        "STEP_FAILED",
        "Apply",
        "without rows",
    ),
    "duplicates in an unknown column": (
        lambda: keyed().process(Deduplicate(("id",))),
        "COLUMN_UNKNOWN",
        "Deduplicate(by)",
        "word",
    ),
    "moves of an unknown column": (
        lambda: keyed().window(DeltaWindows("price", 1.0)).aggregate(n=Count()),
        "COLUMN_UNKNOWN",
        "DeltaWindows",
        "weight",
    ),
    "a pattern on an unknown column": (
        lambda: keyed().process(Pattern((Event("a", "level = 'high'"),), within="1m")),
        "COLUMN_UNKNOWN",
        "event a",
        "word",
    ),
    "a join of an unknown kind": (
        lambda: keyed().join(words(), IntervalJoin("0s", "1m", how="outer")),
        "CHOICE_INVALID",
        "IntervalJoin(how)",
        "inner, left",
    ),
    "a broadcast of an unknown kind": (
        lambda: keyed().join(words(), Broadcast(("word",), how="right")),
        "CHOICE_INVALID",
        "Broadcast(how)",
        "inner, left",
    ),
    "an event that follows in an unknown way": (
        lambda: keyed().process(Pattern((Event("a", "weight > 1", "after"),), within="1m")),
        "CHOICE_INVALID",
        "event a",
        "followed_by, next, absent",
    ),
    "a pattern that goes on in an unknown way": (
        lambda: keyed().process(Pattern((Event("a", "weight > 1"),), within="1m", after="past-last")),
        "CHOICE_INVALID",
        "Pattern(after)",
        "each, past_last",
    ),
    "an unknown clock": (lambda: words().timed("procesing"), "CHOICE_INVALID", "timed()", "processing"),
    "an unknown format": (
        lambda: counts().write("counts", Output("counts", Counted, "avro")),
        "CHOICE_INVALID",
        "format of output counts",
        "columnar, json",
    ),
    "a correlation of an unknown column": (
        lambda: keyed().join(words(), Correlation("weight", "price", Sliding("30s", every="1s"))),
        "COLUMN_UNKNOWN",
        "Correlation",
        "weight",
    ),
    "own logic that reads an unknown column": (
        lambda: keyed().process(Process(EachKey(Answer(), ("price",)))),
        "COLUMN_UNKNOWN",
        "process(EachKey)",
        "weight",
    ),
    "own logic without a record type": (
        lambda: keyed().process(Process(EachKey(Answer(), ("word",)))).write("answers"),
        "OUTPUT_UNKNOWN",
        "write('answers')",
        "write(name, Type)",
    ),
    "an output type that lacks a column": (
        lambda: keyed().window(Tumbling("10s")).aggregate(n=Count(), last=Last("user")).write("counts", Counted),
        "OUTPUT_MISFIT",
        "output counts of job counts",
        "last (int64)",
    ),
    "an output type with a column that is missed": (
        lambda: keyed().window(Tumbling("10s")).aggregate(m=Count()).write("counts", Counted),
        "OUTPUT_MISFIT",
        "output counts of job counts",
        "m (int64)",
    ),
    "an output type with a column of another type": (
        lambda: keyed().window(Tumbling("10s")).aggregate(n=Mean("weight")).write("counts", Counted),
        "OUTPUT_MISFIT",
        "output counts of job counts",
        "n (double)",
    ),
    "a side output on an unknown column": (
        lambda: counts().write("counts", side={"many": "m > 100"}),
        "COLUMN_UNKNOWN",
        "side output many",
        "n",
    ),
    "two outputs of one topic": (
        lambda: counts().write("counts", side={"many": Output("counts", Counted, "json")}),
        "OUTPUT_DOUBLED",
        "job counts",
        "topic",
    ),
    "a size that is no duration": (
        lambda: keyed().window(Tumbling("10 parsecs")),
        "DURATION_INVALID",
        "window",
        "10s",
    ),
    "a lateness that is no duration": (
        lambda: keyed().window(Tumbling("10s"), allowed_lateness="soon"),
        "DURATION_INVALID",
        "allowed_lateness",
        "10s",
    ),
    "an out-of-orderness that is no duration": (
        lambda: words(out_of_orderness="5"),
        "DURATION_INVALID",
        "out_of_orderness",
        "10s",
    ),
    "a time of duplicates that is no duration": (
        lambda: keyed().process(Deduplicate(("word",), within="long")),
        "DURATION_INVALID",
        "within",
        "10s",
    ),
    "a time column that is not there": (lambda: words(time="at"), "COLUMN_UNKNOWN", "time='at'", "time"),
    "a time column that is no instant": (lambda: words(time="word"), "RECORD_INVALID", "record type Word", "Instant"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_job_built_wrong_is_refused_with_a_code_a_place_and_what_is_accepted(name: str) -> None:
    build, code, place, accepted = WRONG[name]
    with pytest.raises(NewnormalError) as refused:
        build()
    assert refused.value.code == code, refused.value
    assert place in refused.value.where, refused.value
    assert accepted in refused.value.accepted, refused.value
    assert code != "COLUMN_UNKNOWN" or re.fullmatch(r"there is no column [\w, ]+", refused.value.what)


def test_a_record_type_with_a_field_that_no_column_can_hold_is_refused_by_its_name() -> None:
    class Stamped(Record):
        time: Instant
        word: str
        when: datetime

    with pytest.raises(NewnormalError, match="RECORD_INVALID") as refused:
        Stream.read_json("words", Stamped)
    assert refused.value.where == "Stamped.when"
    assert "Instant" in refused.value.accepted


def test_a_second_window_has_nothing_of_the_first_ones_trigger_and_lateness() -> None:
    windows = keyed().window(Tumbling("10s"), allowed_lateness="1m").trigger(AfterCount(2), Discarding())
    first = windows.aggregate(n=Count())
    job = first.window(Tumbling("1m")).aggregate(total=Sum("n")).write("minutes")
    parts = job.processor.parts  # type: ignore[attr-defined]
    assert [type(part) for part in parts] == [WindowAggregate, WindowAggregate]
    assert (parts[0].trigger, parts[1].trigger) == (AfterCount(2), None)
    assert (str(parts[0].allowed_lateness), str(parts[1].allowed_lateness)) == ("1m", "0s")


def test_outputs_that_are_not_described_follow_from_the_job() -> None:
    job = counts().write("word.counts", side={"many": "n > 100"})
    assert isinstance(job, Job)
    assert [output.topic for output in job.outputs] == [
        "word.counts",
        "many",
        "word.counts.late",
        "word.counts.deadletter",
    ]
    columns = job.output.record.arrow_schema()
    assert columns.names[:4] == ["word", "window_start", "window_end", "n"]
    assert job.output.record.identity == ("word", "window_start", "window_end")
    assert job.late is not None
    assert job.late.record.arrow_schema().names == ["time", "word", "user", "weight"]


@pytest.mark.parametrize("name", engine.__all__)
def test_each_public_name_is_there(name: str) -> None:
    assert getattr(engine, name) is not None


class Measured(Record):
    """A count and a mean, both as numbers that may have a fraction."""

    identity = ("word", "window_end")

    word: str
    window_start: Instant
    window_end: Instant
    revision: int
    n: float
    mean: float | None = None


def test_whole_and_broken_numbers_may_be_written_to_a_field_of_broken_ones() -> None:
    made = keyed().window(Tumbling("10s")).aggregate(n=Count(), mean=Mean("weight")).write("measured", Measured)
    assert made.outputs[0].record is Measured


@pytest.mark.parametrize("role", ["main", "late", "dead", "side"])
@pytest.mark.parametrize("by", ["", "nothing"])
def test_an_output_without_a_column_to_partition_by_is_refused_when_it_is_built(role: str, by: str) -> None:
    """A record that came too late stopped the job where its late topic had a record type without an identity."""
    with pytest.raises(NewnormalError) as refused:
        given = Output("words.other", Word, by=by)
        keyed().write("words", **{"output" if role == "main" else role: {"aside": given} if role == "side" else given})
    assert refused.value.code == "OUTPUT_MISFIT"
    assert "partitioned" in refused.value.what
