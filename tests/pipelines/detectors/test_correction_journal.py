"""The journal of judged windows is complete after its parts are merged, whichever window came last."""

from __future__ import annotations

from typing import NoReturn

import polars as pl
import pytest

from engine.spec.duration import NEVER
from engine.state.rescaling import Rescaling
from engine.state.segments import DictSegments, ShardState
from pipelines.jobs.detectors import correction_journal
from pipelines.jobs.detectors.correction_journal import CorrectionJournal

STEP, HORIZON = 10_000, 1_000_000


def _judged(number: int, value: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A window as judged, and what was said of it."""
    start, end = number * STEP, (number + 1) * STEP
    identity = {"entity": ["a"], "metric": ["cpu"], "window_start": [start], "window_end": [end]}
    said = pl.DataFrame(identity | {"revision": [0], "mark": [int(value)], "announced": [end]})
    return pl.DataFrame(identity | {"value": [value]}), said


def _found(journal: CorrectionJournal, after: int) -> list[tuple[int, float]]:
    """Number and value of each window that ends after an instant; what was said is of the same ones."""
    past = journal.read(["a"], after)
    rows = past.inputs.sort("window_start").select("window_start", "value").rows()
    said = past.verdicts.sort("window_start").select("window_start", "mark").rows()
    assert said == [(start, int(value)) for start, value in rows]
    return [(start // STEP, value) for start, value in rows]


@pytest.mark.parametrize("last", [0, 2, 3, 7], ids=["the oldest again", "one again", "the newest again", "a new one"])
def test_a_write_that_merges_parts_loses_nothing_and_the_last_row_of_a_window_holds(
    monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    monkeypatch.setattr(correction_journal, "_MOST_PARTS", 4)
    state = ShardState(DictSegments())
    journal = CorrectionJournal(state, HORIZON, NEVER)
    wanted = {number: float(number) for number in range(4)}
    for number, value in wanted.items():
        journal.write(*_judged(number, value))
    assert len([name for name in state.sizes if name.startswith("journal/")]) == 4
    journal.write(*_judged(last, 99.0))
    wanted[last] = 99.0
    assert len([name for name in state.sizes if name.startswith("journal/")]) == 4
    assert _found(journal, 0) == sorted(wanted.items())
    assert _found(journal, 3 * STEP) == sorted((n, v) for n, v in wanted.items() if n >= 3), "though 0 was written last"


def test_from_the_sixty_fifth_write_on_two_small_parts_become_one() -> None:
    state = ShardState(DictSegments())
    journal = CorrectionJournal(state, HORIZON, NEVER)
    parts = []
    for number in range(200):
        journal.write(*_judged(number, float(number)))
        parts.append(sum(name.startswith("journal/") for name in state.sizes))
    assert parts == [*range(1, 65), *[64] * 136]
    assert max(part.rows for part in journal.log.parts) <= 16, "no part grows to hold all, which would be read at once"
    assert _found(journal, 0) == [(number, float(number)) for number in range(200)]


def test_a_late_verdict_replaces_what_a_later_window_had_said_of_its_window() -> None:
    """An absence of window 3 was announced with window 9; then the value of window 3 came, and it was normal."""
    journal = CorrectionJournal(ShardState(DictSegments()), HORIZON, NEVER)
    came, absent = _judged(3, 7.0)
    journal.write(pl.DataFrame(), absent.with_columns(mark=pl.lit(99, pl.Int64), announced=pl.lit(10 * STEP, pl.Int64)))
    journal.write(came, absent.with_columns(revision=pl.lit(1, pl.Int64)))
    assert journal.read(["a"], 5 * STEP).verdicts.height == 0, "the absence is not in force any more"
    assert journal.read(["a"], 0).verdicts.select("revision", "mark").rows() == [(1, 7)]


def _absence_taken_back(monkeypatch: pytest.MonkeyPatch, rows: int) -> CorrectionJournal:
    """An absence of window 3 was announced with window 9; its value came late; then window 5 became the base.

    Args:
        monkeypatch: Lets parts be merged from the fourth on.
        rows: How many windows the oldest part has besides; with many, the parts after it are merged first.
    """
    monkeypatch.setattr(correction_journal, "_MOST_PARTS", 3)
    journal = CorrectionJournal(ShardState(DictSegments()), HORIZON, NEVER)
    came, absent = _judged(3, 7.0)
    many = pl.concat([_judged(number, 1.0)[0] for number in range(20, 20 + rows)])
    journal.write(many, absent.with_columns(mark=pl.lit(99, pl.Int64), announced=pl.lit(10 * STEP, pl.Int64)))
    journal.write(came, absent.with_columns(revision=pl.lit(1, pl.Int64), mark=pl.lit(0, pl.Int64)))
    journal.keep(5 * STEP)
    journal.forget(5 * STEP + HORIZON, absent.select(correction_journal.IDENTITY))
    assert journal.base == 5 * STEP
    return journal


@pytest.mark.parametrize(("rows", "oldest"), [(50, False), (1, True)], ids=["the parts after it", "it with the next"])
def test_a_verdict_that_was_taken_back_does_not_return_when_parts_are_merged(
    monkeypatch: pytest.MonkeyPatch, rows: int, oldest: bool
) -> None:
    journal = _absence_taken_back(monkeypatch, rows)
    first = journal.log.parts[0]
    for number in range(80, 82):
        journal.write(*_judged(number, float(number)))
    assert len(journal.log.parts) == 3, "parts were merged"
    assert (journal.log.parts[0] != first) == oldest
    for after in (0, 5 * STEP, 6 * STEP):
        assert journal.read(["a"], after).verdicts["window_start"].sort().to_list() == [80 * STEP, 81 * STEP]
    if oldest:  # nothing before it can be replaced, so what lies before the base is forgotten
        stored = journal.log.read(journal.log.parts[0])
        assert "said" not in stored
        assert stored["inputs"]["window_start"].to_list() == [20 * STEP]


def test_a_verdict_that_was_taken_back_after_shards_became_one_does_not_return() -> None:
    """The last part of such a journal may be that of a shard whose newest window is an old one."""
    came, absent = _judged(3, 7.0)
    other, said = (frame.with_columns(entity=pl.lit("b")) for frame in _judged(6, 1.0))
    before, after = [ShardState(DictSegments()) for _ in range(2)], ShardState(DictSegments())
    absent = absent.with_columns(mark=pl.lit(99, pl.Int64), announced=pl.lit(10 * STEP, pl.Int64))
    CorrectionJournal(before[0], HORIZON, NEVER).write(pl.DataFrame(), absent)
    CorrectionJournal(before[1], HORIZON, NEVER).write(other, said)
    CorrectionJournal.rescale(Rescaling(before, [after], "entity"), _no_snapshots)
    journal = CorrectionJournal(after, HORIZON, NEVER)
    assert journal.read(["a"], 8 * STEP).verdicts["mark"].to_list() == [99]
    journal.write(came, _judged(3, 0.0)[1].with_columns(revision=pl.lit(1, pl.Int64)))
    assert journal.read(["a"], 8 * STEP).verdicts.height == 0


def _no_snapshots(*_: object) -> NoReturn:
    raise AssertionError("there are no snapshots to divide")
