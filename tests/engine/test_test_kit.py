"""The test kit: the effect of a crash, and the input that a hand-written stream gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import polars as pl
import pytest

from engine.reference.meaning import Reference
from engine.reference.of import reference
from engine.spec.operator import Operator, Progress, Row
from engine.state.segments import ShardState
from engine.testing import ABORT, RESTART, TestStream, run
from engine.vectorized.build import build
from engine.vectorized.processor import Processor, Results
from engine.windows import Tumbling
from tests.engine.panes import event, job

T0 = 1_700_000_000_000


@dataclass(frozen=True)
class Forgetful(Operator):
    """Numbers records from a note in its state, or, as it must not, from memory."""

    in_state: bool
    seen: ClassVar[list[int]] = []


class _Numbers(Processor):
    def __init__(self, operator: Forgetful) -> None:
        self.in_state = operator.in_state

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        Forgetful.seen.append(batch.height)
        before = state.notes.get("n", 0) if self.in_state else sum(Forgetful.seen[:-1])
        state.notes["n"] = before + batch.height
        rows = batch.select("key", pl.col("time").alias("window_start"), pl.col("time").alias("window_end"))
        return Results(rows.with_columns(pl.int_range(before, before + batch.height).alias("n")))


class _NumbersReference(Reference):
    def __init__(self, operator: Forgetful) -> None:
        self.n = 0

    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        self.n += len(records)
        return [{"n": self.n - len(records) + i} for i in range(len(records))], []


build.register(Forgetful, _Numbers)
reference.register(Forgetful, _NumbersReference)


def numbers(in_state: bool, stream: TestStream, on: str) -> list[int]:
    Forgetful.seen.clear()
    rows = run(replace(job(Tumbling("10s")), processor=Forgetful(in_state)), stream, on).rows
    return [row["n"] for row in rows]


@pytest.mark.parametrize("sentinel", [ABORT, RESTART])
def test_a_crash_between_two_records_changes_nothing_of_what_is_in_state(sentinel: object) -> None:
    a, b = event("a", T0, 1), event("a", T0 + 1, 2)
    stream = TestStream(T0).add(a, sentinel, b, sentinel)  # type: ignore[arg-type]
    assert numbers(True, stream, "operator") == numbers(True, stream, "reference") == [0, 1]


def test_an_abort_repeats_the_batch_and_shows_what_was_kept_in_memory() -> None:
    stream = TestStream(T0).add(event("a", T0, 1), ABORT, event("a", T0 + 1, 2))
    assert numbers(False, stream, "operator") == [1, 2]
    assert Forgetful.seen == [0, 1, 1, 1], "the first batch only says that there is no watermark yet"


def test_a_watermark_is_the_least_of_the_partitions() -> None:
    stream = TestStream(T0, partitions=2).add(event("a", T0, 1)).advance_watermark("9s", 0).advance_watermark("5s", 1)
    for on in ("reference", "operator"):
        assert run(job(Tumbling("10s")), stream, on).watermarks[-1] == T0 + 5000


def test_records_move_no_watermark_and_the_clock_none_either() -> None:
    stream = TestStream(T0).add(event("a", T0 + 90_000, 1)).advance_clock("1h")
    assert run(job(Tumbling("10s")), stream).rows == []
