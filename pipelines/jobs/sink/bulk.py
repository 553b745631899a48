"""Bulk requests of bounded size, with an outcome for every single document. This module knows nothing of records.

Elasticsearch's answer on a document decides its outcome:
1. The document was stored: it counts as stored.
2. Conflict (409), a higher version is in the index: it counts as superseded.
3. The server is at fault (overload, full disk, shard not ready, …): it is sent again after a pause, without limit.
4. Internal error (500): it is sent again a few times, and then rejected, as the document may cause the error.
5. The document is at fault (it does not parse, a field is wrong, …): it is rejected, with Elasticsearch's reason.
If a whole request is refused (400, 413), it is halved until the document at fault is alone in a request. If the account
may not write to the index of a document, that is an error, as it is where it may not send the request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
from elastic_transport import TransportError
from elasticsearch import ApiError, Elasticsearch
from elasticsearch.serializer import CompatibilityModeJsonSerializer

from pipelines.jobs.sink.backoff import ForbiddenError, Patience
from pipelines.jobs.sink.document import IndexedNews, Rejected, SinkDocument

_SERVERS_FAULT = frozenset({403, 408, 429, 502, 503, 504})
_SERVERS_FAULT_TYPES = frozenset(
    {"validation_exception", "index_closed_exception", "index_not_found_exception", "cluster_block_exception"}
)
_MAY_NOT = "security_exception"
_TRIES_AT_500 = 5
_HEADER = b'{"index":{"_index":%s,"_id":%s,"version":%d,"version_type":"external_gte"}}'


class _Replies(CompatibilityModeJsonSerializer):
    """Reads replies with orjson, and those that it refuses as the client does."""

    def json_loads(self, data: bytes) -> Any:
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            return super().json_loads(data)


REPLIES = {_Replies.mimetype: _Replies()}
"""The client's option ``serializers`` with which the replies to bulk requests, one item per document, are read fast."""


@dataclass(slots=True, eq=False)  # a frozen one takes 2 µs per document
class Action:
    """One document, ready to be stored; nobody changes it.

    Attributes:
        document: The document as it was handed in.
        index: Name of the index.
        id: The `_id`.
        version: The external version; the index keeps the highest.
        time: Event time of the document, epoch milliseconds.
        body: The document's JSON.
        news: The news in the document, if any.
        header: The action line of the bulk request; with `external_gte`, writing a revision again is no conflict.
    """

    document: SinkDocument
    index: str
    id: str
    version: int
    time: int
    body: bytes = field(repr=False)
    news: IndexedNews | None = None
    header: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        place = orjson.dumps(self.index), orjson.dumps(self.id), self.version  # whole headers of orjson take 4 kB each
        self.header = _HEADER % place


@dataclass(frozen=True)
class Limits:
    """Bounds of bulk requests.

    Attributes:
        connections: Most requests at a time.
        documents: Most documents in a request.
        bytes: Largest size of a request; a document that is larger alone gets a request of its own.
        document_bytes: Largest size of a document; a larger one is rejected, as a server with a small heap would never
            accept it.
        shard_wait_ms: How long Elasticsearch waits for a shard that is not ready, milliseconds. It must answer before
            the client gives up: otherwise requests that nobody waits for pile up in the server.
    """

    connections: int = 4
    documents: int = 2_000
    bytes: int = 5 * 2**20
    document_bytes: int = 10 * 2**20
    shard_wait_ms: int = 10_000


@dataclass
class Stored:
    """The outcome of writing actions: those stored, the number of those superseded, and those rejected."""

    stored: list[Action] = field(default_factory=list)
    superseded: int = 0
    rejected: list[Rejected] = field(default_factory=list)


