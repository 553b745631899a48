"""Changes of a site that are reported over HTTP: CloudEvents, Grafana's annotations, Kubernetes' events."""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import orjson

from engine.clock import now_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Change
from pipelines.contracts.settings import Settings
from pipelines.formats import parts
from pipelines.gateway.change_formats import NO_CHANGE, changes_of
from pipelines.gateway.protocol import Body, MalformedError, NotTakenError, Protocol, Reply, Taken
from pipelines.jobs.sources import bounds

MOST = 1_000
"""The most changes of a request, each a message of its own; events that change nothing do not count."""
_JSON = "application/json"
_TOLD = 10
"""The reasons of so many that are left out are in the answer."""
_BINARY = ("id", "source", "type", "specversion")
"""The attributes that a CloudEvent in the headers of HTTP must have."""


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
        left_out: list[NewnormalError] = []
        wrong: list[NewnormalError] = []
        for each in changes_of(_content(body), now):
            refused = each if isinstance(each, NewnormalError) else self._refused(each, now)
            if refused is not None:
                left_out.append(refused)
                wrong += [refused] if refused.code != NO_CHANGE else []
            elif isinstance(each, Change) and (each.id not in taken or taken[each.id].time <= each.time):
                taken[each.id] = each
            if len(taken) + len(wrong) > MOST:
                raise MalformedError("GATEWAY_TOO_LARGE", f"more than {MOST} changes in a request", f"up to {MOST}")
        if wrong and not taken:
            raise MalformedError(wrong[0].code, wrong[0].what, wrong[0].accepted)
        keyed = {name.encode(): change.to_json() for name, change in taken.items()}
        return Taken(topics.CHANGES, None, len(taken), self.answer(len(taken), left_out), keyed)

    def answer(self, taken: int, left_out: list[NewnormalError]) -> Reply:
        """How many were taken, and why others were not."""
        reasons = [f"{each.code}: {each.what}" for each in left_out[:_TOLD]]
        content = {"taken": taken, "left_out": len(left_out), "reasons": reasons}
        return Reply(HTTPStatus.ACCEPTED, orjson.dumps(content), _JSON)

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        return Reply(error.status, orjson.dumps({"message": error.text}), _JSON)

    def _refused(self, change: Change, now: int) -> NewnormalError | None:
        reason = self._bounds.refusal(change.over, now, "time")
        return None if reason is None else NewnormalError(*reason)


class Annotations(Changes):
    """Annotations as Grafana's API takes and answers them, for programs that write them there."""

    name = "annotations"

    def answer(self, taken: int, left_out: list[NewnormalError]) -> Reply:
        return Reply(HTTPStatus.OK, orjson.dumps({"message": "Annotation added", "id": 0}), _JSON)


def _content(body: Body) -> Any:
    """The JSON of a body; of a CloudEvent whose attributes are headers, the event with the body as its data.

    Raises:
        MalformedError: ``JSON_MALFORMED``.
    """
    binary = all(name in body.attributes for name in _BINARY)
    try:
        content = orjson.loads(body.data) if body.data.strip() or not binary else None
    except ValueError as error:
        if not binary:
            raise MalformedError("JSON_MALFORMED", str(error)[:200]) from None
        content = body.data.decode(errors="replace")
    return {**{name: _decoded(text) for name, text in body.attributes.items()}, "data": content} if binary else content


def _decoded(header: str) -> str:
    r"""The text of an attribute, which its header may have in quotation marks, and has percent-encoded.

    >>> _decoded('"a \\" %E2%82%AC"')
    'a " €'
    """
    if len(header) > 1 and header[0] == header[-1] == '"':
        header = re.sub(r"\\(.)", r"\1", header[1:-1])
    return unquote(header)
