"""When a server wants to be asked again, by RFC 9110, section 10.2.3: seconds, or a date of HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pipelines.contracts.retry_after import retry_after


@pytest.mark.parametrize(("text", "seconds"), [("0", 0.0), ("9", 9.0), ("99999999999999999999", 300.0)])
def test_seconds_count_up_to_the_most(text: str, seconds: float) -> None:
    assert retry_after(text, 300.0) == seconds


def test_a_date_counts_from_now() -> None:
    then = datetime.now(UTC) + timedelta(seconds=100)
    assert retry_after(format_datetime(then, usegmt=True), 300.0) == pytest.approx(100, abs=5)
    assert retry_after(format_datetime(then - timedelta(days=1), usegmt=True), 300.0) == 0
    assert retry_after("Fri, 31 Dec 9999 23:59:59 GMT", 300.0) == 300


@pytest.mark.parametrize(
    "text",
    ["", "soon", "-1", "1.5", "²", "Mon, 32 Jan 2020 00:00:00 GMT", "Mon, 01 Jan 2020 00:00:00 +99999999999999999999"],
)
def test_what_is_neither_says_nothing(text: str) -> None:
    assert retry_after(text, 300.0) is None
