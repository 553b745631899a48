"""Changes of a site that are reported over HTTP: CloudEvents, Grafana's annotations, Kubernetes' events."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

import orjson

from engine.clock import now_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Change
from pipelines.contracts.settings import Settings
from pipelines.formats import parts
from pipelines.gateway import cloud_events
from pipelines.gateway.change_formats import NO_CHANGE, changes_of
from pipelines.gateway.protocol import Body, MalformedError, NotTakenError, Protocol, Reply, Taken
from pipelines.jobs.sources import bounds

MOST = 1_000
"""The most changes of a request, each a message of its own; events that change nothing do not count."""
_JSON = "application/json"
_TOLD = 10
"""The reasons of so many that are left out are in the answer."""


class Changes(Protocol):
    """Changes as `pipelines.gateway.change_formats` reads them.

    Args:
        settings: The settings; they bound the event times that are accepted.
        clock: The time now, epoch milliseconds.
    """

    name = "changes"
    encodings = ("identity", "gzip", "deflate", "zstd")

    def __init__(self, settings: Settings, clock: Callable[[], int] = now_ms) -> None:
        self._bounds, self._clock = bounds(settings), clock

    def parts(self, body: Body, most: int) -> int:
        return parts.of_json(body.data, most)

    def take(self, body: Body) -> Taken:
        now = self._clock()
        taken: dict[str, Change] = {}
        reasons: list[str] = []
        left_out = wrong = 0
        first: NewnormalError | None = None
        for each in changes_of(cloud_events.content(body), now):
            refused = each if isinstance(each, NewnormalError) else self._refused(each, now)
            if refused is not None:  # an error holds the frames in which it was raised: none but one is kept
                left_out += 1
                reasons += [f"{refused.code}: {refused.what}"] if len(reasons) < _TOLD else []
                if refused.code != NO_CHANGE:
                    wrong, first = wrong + 1, first or refused
            elif isinstance(each, Change) and (each.id not in taken or taken[each.id].time <= each.time):
                taken[each.id] = each
            if len(taken) + wrong > MOST:
                raise MalformedError("GATEWAY_TOO_LARGE", f"more than {MOST} changes in a request", f"up to {MOST}")
        if first is not None and not taken:
            raise MalformedError(first.code, first.what, first.accepted)
        keyed = {name.encode(): change.to_json() for name, change in taken.items()}
        return Taken(topics.CHANGES, None, len(taken), self.answer(len(taken), left_out, reasons), keyed)

    def answer(self, taken: int, left_out: int, reasons: list[str]) -> Reply:
        """How many were taken, how many were not, and why the first of these were not."""
        content = {"taken": taken, "left_out": left_out, "reasons": reasons}
        return Reply(HTTPStatus.ACCEPTED, orjson.dumps(content), _JSON)

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        return Reply(error.status, orjson.dumps({"message": error.text}), _JSON)

    def _refused(self, change: Change, now: int) -> NewnormalError | None:
        reason = self._bounds.refusal(max(change.time, change.end or 0), now, "time")
        return None if reason is None else NewnormalError(*reason)


class Annotations(Changes):
    """Annotations as Grafana's API takes and answers them, for programs that write them there."""

    name = "annotations"

    def answer(self, taken: int, left_out: int, reasons: list[str]) -> Reply:
        return Reply(HTTPStatus.OK, orjson.dumps({"message": "Annotation added", "id": 0}), _JSON)
