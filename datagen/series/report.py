"""What was remarkable about a file that was read: what was skipped and where, and what was decided."""

from __future__ import annotations

from dataclasses import dataclass

from engine.explain.printing import visible

NAMED = 5
"""So many lines are named of each reason."""


@dataclass(frozen=True)
class Skipped:
    """Lines, or values of lines, that could not be used for one reason.

    Args:
        what: The reason, as a phrase: ``values that are no numbers``.
        count: How many.
        lines: The first lines concerned, one more than are shown; the header is line 1.
        example: What stands there, in the first of them.
    """

    what: str
    count: int
    lines: tuple[int, ...]
    example: str

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.lines[:NAMED])) + (", …" if len(self.lines) > NAMED else "")
        word = "line" if len(self.lines) == 1 else "lines"
        return f"{self.what}: {self.count} ({word} {shown}, e.g. '{self.example}')"


@dataclass(frozen=True)
class SeriesReport:
    """What was remarkable about a file.

    Args:
        path: The file.
        rows: Rows below the header; blank lines are none.
        bad_times: Rows skipped because their time is missing or no time.
        missing: Values without a number: empty, NaN, infinite, or no number at all.
        unsorted: Rows whose time lies before that of the row above, of the same series.
        duplicates: Rows whose time was there already, of the same series.
        irregular: Steps between neighbouring times that differ from the usual one.
        step_ms: The usual step: the median; 0 of fewer than two times.
        machines: The machines that the file names, sorted; empty if it names none.
        skipped: What could not be used, reason by reason; empty values are none of it.
        notes: What was decided in reading: marks, order of dates, columns left out.
        failure: Why nothing of the file could be used, where other files could; empty else.
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
        """Whether everything that stands in the file was used."""
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
        found = ", ".join(f"{count} {what}" for what, count in faults.items() if count)
        first = f"{self.path}: {self.rows} rows, step {self.step_ms / 1000:g} s; {found or 'no faults'}"
        lines = [first, *(f"skipped {reason}" for reason in self.skipped), *self.notes]
        return "\n  ".join(map(visible, lines))