def chunks(actions: Iterable[Action], limits: Limits) -> Iterator[list[Action]]:
    """Splits actions, in their order, into lists within the limits.

    >>> one = Action(SinkDocument(b""), "i", "a", 1, 0, b"{}")
    >>> [len(chunk) for chunk in chunks([one] * 5, Limits(documents=2))]
    [2, 2, 1]
    """
    chunk: list[Action] = []
    size = 0
    for action in actions:
        more = len(action.body) + len(action.header) + 2
        if chunk and (len(chunk) >= limits.documents or size + more > limits.bytes):
            yield chunk
            chunk, size = [], 0
        chunk.append(action)
        size += more
    if chunk:
        yield chunk


class BulkWriter:
    """Writes actions to Elasticsearch until each is stored, superseded or rejected; several threads may call it."""

    def __init__(
        self, client: Elasticsearch, limits: Limits, patience: Patience, recover: Callable[[], object] | None = None
    ) -> None:
        self._client, self._limits, self._patience, self._recover = client, limits, patience, recover

    def write(self, actions: Iterable[Action]) -> Stored:
        """Writes all actions, in their order.

        Raises:
            NewnormalError: See `Patience.insist`.
        """
        done = Stored()
        for chunk in chunks(actions, self._limits):
            self._chunk(chunk, done)
        return done

    def _chunk(self, chunk: list[Action], done: Stored) -> None:
        parts, internal = deque([chunk]), dict[str, int]()
        with self._patience.wait() as wait:
            while parts:
                part = parts.popleft()
                try:
                    items = self._patience.insist(lambda part=part: self._send(part), self._recover)  # type: ignore[misc]
                except ApiError as error:
                    if error.status_code not in (400, 413):
                        raise self._patience.refused(str(error)) from None
                    if len(part) == 1:
                        code = "TOO_LARGE" if error.status_code == 413 else "DOCUMENT_REFUSED"
                        done.rejected.append(Rejected(part[0].document, code, str(error)))
                    else:
                        parts.extendleft([part[len(part) // 2 :], part[: len(part) // 2]])
                    continue
                if all(200 <= item["status"] < 300 for item in items):
                    done.stored += part
                    continue
                again = [pair for pair in zip(part, items, strict=True) if self._again(*pair, internal, done)]
                if again:
                    errors = [item.get("error", {}) for _, item in again]
                    worst = next((each for each in errors if each.get("type") == _MAY_NOT), errors[0])
                    reason = worst.get("reason", "no reason given")
                    if worst.get("type") == _MAY_NOT:
                        raise self._patience.refused(f"HTTP 403: {reason}", ForbiddenError)
                    wait.pause(f"{len(again)} documents must be sent again: {reason}")
                    parts.appendleft([action for action, _ in again])

    def _send(self, part: list[Action]) -> list[dict[str, Any]]:
        lines = [line for action in part for line in (action.header, action.body)]
        reply = self._client.bulk(
            operations=b"\n".join([*lines, b""]),  # type: ignore[arg-type]  # bytes are sent as they are
            timeout=f"{self._limits.shard_wait_ms}ms",
            filter_path="items.*.status,items.*.error.type,items.*.error.reason",
        )
        items = [item["index"] for item in reply.body.get("items", [])]
        if len(items) != len(part):
            raise TransportError(f"{len(items)} answers to {len(part)} documents")
        return items

    def _again(self, action: Action, item: dict[str, Any], internal: dict[str, int], done: Stored) -> bool:
        """True if the action must be sent again; otherwise its outcome is added to ``done``.

        Args:
            action: The action.
            item: Elasticsearch's answer on it.
            internal: How often each `_id` got an internal error; updated.
            done: The outcomes so far; updated.
        """
        status, error = item["status"], item.get("error", {})
        code, reason = error.get("type", "unknown"), error.get("reason", f"HTTP {status}")
        if 200 <= status < 300:
            done.stored.append(action)
        elif status == 409:
            done.superseded += 1
        elif status in _SERVERS_FAULT or code in _SERVERS_FAULT_TYPES:
            return True
        elif status >= 500 and internal.get(action.id, 1) < _TRIES_AT_500:
            internal[action.id] = internal.get(action.id, 1) + 1
            return True
        else:
            done.rejected.append(Rejected(action.document, "DOCUMENT_REFUSED", f"{code}: {reason}"))
        return False
