"""When a server wants to be asked again: the header ``Retry-After`` (RFC 9110, section 10.2.3)."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after(text: str, most: float) -> float | None:
    """Seconds after which a server wants to be asked again, as it says them, or a date; ``None``: it says neither.

    Args:
        text: The header.
        most: Longer times count as this.

    >>> retry_after("120", 60.0), retry_after("Thu, 01 Jan 1970 00:00:00 GMT", 60.0), retry_after("soon", 60.0)
    (60.0, 0.0, None)
    """
    if text.isascii() and text.isdigit():
        return min(float(text[:10]), most)
    try:
        until = parsedate_to_datetime(text)
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return min(max(0.0, (until - datetime.now(UTC)).total_seconds()), most)
    except (ValueError, OverflowError):  # a zone of many digits is too large
        return None
