"""The port of StatsD: takes lines over UDP and TCP, has them aggregated, and writes what each interval becomes."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress

import structlog

from engine.spec.duration import duration_ms
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.formats.rules import Rules
from pipelines.gateway.metrics import Metrics
from pipelines.gateway.ports import Packets, Port, address, sockets
from pipelines.gateway.protocol import NotTakenError
from pipelines.gateway.statsd import Aggregator
from pipelines.gateway.writer import Writer

NAME = "statsd"
_TICK_SECONDS = 0.2
_MOST_PENDING = 16_000_000
"""The most bytes that wait to be aggregated; what comes beyond is dropped, as UDP does."""
_MOST_WAITING = 16_000_000
"""The most bytes of intervals that wait for Kafka; the oldest are dropped first."""
_PACKET_COST = 200
"""Bytes that a packet takes beside its content."""
_LONGEST_LINE = 65_536
_MOST_CONNECTIONS = 256

log = structlog.get_logger()


class StatsdPort(Port):
    """A port of lines of StatsD, which are aggregated.

    Args:
        settings: Address, interval, rules of labels.
        writer: Writes to Kafka.
        metrics: Where it counts.
        clock: Gives the time in epoch seconds.

    Raises:
        NewnormalError: ``PORT_TAKEN``.

    Attributes:
        port: Its number.
    """

    def __init__(
        self, settings: Settings, writer: Writer, metrics: Metrics, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(NAME)
        limits = settings.gateway
        self._settings, self._writer, self._metrics, self._clock = settings, writer, metrics, clock
        self._interval = duration_ms(limits.statsd_interval)
        self._aggregator = Aggregator(Rules.of(settings.input), limits.statsd_series)
        self._pending: list[tuple[str, bytes]] = []
        self._pending_bytes = 0
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._connections = 0
        self._counted: Counter[str] = Counter()
        self._tcp, self._udp = sockets(limits.host, limits.statsd_port, "StatsD", "gateway.statsd_port")
        self.port: int = self._tcp.getsockname()[1]
        self._thread.start()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: Packets(self._take), sock=self._udp)
        server = await asyncio.start_server(self._connected, sock=self._tcp, limit=_LONGEST_LINE)
        end = self._end_after(self._now())
        while not self._stopped.is_set():
            await asyncio.sleep(_TICK_SECONDS)
            await self._aggregate()
            if (now := self._now()) >= end:
                await self._flush(now // self._interval * self._interval)
                end = self._end_after(now)
        transport.close()
        server.close()
        await self._aggregate()
        await self._flush(self._now())

    def _now(self) -> int:
        return int(self._clock() * 1000)

    def _end_after(self, now: int) -> int:
        return (now // self._interval + 1) * self._interval

    def _take(self, sender: str, data: bytes) -> None:
        cost = len(data) + _PACKET_COST
        if self._pending_bytes + cost > _MOST_PENDING:
            self._metrics.refused(NAME, "GATEWAY_BUSY")
            return
        self._pending_bytes += cost
        self._pending.append((sender, data))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections > _MOST_CONNECTIONS:
                self._metrics.refused(NAME, "GATEWAY_BUSY")
                return
            sender = address(writer.get_extra_info("peername"))
            with suppress(ConnectionError, ValueError):  # a line that is too long ends the connection
                while line := await reader.readline():
                    while self._pending_bytes > _MOST_PENDING // 2:  # TCP can wait, and its sender with it
                        await asyncio.sleep(_TICK_SECONDS)
                    self._take(sender, line)
        finally:
            self._connections -= 1
            writer.close()

    async def _aggregate(self) -> None:
        packets, self._pending, self._pending_bytes = self._pending, [], 0
        if packets:
            self._metrics.received(NAME, sum(len(data) for _, data in packets))
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._pool, self._aggregator.add, packets, self._now())
        new = self._aggregator.left_out - self._counted
        for code, count in new.items():
            self._metrics.refused(NAME, code, count)
        if new:
            log.warning("Lines of StatsD are left out", **new, last=self._aggregator.why)
            self._counted = Counter(self._aggregator.left_out)

    async def _flush(self, end: int) -> None:
        """Writes an interval, and those that waited for Kafka before it."""
        loop = asyncio.get_running_loop()
        samples, events = await loop.run_in_executor(self._pool, self._aggregator.flush, end)
        for topic, values in ((topics.RAW_AGENTS, samples), (topics.LOGS_AGENTS, events)):
            self._waiting += [(self._settings.topic(topic), value) for value in values]
        while sum(len(value) for _, value in self._waiting) > _MOST_WAITING:
            self._waiting.popleft()
            self._metrics.refused(NAME, "GATEWAY_KAFKA")
        while self._waiting:
            topic, value = self._waiting[0]
            try:
                await self._writer.write(topic, value)
            except NotTakenError:
                return  # tried again with the next interval
            self._waiting.popleft()
            self._metrics.written(NAME, value.count(b"\n") + 1)
