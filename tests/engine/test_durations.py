"""A duration is parsed where a specification is built: a bad one is refused there, with the name of the parameter."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from engine.aggregates import Count, Rate
from engine.operators import CountWindows, Deduplicate, Event, IntervalJoin, Logic, Pattern, Process, Turn
from engine.operators.windows import WindowAggregate
from engine.spec.duration import Duration
from engine.spec.errors import NewnormalError
from engine.spec.time_bounds import TimeBounds
from engine.triggers import AfterProcessingTime
from engine.watermarks import AscendingTimestamps, BoundedOutOfOrderness, LearnedLateness, Prompt, Punctuated
from engine.windows import Calendar, KeepRecent, Session, Sliding, Tumbling
from tests.engine.panes import job


class Nothing(Logic):
    """Own logic that does nothing."""

    def on_records(self, turn: Turn) -> None:
        """Nothing."""


BAD = "5 parsecs"
BUILT: dict[str, Callable[[str], object]] = {
    "window.size": lambda text: Sliding(text, every="5s"),
    "window.every": lambda text: Sliding("10s", every=text),
    "window.offset": lambda text: Tumbling("10s", offset=text),
    "window.gap": Session,
    "window.begins": lambda text: Calendar("day", begins=text),
    "evict.span": KeepRecent,
    "trigger.period": AfterProcessingTime,
    "lookback": lambda text: Rate("value", lookback=text),
    "within": lambda text: Deduplicate(within=text),
    "within ": lambda text: Pattern((Event("a", "true"),), within=text),
    "lower": lambda text: IntervalJoin(text, "5s"),
    "upper": lambda text: IntervalJoin("-5s", text),
    "timeout": lambda text: CountWindows(3, timeout=text),
    "idle_after": lambda text: Process(Nothing(), idle_after=text),
    "idle_after ": AscendingTimestamps,
    "bound": BoundedOutOfOrderness,
    "bound ": Prompt,
    "idle_after  ": lambda text: Punctuated("time", idle_after=text),
    "history": lambda text: LearnedLateness(history=text),
    "least": lambda text: LearnedLateness(least=text),
    "most": lambda text: LearnedLateness(most=text),
    "max_ahead": TimeBounds,
    "allowed_lateness": lambda text: job(Tumbling("10s"), lateness=text),
    "allowed_lateness ": lambda text: WindowAggregate(("a",), "time", Tumbling("10s"), text, {"n": Count()}),
}


@pytest.mark.parametrize("where", BUILT)
def test_a_bad_duration_is_refused_when_the_specification_is_built(where: str) -> None:
    with pytest.raises(NewnormalError) as refused:
        BUILT[where](BAD)
    assert (refused.value.code, refused.value.where) == ("DURATION_INVALID", where.strip())
    assert BAD in str(refused.value)
    BUILT[where]("5s")


def test_text_and_milliseconds_mean_the_same_and_the_text_is_remembered() -> None:
    assert Tumbling("1m") == Tumbling(60_000) == Tumbling("60s")
    assert "size='1m'" in repr(Tumbling("1m"))
    assert str(Duration("90s") + 0) == "90000"


def test_a_specification_with_durations_can_be_sent_to_a_worker() -> None:
    sent = pickle.loads(pickle.dumps(Sliding("1m", every="10s", offset="3s")))
    assert sent == Sliding("1m", every="10s", offset="3s")
    assert (repr(sent), sent.size_ms) == (repr(Sliding("1m", every="10s", offset="3s")), 60_000)
