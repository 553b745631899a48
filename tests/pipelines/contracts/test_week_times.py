"""Times of the week are those of the wall clock of a time zone, also where it is put forward or back."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipelines.contracts.week_times import DAYS, are_within, is_within

MINUTES = st.integers(0, 1439)
INSTANTS = st.integers(1_600_000_000_000, 1_800_000_000_000)
SPANS = st.tuples(st.integers(0, 6), st.integers(0, 6), MINUTES, MINUTES).filter(lambda it: it[2] != it[3])
CHANGES = st.integers(-180, 180).map(lambda minutes: 1_774_746_000_000 + minutes * 60_000)  # on 29 March 2026


def clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


@given(
    st.lists(SPANS, max_size=3),
    st.sampled_from(["UTC", "Europe/Stockholm", "Asia/Kathmandu", "America/New_York"]),
    st.lists(INSTANTS | CHANGES, min_size=1, max_size=20),
)
def test_an_instant_is_within_if_the_wall_clock_is_in_one_of_the_spans(
    spans: list[tuple[int, int, int, int]], zone: str, instants: list[int]
) -> None:
    text = ",".join(f"{DAYS[a]}-{DAYS[b]} {clock(begin)}-{clock(end)}" for a, b, begin, end in spans)

    def expected(instant: int) -> bool:
        local = datetime.fromtimestamp(instant / 1000, UTC).astimezone(ZoneInfo(zone))
        minute = local.hour * 60 + local.minute
        for first, last, begin, end in spans:
            days = {(first + n) % 7 for n in range((last - first) % 7 + 1)}
            begun = local.weekday() if minute >= begin else (local.weekday() - 1) % 7  # the day on which it began
            inside = begin <= minute < end if begin < end else minute >= begin or minute < end
            if inside and begun in days:
                return True
        return False

    wanted = [expected(instant) for instant in instants]
    assert are_within(text, zone, pl.Series(instants)).tolist() == wanted
    assert [is_within(text, zone, instant) for instant in instants] == wanted
