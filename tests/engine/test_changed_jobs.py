"""A job that is changed while it has state: what its state cannot follow is refused before anything is read."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine import (
    AccumulatingAndRetracting,
    AfterProcessingTime,
    AfterWatermark,
    Broadcast,
    Correlation,
    Count,
    CountWindows,
    Deduplicate,
    Discarding,
    EachKey,
    Event,
    Instant,
    IntervalJoin,
    KeepLast,
    KeyCallback,
    Keyword,
    Max,
    Pattern,
    Process,
    Record,
    Session,
    Sliding,
    Stream,
    Sum,
    Tumbling,
    WindowJoin,
)
from engine.operators.turn import Logic, Turn
from engine.operators.two_sided import TwoSided
from engine.spark.checkpoint_layout import check_definitions, check_layout
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from engine.spec.operator import Operator
from tests.engine.readings import Reading


class Low(Record):
    """The same with a key of few values."""

    time: Instant
    k: Keyword
    v: float = 0.0
    s: str = ""


class Wider(Reading):
    """The same with one more field."""

    more: float | None = None


class Whole(Record):
    """The same with a value of another type."""

    time: Instant
    k: str
    v: int = 0
    s: str = ""


class Same(KeyCallback):
    """A callback."""

    def on_record(self, record: Any, state: Any, timer: Any) -> Any:
        return [{"v": 1.0}]


class Other(Same):
    """A callback that was changed by its author."""


class Kept(Logic):
    """Logic with state."""

    state = {"n": 0}  # noqa: RUF012

    def on_records(self, turn: Turn) -> None:
        turn.emit({"v": turn.state["n"]})


class KeptOtherwise(Kept):
    """Logic whose state has another type."""

    state = {"n": 0.0}  # noqa: RUF012


def read(record: type[Record] = Reading, topic: str = "t") -> Stream:
    return Stream.read_json(topic, record).key_by("k")


def counted(stream: Stream) -> Job:
    return stream.aggregate(n=Count(), total=Sum("v")).write("o")


def minutes(record: type[Record] = Reading) -> Stream:
    return read(record).window(Tumbling("1m"), "10m")


def once() -> Stream:
    return read().window(Tumbling("1m"))


def done(operator: Operator, record: type[Record] = Reading) -> Job:
    return read(record).process(operator).write("o", Reading if isinstance(operator, Process) else None)


def joined(how: TwoSided, record: type[Record] = Reading) -> Job:
    return read().join(Stream.read_json("u", record), how).write("o", dead=None, late=None)


EARLY = AfterWatermark(early=AfterProcessingTime("1h"))
A, B, C = Event("a", "s = 'a'"), Event("b", "s = 'b'"), Event("c", "s = 'c'")

REFUSED: dict[str, tuple[Callable[[], Job], Callable[[], Job], str]] = {
    "another window": (lambda: counted(minutes()), lambda: counted(read().window(Tumbling("2m"), "10m")), "windows"),
    "an early trigger with other panes": (
        lambda: counted(minutes()),
        lambda: counted(minutes().trigger(EARLY, Discarding())),
        "slices",
    ),
    "an early trigger over other windows": (
        lambda: counted(minutes()),
        lambda: counted(read().window(Tumbling("2m"), "10m").trigger(EARLY)),
        "windows",
    ),
    "windows before that retract": (
        lambda: (
            once()
            .trigger(AfterWatermark())
            .aggregate(n=Sum("v"))
            .window(Tumbling("5m"))
            .aggregate(m=Sum("n"))
            .write("o")
        ),
        lambda: (
            once()
            .trigger(EARLY, AccumulatingAndRetracting())
            .aggregate(n=Sum("v"))
            .window(Tumbling("5m"))
            .aggregate(m=Sum("n"))
            .write("o")
        ),
        "retractions",
    ),
    "no trigger any more": (lambda: counted(minutes().trigger(EARLY)), lambda: counted(minutes()), "slices"),
    "another trigger": (
        lambda: counted(minutes().trigger(EARLY)),
        lambda: counted(minutes().trigger(AfterWatermark(early=AfterProcessingTime("2h")))),
        "trigger",
    ),
    "other panes": (
        lambda: counted(minutes().trigger(EARLY)),
        lambda: counted(minutes().trigger(EARLY, Discarding())),
        "panes",
    ),
    "retractions": (
        lambda: counted(minutes().trigger(EARLY)),
        lambda: counted(minutes().trigger(EARLY, AccumulatingAndRetracting())),
        "panes",
    ),
    "an evictor": (
        lambda: counted(minutes()),
        lambda: counted(minutes().trigger(AfterWatermark(), evict=KeepLast(9))),
        "evictor",
    ),
    "no evictor any more": (
        lambda: counted(read().window(Session("1m")).trigger(AfterWatermark(), evict=KeepLast(9))),
        lambda: counted(read().window(Session("1m"))),
        "evictor",
    ),
    "more lateness": (
        lambda: counted(minutes()),
        lambda: counted(read().window(Tumbling("1m"), "20m")),
        "allowed lateness",
    ),
    "a key of another kind": (lambda: counted(minutes()), lambda: counted(minutes(Low)), "key"),
    "a column of another type": (lambda: counted(minutes()), lambda: counted(minutes(Whole)), "column v"),
    "an event more": (
        lambda: done(Pattern((A, C), within="10m", columns=("v", "s"))),
        lambda: done(Pattern((A, B, C), within="10m", columns=("v", "s"))),
        "events",
    ),
    "an event less": (
        lambda: done(Pattern((A, B, C), within="10m", columns=("v", "s"))),
        lambda: done(Pattern((A, C), within="10m", columns=("v", "s"))),
        "events",
    ),
    "duplicates by another column": (
        lambda: done(Deduplicate(by=("s",), within="1h")),
        lambda: done(Deduplicate(by=("v",), within="1h")),
        "by",
    ),
    "a longer memory of duplicates": (
        lambda: done(Deduplicate(by=("s",), within="1h")),
        lambda: done(Deduplicate(by=("s",), within="2h")),
        "within",
    ),
    "another operator": (lambda: done(Deduplicate(by=("s",))), lambda: counted(minutes()), "operator"),
    "state of another type": (lambda: done(Process(Kept())), lambda: done(Process(KeptOtherwise())), "state n"),
    "other count windows": (
        lambda: counted(read().window(CountWindows(3))),
        lambda: counted(read().window(CountWindows(4))),
        "windows",
    ),
    "a wider interval": (
        lambda: joined(IntervalJoin("0s", "1m")),
        lambda: joined(IntervalJoin("0s", "2m")),
        "upper",
    ),
    "a source more on the left side of a join": (
        lambda: joined(IntervalJoin("0s", "1m")),
        lambda: (
            Stream.read_json("t", Reading)
            .merge(Stream.read_json("s", Reading))
            .key_by("k")
            .join(Stream.read_json("u", Reading), IntervalJoin("0s", "1m"))
            .write("o", dead=None, late=None)
        ),
        "split is 2, was 1",
    ),
    "another window of a join": (
        lambda: joined(WindowJoin(Tumbling("1m"))),
        lambda: joined(WindowJoin(Tumbling("2m"))),
        "window",
    ),
    "another column of a correlation": (
        lambda: read(Wider).join(read(Wider, "u"), Correlation("v", "v", Sliding("1m", every="10s"))).write("o"),
        lambda: read(Wider).join(read(Wider, "u"), Correlation("v", "more", Sliding("1m", every="10s"))).write("o"),
        "y is",
    ),
    "rules known by another column": (
        lambda: joined(Broadcast(identity=("s",))),
        lambda: joined(Broadcast(identity=("k",))),
        "identity",
    ),
    "an operator taken out": (
        lambda: once().aggregate(n=Count()).window(Tumbling("5m")).aggregate(m=Sum("n")).write("o"),
        lambda: once().aggregate(n=Count()).write("o"),
        "operators with state",
    ),
    "a step that moves the state": (
        lambda: minutes().aggregate(n=Count()).write("o"),
        lambda: minutes().aggregate(n=Count()).filter("n > 1").write("o"),
        "a step after the first operator",
    ),
    "another clock": (
        lambda: counted(minutes()),
        lambda: counted(
            Stream.read_json("t", Reading).timed("ingestion", "time").key_by("k").window(Tumbling("1m"), "10m")
        ),
        "clock",
    ),
}
ACCEPTED: dict[str, tuple[Callable[[], Job], Callable[[], Job]]] = {
    "nothing": (lambda: counted(minutes()), lambda: counted(minutes())),
    "an early trigger": (lambda: counted(minutes()), lambda: counted(minutes().trigger(EARLY))),
    "an early trigger of sessions": (
        lambda: counted(read().window(Session("1m"), "10m")),
        lambda: counted(read().window(Session("1m"), "10m").trigger(EARLY)),
    ),
    "an aggregate more": (lambda: counted(minutes()), lambda: minutes().aggregate(n=Count(), top=Max("v")).write("o")),
    "a duration written otherwise": (
        lambda: counted(minutes()),
        lambda: counted(read().window(Tumbling("60s"), "600s")),
    ),
    "a field more": (lambda: counted(minutes()), lambda: counted(minutes(Wider))),
    "a filter on the input": (
        lambda: counted(minutes()),
        lambda: counted(Stream.read_json("t", Reading).filter("v > 0").key_by("k").window(Tumbling("1m"), "10m")),
    ),
    "a callback of another name": (
        lambda: done(Process(EachKey(Same(), ("v",)))),
        lambda: done(Process(EachKey(Other(), ("v",)))),
    ),
    "another condition of a rule": (
        lambda: joined(Broadcast(identity=("s",))),
        lambda: joined(Broadcast(identity=("s",), where="v > 1")),
    ),
}


def begin(folder: Path, job: Job) -> None:
    check_definitions(folder, [job])
    (folder / job.name / "metadata").write_text("{}")


@pytest.mark.parametrize("change", REFUSED)
def test_a_change_that_the_state_cannot_follow_is_refused_and_named(change: str, tmp_path: Path) -> None:
    before, after, named = REFUSED[change]
    begin(tmp_path, before())
    with pytest.raises(NewnormalError, match="JOB_CHANGED") as refused:
        check_definitions(tmp_path, [after()])
    assert named in refused.value.what
    check_definitions(tmp_path, [before()])  # the refused start has changed nothing


@pytest.mark.parametrize("change", ACCEPTED)
def test_a_change_that_the_state_follows_is_accepted(change: str, tmp_path: Path) -> None:
    before, after = ACCEPTED[change]
    begin(tmp_path, before())
    check_definitions(tmp_path, [after()])


def test_a_state_of_an_earlier_version_is_compared_by_what_that_version_kept(tmp_path: Path) -> None:
    begin(tmp_path, counted(minutes()))
    file = tmp_path / "o" / "job.json"
    earlier = {"key": ["k"], "operators": ["Tumbling(size='1m', every='1m', offset='0s')"]}
    file.write_text(json.dumps(earlier))
    with pytest.raises(NewnormalError, match="JOB_CHANGED"):
        check_definitions(tmp_path, [counted(read().window(Tumbling("2m"), "10m"))])
    check_definitions(tmp_path, [counted(minutes())])
    assert "state" in json.loads(file.read_text())


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize("damaged", ["layout.json", "job.json"])
def test_a_full_disk_leaves_the_files_of_a_checkpoint_as_they_were(damaged: str, tmp_path: Path) -> None:
    job = counted(minutes())

    def start(changed: Job) -> None:
        check_layout(tmp_path, ["o"], 2, "shards")
        check_definitions(tmp_path, [changed])

    start(job)
    (tmp_path / "o" / "metadata").write_text("{}")
    kept = (tmp_path / "o" / damaged).read_text()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # files can be opened, not written
    try:
        start(job)  # nothing has changed, so nothing is written
        with pytest.raises(OSError, match="File too large"):
            start(minutes().aggregate(n=Count(), top=Max("s")).write("o"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "o" / damaged).read_text() == kept
    assert not list((tmp_path / "o").glob(".*"))
    start(job)
    (tmp_path / "o" / damaged).write_text("")  # what a version before this one left
    with pytest.raises(NewnormalError, match="CHECKPOINT_UNREADABLE") as refused:
        start(job)
    assert damaged in refused.value.what and "begins anew" not in str(refused.value)
