"""Reads event times from text: ISO 8601 (UTC if there is no offset), or digits, which are epoch milliseconds.

Digits beyond milliseconds are cut off. The forms that agents write are read by the column; all other forms of ISO 8601
are read one by one, with the same meaning.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import polars as pl

ACCEPTED = "epoch milliseconds, or ISO 8601, e.g. 2026-11-21T00:00:00Z"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = r"^[0-9]{1,16}$"
_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-5][0-9](?:\.[0-9]{1,9})?"
_PLAIN = rf"^{_MOMENT}(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})?$"
_UNZONED = rf"^({_MOMENT})$"
_EPOCH_MS, _BEGINS = re.compile(_DIGITS), re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:")
_LEAP = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:)60")
_MS = timedelta(milliseconds=1)


def instants(texts: pl.Expr) -> pl.Expr:
    """Epoch milliseconds of a column of text, as floats; null where `instant` must read the text.

    >>> texts = pl.Series(["2026-11-21T01:00:00.5+01:00", "2026-11-21 00:00:00", "1795219200000", "soon"])
    >>> texts.to_frame("t").select(instants(pl.col("t"))).to_series().to_list()
    [1795219200500.0, 1795219200000.0, 1795219200000.0, None]
    """
    zoned = texts.str.replace(_UNZONED, "${1}Z")
    parsed = zoned.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False).dt.epoch("us") // 1000
    digits = pl.when(texts.str.contains(_DIGITS)).then(texts.cast(pl.Float64, strict=False))
    return pl.when(texts.str.contains(_PLAIN)).then(parsed.cast(pl.Float64)).otherwise(digits)


def instant(text: str) -> int:
    """Epoch milliseconds of one text.

    Raises:
        ValueError: The text is no time.

    >>> instant("2026-11-21T01:00+01:00"), instant("1795219200000"), instant("2016-12-31t23:59:60z")
    (1795219200000, 1795219200000, 1483228800000)
    """
    if _EPOCH_MS.match(text):
        return int(text)
    if not _BEGINS.match(text):
        raise ValueError("no time")
    # RFC 3339 allows small letters; a leap second is the first second after it, as in all counts of seconds
    plain, leaps = _LEAP.subn(r"\g<1>59", text)
    when = datetime.fromisoformat(plain.upper())
    return ((when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH) // _MS + 1000 * leaps
