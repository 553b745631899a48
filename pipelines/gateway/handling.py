"""Handles a request of any protocol: admits it, reads it within the limits, has it written, and answers."""

from __future__ import annotations

import asyncio
import time
import traceback
from concurrent.futures import Executor
from dataclasses import dataclass
from http import HTTPStatus

import structlog
from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from pipelines.contracts.settings import Settings
from pipelines.gateway.access import Access
from pipelines.gateway.compression import decompressed, too_large
from pipelines.gateway.limits import InFlight, Rate
from pipelines.gateway.metrics import Metrics
from pipelines.gateway.protocol import Body, NotTakenError, Protocol, Reply, Taken
from pipelines.gateway.work import LARGE, TooBusyError, Work
from pipelines.gateway.writer import RETRY_SECONDS, Writer

_BODY_SECONDS = 30.0
"""Seconds in which a body must have arrived."""
_LATER = "the same later"

log = structlog.get_logger()


@dataclass
class _Held:
    """The bytes that a request has reserved, and those that arrived."""

    reserved: int = 0
    received: int = 0


class Handler:
    """Handles requests.

    Args:
        settings: Limits and the namespace.
        writer: Writes to Kafka.
        access: Who may push.
        pool: Threads that check bodies.
    """

    def __init__(self, settings: Settings, writer: Writer, access: Access, pool: Executor) -> None:
        self._settings, self._limits = settings, settings.gateway
        self._writer, self._access, self._work = writer, access, Work(pool)
        self._in_flight = InFlight(self._limits.max_in_flight)
        self._rate = Rate(self._limits.rate)
        self.metrics = Metrics(self._in_flight)

    async def handle(self, request: Request, protocol: Protocol) -> Response:
        """Answers a request when Kafka has acknowledged it, or says why nothing was taken."""
        began, held, headers = time.monotonic(), _Held(), {}
        content_type = request.headers.get("content-type", "").lower()
        try:
            reply = await self._taken(request, protocol, content_type, held)
        except NotTakenError as error:
            error.request = request.headers.get("x-amz-firehose-request-id", "")
            reply = self._refused(error, protocol, content_type)
            headers = {"Connection": "close"} if held.received == 0 else {}
            headers |= {"Retry-After": str(error.retry_after)} if error.retry_after is not None else {}
        except ClientDisconnect:
            reply = Reply(HTTPStatus.BAD_REQUEST)
        except Exception as error:
            reply = self._refused(_failed(protocol, error), protocol, content_type)
        finally:
            self._in_flight.release(held.reserved)
        self.metrics.answered(protocol.name, reply.status, time.monotonic() - began, held.received)
        media_type = None if reply.status == HTTPStatus.NO_CONTENT else reply.media_type
        return Response(reply.content, reply.status, {**reply.headers, **headers}, media_type)

    def _refused(self, error: NotTakenError, protocol: Protocol, content_type: str) -> Reply:
        self.metrics.refused(protocol.name, error.error.code)
        return protocol.refusal(error, content_type)

    async def _taken(self, request: Request, protocol: Protocol, content_type: str, held: _Held) -> Reply:
        self._access.check(request.headers)
        sender = request.client.host if request.client else ""
        if wait := self._rate.wait(sender):
            what = f"{sender} sends more than {self._limits.rate} bytes per second"
            status, where = protocol.later, "gateway.rate"
            raise NotTakenError("GATEWAY_RATE", what, where, _LATER, status=status, retry_after=wait)
        encoding = request.headers.get("content-encoding", protocol.encodings[0]).strip().lower()
        if encoding not in protocol.encodings:
            what, accepted = f"the content encoding is {encoding[:40]!r}", ", ".join(protocol.encodings)
            status, where = HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Encoding header"
            raise NotTakenError("GATEWAY_ENCODING", what, where, accepted, status=status)
        data = await self._body(request, protocol, held)
        self._rate.charge(sender, len(data))
        parameters, channel = dict(request.query_params), request.headers.get("x-splunk-request-channel", "")

        def unpacked() -> bytes:
            whole = decompressed(data, encoding, self._limits.max_decompressed)
            self._reserve(len(whole), protocol, held)
            return whole

        def check() -> Taken:
            if len(whole) > most and protocol.parts(body, most) > most:
                raise too_large(f"more than {most} samples, lines, labels or other parts", "input.max_parts")
            return protocol.take(body)

        try:
            whole = await self._work.run(unpacked, min(len(data), LARGE), request.is_disconnected)
            attributes = {name[3:]: text for name, text in request.headers.items() if name.startswith("ce-")}
            body, most = Body(whole, content_type, parameters, channel, attributes), self._settings.input.max_parts
            taken = await self._work.run(check, len(whole), request.is_disconnected)
        except TooBusyError:
            raise _busy(protocol, "other requests are checked", "body") from None
        topic = self._settings.topic(taken.topic)
        messages: list[tuple[bytes | None, bytes]] = [*taken.keyed.items()]
        messages += [(None, taken.value)] if taken.value is not None else []
        if messages:
            await asyncio.gather(*(self._writer.write(topic, value, key) for key, value in messages))
            self.metrics.written(protocol.name, taken.records)
        return taken.reply

    async def _body(self, request: Request, protocol: Protocol, held: _Held) -> bytes:
        most = self._limits.max_body
        announced = request.headers.get("content-length", "0")
        if announced.isdigit() and int(announced) > most:
            raise too_large(f"more than {most} bytes", "gateway.max_body")
        parts = []
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                async for part in request.stream():
                    if held.received + len(part) > most:
                        raise too_large(f"more than {most} bytes", "gateway.max_body")
                    self._reserve(len(part), protocol, held)
                    held.received += len(part)
                    parts.append(part)
        except TimeoutError:
            what = f"the body has not arrived within {_BODY_SECONDS:g} s"
            status = HTTPStatus.SERVICE_UNAVAILABLE
            raise NotTakenError(
                "GATEWAY_SLOW", what, "body", _LATER, status=status, retry_after=RETRY_SECONDS
            ) from None
        return b"".join(parts)

    def _reserve(self, count: int, protocol: Protocol, held: _Held) -> None:
        if not self._in_flight.reserve(count):
            what = f"requests of {self._in_flight.held} bytes wait for Kafka"
            raise _busy(protocol, what, "gateway.max_in_flight")
        held.reserved += count


def _busy(protocol: Protocol, what: str, where: str) -> NotTakenError:
    return NotTakenError("GATEWAY_BUSY", what, where, _LATER, status=protocol.later, retry_after=RETRY_SECONDS)


def _failed(protocol: Protocol, error: Exception) -> NotTakenError:
    """The answer to a request at which the gateway failed. The log has type and place, not what the sender sent."""
    kind, place = type(error).__name__, traceback.extract_tb(error.__traceback__)[-1]
    log.error("The gateway failed at a request", protocol=protocol.name, error=kind, at=f"{place.name}:{place.lineno}")
    what, now = f"the gateway failed: {kind}", "it is not known whether something was taken"
    return NotTakenError("GATEWAY_FAILED", what, "gateway", "", now, status=HTTPStatus.INTERNAL_SERVER_ERROR)
