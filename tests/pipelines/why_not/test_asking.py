"""Which time is asked about: what no calendar has, no time at all and more than a day are refused with a code."""

from __future__ import annotations

import pytest

from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.why_not.asking import span

NOW = 1_795_219_200_000


@pytest.mark.parametrize(
    ("time", "within", "code"),
    [
        ("0001-01-01T00:00:00Z", "5m", "TIME_INVALID"),
        ("0001-01-01T00:00:00+14:00", "5m", "TIME_INVALID"),
        ("1969-12-31T23:59:59Z", "5m", "TIME_INVALID"),
        ("9999-12-31T23:59:59-12:00", "5m", "TIME_INVALID"),
        ("", "5m", "TIME_INVALID"),
        ("+99999d", "5m", "DURATION_INVALID"),
        ("now", "0s", "USAGE_INVALID"),
        ("now", "25h", "USAGE_INVALID"),
        ("now", "-5m", "DURATION_INVALID"),
        ("now", "x" * 5_000, "DURATION_INVALID"),
    ],
)
def test_a_time_that_cannot_be_asked_about_is_refused(time: str, within: str, code: str) -> None:
    with pytest.raises(NewnormalError) as found:
        span(time, within, NOW)
    assert found.value.code == code


@pytest.mark.parametrize("time", ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "now", "-1d", "+3653d"])
def test_what_may_be_asked_about_can_be_written(time: str) -> None:
    start, end = span(time, "1d", NOW)
    assert iso(start) <= iso(end)
