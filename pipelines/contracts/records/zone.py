"""The type of a field that holds the name of a time zone, in records and settings."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated
from zoneinfo import available_timezones

import polars as pl
from pydantic import AfterValidator

_OF_ONE_MACHINE = frozenset({"localtime", "Factory"})
"""Names that some systems list as zones, but that stand for another zone on each machine; they are refused."""


def _zone(name: str) -> str:
    if name != "UTC" and (name in _OF_ONE_MACHINE or name not in available_timezones() or not _is_zone(name)):
        folded = {known.casefold(): known for known in available_timezones()}
        close = [folded[found] for found in get_close_matches(name.casefold(), folded, 1)]
        hint = f", did you mean {close[0]}?" if close else ""
        raise ValueError(f"{name!r} is not a time zone{hint}; accepted: an IANA name, e.g. Europe/Stockholm")
    return name


def _is_zone(name: str) -> bool:
    """True if Polars, which has its own list of time zones, knows this one."""
    try:
        pl.Series([0]).cast(pl.Datetime("ms", "UTC")).dt.convert_time_zone(name)
    except pl.exceptions.PolarsError:
        return False
    return True


Zone = Annotated[str, AfterValidator(_zone)]
"""The type of a field that holds the IANA name of a time zone."""
