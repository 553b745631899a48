"""The report on a file that was read: what was skipped and where, and what was decided."""

from __future__ import annotations

from dataclasses import dataclass

from engine.printing import visible

NAMED = 5
"""How many lines are named for each reason."""


@dataclass(frozen=True)
class Skipped:
    """Lines, or values of lines, that could not be used for one reason.

    Args:
        reason: The reason, as a phrase: ``values that are no numbers``.
        count: Number of lines or values.
        lines: Numbers of the first such lines, one more than are shown; the header is line 1.
        example: The content of the first of them.
    """

    reason: str
    count: int
    lines: tuple[int, ...]
    example: str

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.lines[:NAMED])) + (", …" if len(self.lines) > NAMED else "")
        word = "line" if len(self.lines) == 1 else "lines"
        return f"{self.reason}: {self.count} ({word} {shown}, e.g. '{self.example}')"


@dataclass(frozen=True)
class SeriesReport:
    """The report on a file.

    Args:
        path: The file.
        rows: Number of rows below the header, without blank lines.
        bad_times: Rows skipped because their time is missing or no time.
        missing: Values without a number: empty, NaN, infinite, or no number at all.
        unsorted: Rows whose time is before that of the row above, in the same series.
        duplicates: Rows whose time occurred before, in the same series.
        irregular: Steps between neighbouring times that differ from the usual one.
        step_ms: The usual step, which is the median; 0 if there are fewer than two times.
        machines: The machines that the file names, sorted; empty if it names none.
        skipped: Lines and values that could not be used, for each reason; missing values are not among them.
        notes: The decisions made in reading: marks, order of dates, columns left out.
        failure: Why the file could not be used at all, if it was one of several; otherwise empty.
    """

    path: str
    rows: int
    bad_times: int = 0
    missing: int = 0
    unsorted: int = 0
    duplicates: int = 0
    irregular: int = 0
    step_ms: int = 0
    machines: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    failure: str = ""

    @property
    def whole(self) -> bool:
        """Whether all content of the file was used."""
        return not self.skipped and not self.failure

    def __str__(self) -> str:
        if self.failure:
            return f"{visible(self.path)}: skipped\n  {visible(self.failure)}"
        faults = {
            "rows without a time": self.bad_times,
            "missing values": self.missing,
            "rows out of order": self.unsorted,
            "duplicate times": self.duplicates,
            "irregular steps": self.irregular,
        }
        counts = ", ".join(f"{count} {fault}" for fault, count in faults.items() if count)
        first = f"{self.path}: {self.rows} rows, step {self.step_ms / 1000:g} s; {counts or 'no faults'}"
        lines = [first, *(f"skipped {lines}" for lines in self.skipped), *self.notes]
        return "\n  ".join(map(visible, lines))
