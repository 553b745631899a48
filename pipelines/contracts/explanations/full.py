"""When something is full, in words, for titles and messages."""

from __future__ import annotations

from pipelines.contracts.quantities.words import instant

_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
_UNITS = ((_DAY, 2 * _DAY, "days"), (_HOUR, 2 * _HOUR, "hours"), (_MINUTE, 0, "minutes"))
"""Length of each unit, from which time on it is used, and its name."""


def ahead(earliest: int, latest: int | None) -> str:
    """In how long something is full, as an interval.

    Args:
        earliest: Milliseconds until then at the earliest.
        latest: At the latest; ``None``: perhaps never.

    >>> ahead(10_800_000, 32_400_000), ahead(600_000, 5_400_000), ahead(777_600_000, 1_123_200_000)
    ('in 3 to 9 hours', 'in 10 to 90 minutes', 'in 9 to 13 days')
    >>> ahead(7_200_000, 7_300_000), ahead(3_600_000, None)
    ('in 2 to 3 hours', 'in 60 minutes or more')
    """
    length, _, name = next(unit for unit in _UNITS if (earliest if latest is None else latest) >= unit[1])
    low = earliest // length
    if latest is None:
        return f"in {low} {name} or more"
    high = -(-latest // length)
    return f"in {low} to {high} {name}" if low < high else f"in {high} {name}"


def will_be_full(said: int, earliest: int | None, latest: int | None, end: int | None, zone: str) -> str:
    """What was told of when something is full.

    Args:
        said: When it was told, epoch milliseconds.
        earliest: When it is full at the earliest; ``None``: it is not known.
        latest: The same at the latest.
        end: When there was room again; ``None`` while there is not.
        zone: IANA name of the time zone in which instants are written.

    >>> hour = 3_600_000
    >>> will_be_full(12 * hour, 15 * hour, 21 * hour, None, "UTC")
    'is full in 3 to 9 hours (95 %), from 12:00:00 UTC'
    >>> will_be_full(12 * hour, 12 * hour, 12 * hour, None, "UTC"), will_be_full(0, 0, hour, 2 * hour, "UTC")
    ('is full', 'has room again, or fills more slowly')
    """
    if end is not None:
        return "has room again, or fills more slowly"
    if earliest is None:
        return "will be full"
    if latest is not None and latest <= said:
        return "is full"
    left = None if latest is None else latest - said
    return f"is full {ahead(max(earliest - said, 0), left)} (95 %), from {instant(said, said, zone)}"
