"""How a CSV file is to be read: what its columns mean and how its numbers and times are written."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from engine.spec.errors import NewnormalError

_TAB = {"tab": "\t", "\\t": "\t"}


@dataclass(frozen=True)
class Reading:
    """What a user says about the format of CSV files; everything else is recognised file by file.

    Args:
        time_column: Name of the column of times.
        value_columns: Names of the columns of values; all columns of numbers if empty.
        entity_column: Name of the column that names the machine of a row.
        metric_column: Name of the column that names the metric of a row.
        entity: The machine of all files without a column of machines; if empty, each file is a machine of its own.
        separator: The separator of columns: one character, or ``tab``.
        decimal: The decimal mark, ``.`` or ``,``; the other one may group thousands.
        timezone: IANA name of the time zone of times without an offset.
        day_first: Whether in 01/11/2026 the day comes first.

    Raises:
        NewnormalError: ``SETTING_INVALID``.
    """

    time_column: str | None = None
    value_columns: tuple[str, ...] = ()
    entity_column: str | None = None
    metric_column: str | None = None
    entity: str | None = None
    separator: str | None = None
    decimal: str | None = None
    timezone: str = "UTC"
    day_first: bool | None = None

    def __post_init__(self) -> None:
        separator = _TAB.get(self.separator or "", self.separator)
        if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n'):
            raise _invalid(separator, "--separator", "one character such as ; or , or |, or the word tab")
        object.__setattr__(self, "separator", separator)
        if self.decimal not in (None, ".", ","):
            raise _invalid(self.decimal, "--decimal", "a point or a comma: . or ,")
        if self.entity is not None and not self.entity.strip():
            raise _invalid(self.entity, "--entity", "the name of a machine")
        try:
            ZoneInfo(self.timezone)
        except (OSError, ValueError, KeyError):  # a folder's name, a path, an unknown name
            raise _invalid(self.timezone, "--timezone", "an IANA name such as UTC or Europe/Stockholm") from None


def _invalid(value: str | None, where: str, accepted: str) -> NewnormalError:
    return NewnormalError("SETTING_INVALID", f"{value!r} is not accepted", where, accepted, "nothing was read")


USUAL = Reading()
"""A format of which everything is recognised."""
