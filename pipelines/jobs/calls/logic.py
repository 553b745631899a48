"""The calls of one trace: a span whose service is another one than that of the span it came from is a call.

The spans of a trace come in any order from several senders. Which calls are found depends on the spans alone; what a
client itself says of whom it calls counts if no span of the one that was called has come within `WAITS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import orjson

from engine.columns.arrays import Default, objects
from engine.operators.turn import NO_TIMER, Logic, Turn
from pipelines.formats.placements.spans import MOST_SPANS

WAITS = 60_000
"""For so many milliseconds of event time the spans of a trace are waited for."""

_Call = tuple[str, str]
"""(caller, callee)"""


class TraceCalls(Logic):
    """Joins the spans of each trace with those that they came from, and emits the calls."""

    state: ClassVar[Mapping[str, Default]] = {"spans": "", "count": 0}

    def on_records(self, turn: Turn) -> None:
        """Keeps the spans; all is said when the trace has been waited for, so that the order does not matter."""
        names = ("span", "parent", "service", "peer")
        for i, span in enumerate(zip(*(turn.exact(name) for name in names), strict=True)):
            count = turn.state["count"][i]
            if not count:
                turn.timer[i] = int(turn.time[i]) + WAITS
            if count < MOST_SPANS:
                turn.state["spans"][i] += ("," if count else "") + orjson.dumps(span).decode()
                turn.state["count"][i] = count + 1

    def on_timers(self, turn: Turn) -> None:
        found = [found_calls(orjson.loads(f"[{text}]")) for text in turn.state["spans"]]
        for number in range(max(map(len, found), default=0)):
            calls = [each[number] if number < len(each) else ("", "") for each in found]
            columns = {"entity": objects([call[0] for call in calls]), "callee": objects([call[1] for call in calls])}
            turn.emit({**columns, "seen": turn.time - WAITS}, np.array([bool(call[0]) for call in calls]))
        turn.state["spans"], turn.state["count"] = objects([""] * len(turn)), np.zeros(len(turn), np.int64)
        turn.timer[:] = NO_TIMER


def found_calls(spans: list[tuple[str, str, str, str | None]]) -> list[_Call]:
    """The calls between services that some spans of a trace show, each once, sorted.

    Args:
        spans: Id, id of the span that it came from, service, and the service that it calls by its own word.

    >>> found_calls([("b", "a", "cart", None), ("a", "", "web", "cart.example.com"), ("c", "b", "cart", "db")])
    [('cart', 'db'), ('web', 'cart')]
    """
    service = {span: name for span, _, name, _ in sorted(spans, key=lambda each: each[2])}
    calls = {(service[parent], name) for _, parent, name, _ in spans if parent in service}
    answered = {parent for _, parent, name, _ in spans if service.get(parent, name) != name}
    calls |= {(name, peer) for span, _, name, peer in spans if peer and span not in answered}
    return sorted(call for call in calls if call[0] != call[1])
