"""Numbers as people and spreadsheets write them: decimal commas, groups of thousands, percent signs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

MISSING = (
    *("", "nan", "null", "none", "nil", "na", "n/a", "#n/a", "-", "--"),
    *("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"),
)
"""Words that say that there is no value, in lower case."""
ACCEPTED = "numbers such as 1.5, 1,5, 1 234.5 or 53.1 %"

_EXPONENT = r"(?:[eE][+-]?[0-9]+)?"
_GROUPS = r"[1-9][0-9]{0,2}(?:[" + "{mark}" + r"' ][0-9]{3})+"
_USABLE = {
    mark: rf"^[+-]?(?:[0-9]+|[0-9]*{m}[0-9]+|[0-9]+{m}|{_GROUPS.replace('{mark}', other)}(?:{m}[0-9]*)?){_EXPONENT}$"
    for mark, m, other in ((".", r"\.", ","), (",", ",", r"\."))
}
_EITHER = re.compile("|".join(_USABLE.values()))
_PLAIN = rf"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+){_EXPONENT}$"
GROUPED = r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$"
"""A number whose comma may group thousands or be the decimal mark."""
_BEGINS_AS_NUMBER = r"^[+\-\x{2212}]?\s*[.,]?\d"


def is_number(text: str) -> bool:
    """Whether a field is a number, with whatever decimal mark.

    >>> [is_number(text) for text in ("1,5", "53.1 %", "10.0.0.5", "nan")]
    [True, True, False, False]
    """
    return _EITHER.match(text.strip().removesuffix("%").strip()) is not None


@dataclass(frozen=True)
class Numbers:
    """Columns of text that were read as numbers.

    Args:
        values: The finite numbers of each column; null where there is none.
        texts: The text of each column, null where a value is missing. Text without a number is no number.
        comma: Whether the decimal mark of each line is a comma, shape (n,).
        doubtful: Lines, from 0, whose text such as 1,234 may be either: one of each such message, ascending.
    """

    values: list[pl.Series]
    texts: list[pl.Series]
    comma: npt.NDArray[np.bool_]
    doubtful: list[int]


def read_numbers(columns: Sequence[pl.Series], begins: npt.NDArray[np.int64], mark: str | None = None) -> Numbers:
    """Reads columns of text, without blanks around it, as numbers.

    The decimal mark of a message is the one that more of its numbers prove: 1,5 proves a comma, 1.5 a point, and 1,234
    neither. A message in which nothing proves one has a point, and is doubtful if it holds a number such as 1,234.

    Args:
        columns: At least one column of the same length n.
        begins: The first line of each message, ascending from 0.
        mark: The decimal mark, ``.`` or ``,``, if it is known; the other one may group thousands.

    >>> read = read_numbers([pl.Series(["1,5", "1.234", "n/a", "x"])], np.array([0]))
    >>> read.values[0].to_list(), read.texts[0].to_list()
    ([1.5, 1234.0, None, None], ['1,5', '1.234', None, 'x'])
    """
    lines = len(columns[0])
    texts, plain = zip(*(_cleaned(column) for column in columns), strict=True)
    odd = [text for text, alike in zip(texts, plain, strict=True) if _odd(text, alike)]
    comma, doubtful = np.full(lines, mark == ","), list[int]()
    if mark is None and odd and lines:
        comma, doubtful = _marks(texts, begins)
    if not comma.any() and not odd:
        values = [_finite(text.cast(pl.Float64, strict=False), alike) for text, alike in zip(texts, plain, strict=True)]
    else:
        values = [_of(text, comma) for text in texts]
    return Numbers(values, list(texts), comma, doubtful)


def _cleaned(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The text without percent sign, with plain spaces, apostrophes and minus signs; and whether it is plain digits."""
    plain = column.str.contains(_PLAIN)
    if plain.all() and not plain.null_count():
        return column, plain
    text = column.str.replace_all("[\u00a0\u2009\u202f]", " ").str.replace_all("\u2019", "'")
    text = text.str.replace("\u2212", "-", literal=True).str.strip_suffix("%").str.strip_chars()
    missing = text.str.to_lowercase().is_in(list(MISSING))
    text = pl.select(pl.when(~missing).then(text)).to_series()
    return text, text.str.contains(_PLAIN).fill_null(False)


def _odd(text: pl.Series, plain: pl.Series) -> bool:
    return bool((~plain & text.str.contains(_BEGINS_AS_NUMBER).fill_null(False)).any())


def _marks(texts: Sequence[pl.Series], begins: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.bool_], list[int]]:
    """Whether the decimal mark of each line is a comma, as its message proves; and the doubtful lines."""
    lines = len(texts[0])
    proofs = {".": np.zeros(lines, np.int64), ",": np.zeros(lines, np.int64)}
    grouped = np.zeros(lines, bool)
    for text in texts:
        usable = {mark: text.str.contains(pattern).fill_null(False) for mark, pattern in _USABLE.items()}
        proofs["."] += (usable["."] & ~usable[","]).to_numpy()
        proofs[","] += (usable[","] & ~usable["."]).to_numpy()
        grouped |= text.str.contains(GROUPED).fill_null(False).to_numpy()
    point, comma = (np.add.reduceat(proofs[mark], begins) for mark in (".", ","))
    sizes = np.diff(begins, append=lines)
    unproven = np.repeat((point == 0) & (comma == 0), sizes) & grouped
    message = np.repeat(np.arange(len(begins)), sizes)
    _, first = np.unique(message[unproven], return_index=True)
    return np.repeat(comma > point, sizes), np.flatnonzero(unproven)[first].tolist()


def _of(text: pl.Series, comma: npt.NDArray[np.bool_]) -> pl.Series:
    frame, there = pl.DataFrame({"t": text, "comma": comma}), pl.col("t")
    usable = pl.when(pl.col("comma")).then(there.str.contains(_USABLE[","])).otherwise(there.str.contains(_USABLE["."]))
    with_comma = there.str.replace_all(r"[.' ]", "").str.replace(",", ".", literal=True)
    digits = pl.when(pl.col("comma")).then(with_comma).otherwise(there.str.replace_all(r"[,' ]", ""))
    read = frame.select(usable.fill_null(False).alias("usable"), digits.cast(pl.Float64, strict=False).alias("number"))
    return _finite(read["number"], read["usable"])


def _finite(number: pl.Series, usable: pl.Series) -> pl.Series:
    return pl.select(pl.when(usable & number.is_finite()).then(number)).to_series()
