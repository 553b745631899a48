"""Numbers as people and spreadsheets write them: decimal commas, groups of thousands, percent signs."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from datagen.series.csv_table import unreadable

_MISSING = (
    "nan",
    "null",
    "none",
    "nil",
    "na",
    "n/a",
    "#n/a",
    "-",
    "--",
    "inf",
    "+inf",
    "-inf",
    "infinity",
    "-infinity",
)
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_GROUPS = r"[1-9]\d{0,2}(?:[" + "{mark}" + r"' ]\d{3})+"
_USABLE = {
    mark: rf"^[+-]?(?:\d+|\d*{m}\d+|\d+{m}|{_GROUPS.replace('{mark}', other)}(?:{m}\d*)?){_EXPONENT}$"
    for mark, m, other in ((".", r"\.", ","), (",", ",", r"\."))
}
_GROUPED = r"^[+-]?[1-9]\d{0,2},\d{3}$"

ACCEPTED = "numbers such as 1.5, 1,5, 1 234.5 or 53.1 %; see --value-column, --decimal and --separator"
GREATEST = 1e150
"""Values with a greater magnitude are judged as this magnitude, see docs/model.md."""


def cleaned(column: str) -> pl.Expr:
    """The text of a column without percent sign, with plain spaces, apostrophes and minus signs; missing as null."""
    text = pl.col(column).str.replace_all("[\u00a0\u2009\u202f]", " ").str.replace_all("\u2019", "'")
    text = text.str.replace("\u2212", "-", literal=True).str.strip_suffix("%").str.strip_chars()
    return pl.when(~text.str.to_lowercase().is_in(["", *_MISSING])).then(text).alias(column)


def decimal_mark(texts: pl.DataFrame, lines: pl.Series, path: Path) -> str:
    """The decimal mark of a file: the one that more of its numbers prove.

    1,5 proves a comma, 1.5 a point; 1,234 proves neither.

    Args:
        texts: Columns of `cleaned` text.
        lines: The line of each row.
        path: The file.

    Raises:
        NewnormalError: ``SERIES_UNREADABLE`` if 1,234 may be either and nothing in the file decides it.
    """
    proofs = {".": 0, ",": 0}
    for name in texts.columns:
        usable = {mark: texts[name].str.contains(pattern) for mark, pattern in _USABLE.items()}
        proofs["."] += int((usable["."] & ~usable[","]).sum())
        proofs[","] += int((usable[","] & ~usable["."]).sum())
    if any(proofs.values()):
        return "," if proofs[","] > proofs["."] else "."
    for name in texts.columns:
        at = texts[name].str.contains(_GROUPED).fill_null(False).arg_true()
        if len(at):
            text = texts[name][at[0]]
            what = f"line {lines[at[0]]}: {text!r} may be {text.replace(',', '')} or {text.replace(',', '.')}"
            accepted = "--decimal . if the comma groups thousands, --decimal , if it is the decimal mark"
            raise unreadable(path, what, accepted)
    return "."


def value(column: str, mark: str) -> pl.Expr:
    """The finite numbers of a column of `cleaned` text; null where there is no such number."""
    text = pl.when(pl.col(column).str.contains(_USABLE[mark])).then(pl.col(column))
    plain = text.str.replace_all(r"[,' ]" if mark == "." else r"[.' ]", "").str.replace(",", ".", literal=True)
    number = plain.cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number).alias(column)
