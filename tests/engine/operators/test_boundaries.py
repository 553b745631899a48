"""Where operators decide between two neighbours: an absence that is also the next event, rules of one instant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.operators.broadcast import Broadcast
from engine.operators.pattern import Event, Pattern
from engine.stream import Stream
from tests.engine.operators.conftest import Batch, Missed, ends, job_of, point, points, rule, rules
from tests.engine.operators.test_examples import taken

T0 = 1_700_000_000_000
PAID = Event("a", "word = 'x'"), Event("n", "value < 0", "absent"), Event("b", "word = 'y'")
"""x, then y, with no negative value in between."""


def _matches(driven: Callable[..., Any], pattern: Pattern, *batches: Batch) -> list[tuple[int, int]]:
    """Time of the first and the last event of each match."""
    job = job_of(Stream.read(points("l")).key_by("key").process(pattern))
    rows = driven(job, 1).run([*batches, ends(job.topics)]).rows
    return sorted((row["a_time"] - T0, row["b_time"] - T0) for row in rows)


@pytest.mark.parametrize("apart", [False, True], ids=["one batch", "a batch a record"])
def test_what_should_be_absent_ends_a_run_even_where_it_is_the_next_event_too(
    driven: Callable[..., Any], apart: bool
) -> None:
    records = [
        point(1000, "a", 1.0, "x"), point(2000, "a", 1.0, "y"),
        point(1000, "b", 1.0, "x"), point(2000, "b", -1.0, "z"), point(3000, "b", 1.0, "y"),
        point(1000, "c", 1.0, "x"), point(2000, "c", -1.0, "y"), point(3000, "c", 1.0, "y"),
    ]  # fmt: skip
    batches = [taken("l", one) for one in records] if apart else [taken("l", *records)]
    assert _matches(driven, Pattern(PAID, "10s", ("value",)), *batches) == [(1000, 2000)], "of key a only"


@pytest.mark.parametrize(("last", "matches"), [(6000, [(1000, 6000)]), (6001, [])])
def test_the_last_event_of_a_pattern_may_lie_as_far_away_as_within_says_and_no_further(
    driven: Callable[..., Any], last: int, matches: list[tuple[int, int]]
) -> None:
    pattern = Pattern((Event("a", "word = 'x'"), Event("b", "word = 'y'")), "5s")
    assert _matches(driven, pattern, taken("l", point(1000, word="x"), point(last, word="y"))) == matches


@pytest.mark.parametrize("apart", [False, True], ids=["one batch", "a batch a record"])
@pytest.mark.parametrize(
    ("after", "matches"),
    [("past_last", [(1000, 2000), (3000, 4000)]), ("each", [(1000, 2000), (2000, 3000), (3000, 4000)])],
)
def test_past_the_last_event_of_a_match_the_next_match_begins_with_the_next_record(
    driven: Callable[..., Any], after: Any, matches: list[tuple[int, int]], apart: bool
) -> None:
    pattern = Pattern((Event("a", "word = 'x'"), Event("b", "word = 'x'", "next")), "10s", after=after)
    records = [point(time) for time in (1000, 2000, 3000, 4000)]
    batches = [taken("l", one) for one in records] if apart else [taken("l", *records)]
    assert _matches(driven, pattern, *batches) == matches


def _limits(driven: Callable[..., Any], slow: list[Batch], *times: int) -> list[tuple[int, float]]:
    """Time of each record, and the limit of the rule that was in effect then."""
    judged = Stream.read(points("l")).key_by("key").join(Stream.read(rules()), Broadcast(identity=("rule",)))
    job = job_of(judged, late=Missed)
    rows = driven(job, 1).run([*slow, taken("l", *map(point, times)), ends(job.topics)]).rows
    return sorted((row["time"] - T0, row["limit"]) for row in rows)


@pytest.mark.parametrize("order", [(1.0, 5.0), (5.0, 1.0)])
@pytest.mark.parametrize("apart", [False, True], ids=["one batch", "a batch a rule"])
def test_of_two_versions_of_a_rule_at_one_instant_the_greater_one_counts_whichever_came_first(
    driven: Callable[..., Any], order: tuple[float, float], apart: bool
) -> None:
    versions = [rule(2000, "p", "x", limit) for limit in order]
    slow = [taken("rules", one) for one in versions] if apart else [taken("rules", *versions)]
    assert _limits(driven, slow, 2000, 3000) == [(2000, 5.0), (3000, 5.0)], "one version a record"


def test_a_version_of_a_rule_holds_from_its_instant_on_until_the_instant_of_the_next_one(
    driven: Callable[..., Any],
) -> None:
    slow = [taken("rules", rule(2000, "p", "x", 1.0), rule(4000, "p", "x", 2.0))]
    limits = _limits(driven, slow, 1999, 2000, 3999, 4000)
    assert limits == [(2000, 1.0), (3999, 1.0), (4000, 2.0)]


def test_records_of_one_instant_meet_a_pattern_in_order_of_their_values(driven: Callable[..., Any]) -> None:
    pattern = Pattern((Event("a", "word = 'x'"), Event("b", "word = 'y'", "next")), "5s", ("value",))
    first, second = point(1000, value=1.0, word="x"), point(1000, value=2.0, word="y")
    assert _matches(driven, pattern, taken("l", second, first)) == [(1000, 1000)]
    first, second = point(1000, value=1.0, word="y"), point(1000, value=2.0, word="x")
    assert _matches(driven, pattern, taken("l", second, first)) == []
