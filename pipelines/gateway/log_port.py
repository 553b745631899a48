"""The ports of log lines: they take messages over UDP and TCP, also with TLS, and write the lines that these become.

A message without a machine is of the machine at its sender's address. The lines are written as our JSON, so that the
pipeline need not know who sent them.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa
import structlog

from datagen.jsonlines import to_json
from engine.spec.decoder import Decoder, Messages
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Log
from pipelines.contracts.settings import Settings
from pipelines.contracts.settings.gateway import GatewaySettings
from pipelines.formats.catalogue import BY_NAME
from pipelines.formats.rules import Rules
from pipelines.gateway.framing import Frames, FramingError, GelfFrames, GelfPackets, SyslogFrames
from pipelines.gateway.limits import Rate
from pipelines.gateway.metrics import Metrics
from pipelines.gateway.ports import Packets, Port, address, sockets
from pipelines.gateway.protocol import NotTakenError
from pipelines.gateway.writer import Writer

_TICK_SECONDS = 0.2
_MOST_PENDING = 16_000_000
"""The most bytes that wait to be read, and for Kafka. Beyond it TCP waits, and packets of UDP are dropped."""
_COST = 200
"""Bytes that a message takes beside its content."""
_MESSAGE = 500_000
_CHUNK = 65_536
_MOST_CONNECTIONS = 256
_IDLE_SECONDS = 3_600.0
_MOST_SENDERS = 1_000
"""For so many senders' addresses a decoder is kept."""

FRAMING = "GATEWAY_FRAMING"

log = structlog.get_logger()


@dataclass(frozen=True)
class Kind:
    """What comes over a port.

    Args:
        name: The format of the messages, and the name in the metrics.
        frames: Divides the bytes of a connection.
        chunked: Whether packets may be compressed, or chunks of messages, as those of GELF.
    """

    name: str
    frames: Callable[[], Frames]
    chunked: bool = False


SYSLOG, GELF = Kind("syslog", SyslogFrames), Kind("gelf", GelfFrames, chunked=True)


@dataclass(eq=False)
class _Connection:
    """A connection, and when something came last, seconds."""

    writer: asyncio.StreamWriter
    since: float


class LogPort(Port):
    """A port of log messages.

    Args:
        kind: What comes.
        settings: Rules of labels, the namespace, the rate of a sender.
        writer: Writes to Kafka.
        metrics: Where it counts.
        tcp: A socket for connections.
        udp: A socket for packets, if there is one.
        tls: Encrypts the connections, if they are.
    """

    def __init__(
        self, kind: Kind, settings: Settings, writer: Writer, metrics: Metrics, tcp: socket.socket,
        udp: socket.socket | None = None, tls: ssl.SSLContext | None = None,
    ) -> None:  # fmt: skip
        super().__init__(kind.name)
        self._kind, self._writer, self._metrics = kind, writer, metrics
        self._tcp, self._udp, self._tls = tcp, udp, tls
        self._topic = settings.topic(topics.LOGS_AGENTS)
        self._decoding = _Decoding(kind.name, Rules.of(settings.input, topics.LOGS_AGENTS))
        self._rate = Rate(settings.gateway.rate)
        self._packets = GelfPackets()
        self._pending: list[tuple[str, bytes]] = []
        self._pending_bytes = self._waiting_bytes = 0
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._connections: set[_Connection] = set()
        self._refused: Counter[str] = Counter()
        self._why = ""
        self.port: int = tcp.getsockname()[1]
        self._thread.start()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        packets = None
        if self._udp:
            packets, _ = await loop.create_datagram_endpoint(lambda: Packets(self._take_packet), sock=self._udp)
        server = await asyncio.start_server(self._connected, sock=self._tcp, ssl=self._tls, limit=_CHUNK)
        while not self._stopped.is_set():
            await asyncio.sleep(_TICK_SECONDS)
            await self._turn()
        if packets:
            packets.close()
        server.close()
        for each in list(self._connections):
            each.writer.close()
        await asyncio.sleep(_TICK_SECONDS)  # those that read hand over what they have
        await self._turn()

    async def _turn(self) -> None:
        """Reads what has come, writes what it became, and reports what cannot be used."""
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        if pending:
            self._metrics.received(self._kind.name, sum(len(data) for _, data in pending))
            messages, refused, why = await self._decoded(pending)
            self._waiting += messages
            self._waiting_bytes = sum(len(value) for value, _ in self._waiting)
            self._refused.update(refused)
            self._why = why or self._why
        while self._waiting:
            value, lines = self._waiting[0]
            try:
                await self._writer.write(self._topic, value)
            except NotTakenError:
                break  # tried again with the next turn
            self._waiting.popleft()
            self._waiting_bytes -= len(value)
            self._metrics.written(self._kind.name, lines)
        refused, self._refused = self._refused, Counter()
        for code, count in refused.items():
            self._metrics.refused(self._kind.name, code, count)
        if refused:
            log.warning(f"Messages of {self._kind.name} cannot be used", **refused, last=self._why)

    async def _decoded(self, pending: list[tuple[str, bytes]]) -> tuple[list[tuple[bytes, int]], Counter[str], str]:
        """What messages become, see `_Decoding.read`; a fault of our own loses these messages, and not the port."""
        run = asyncio.get_running_loop().run_in_executor
        try:
            return await run(self._pool, self._decoding.read, pending, int(time.time() * 1000))
        except Exception as error:
            log.exception(f"The gateway failed at messages of {self._kind.name}")
            return [], Counter({"GATEWAY_FAILED": len(pending)}), f"the gateway failed: {type(error).__name__}"

    @property
    def _is_full(self) -> bool:
        return self._pending_bytes + self._waiting_bytes > _MOST_PENDING

    def _take(self, sender: str, message: bytes) -> None:
        self._pending_bytes += len(message) + _COST
        self._pending.append((sender, message))

    def _refuse(self, code: str, why: str) -> None:
        self._refused[code] += 1
        self._why = why

    def _take_packet(self, sender: str, packet: bytes) -> None:
        if self._is_full:
            self._refuse("GATEWAY_BUSY", "more comes than is read, or Kafka does not take it")
            return
        if self._rate.wait(sender):
            self._refuse("GATEWAY_RATE", f"{sender} sends more than gateway.rate")
            return
        self._rate.charge(sender, len(packet))
        try:
            message = self._packets.message(sender, packet, time.monotonic()) if self._kind.chunked else packet
        except FramingError as error:
            self._refuse(FRAMING, f"{sender}: {error}")
            return
        if message:
            self._take(sender, message)
        if self._packets.given_up:
            self._refused[FRAMING] += self._packets.given_up
            self._why, self._packets.given_up = "chunks of a message of GELF have not come", 0

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mine = _Connection(writer, time.monotonic())
        self._connections.add(mine)
        if len(self._connections) > _MOST_CONNECTIONS:
            oldest = min(self._connections, key=lambda each: each.since)
            self._refuse("GATEWAY_BUSY", f"more than {_MOST_CONNECTIONS} connections; the longest idle one is closed")
            self._connections.discard(oldest)
            oldest.writer.transport.abort()
        frames, sender = self._kind.frames(), address(writer.get_extra_info("peername"))
        try:
            with suppress(ConnectionError, TimeoutError, ssl.SSLError):
                await self._read(reader, frames, sender, mine)
        except FramingError as error:
            self._refuse(FRAMING, f"{sender}: {error}")
        else:
            for message in frames.rest():
                self._take(sender, message)
        finally:
            self._connections.discard(mine)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, frames: Frames, sender: str, mine: _Connection) -> None:
        while data := await asyncio.wait_for(reader.read(_CHUNK), _IDLE_SECONDS):
            mine.since = time.monotonic()
            self._rate.charge(sender, len(data))
            for message in frames.add(data):
                self._take(sender, message)
            while self._is_full and not self._stopped.is_set():  # TCP can wait, and its sender with it
                await asyncio.sleep(_TICK_SECONDS)
            if wait := self._rate.wait(sender):
                await asyncio.sleep(wait)


class _Decoding:
    """Makes lines of messages, by a decoder for each sender.

    Args:
        name: The format.
        rules: How fields are read.
    """

    def __init__(self, name: str, rules: Rules) -> None:
        self._form, self._rules = BY_NAME[name], rules
        self._decoders: OrderedDict[str, Decoder] = OrderedDict()

    def read(
        self, received: Sequence[tuple[str, bytes]], now: int
    ) -> tuple[list[tuple[bytes, int]], Counter[str], str]:
        """The messages for Kafka, each with the number of its lines; what is refused by code; and the last reason.

        Args:
            received: Senders and messages.
            now: Epoch milliseconds.
        """
        by_sender: dict[str, list[bytes]] = {}
        for sender, message in received:
            by_sender.setdefault(sender, []).append(message)
        tables, refused, why = [], Counter[str](), ""
        for sender, values in by_sender.items():
            decoded = self._decoder(sender).decode(Messages.of(values, now))
            tables.append(decoded.records)
            for _, code, reason in decoded.refused:
                refused[code] += 1
                why = f"{sender}: {reason}"
        lines = pl.from_arrow(pa.concat_tables(tables).unify_dictionaries())
        assert isinstance(lines, pl.DataFrame)
        return list(_messages(to_json(lines, Log).to_list())), refused, why

    def _decoder(self, sender: str) -> Decoder:
        if sender not in self._decoders:
            while len(self._decoders) >= _MOST_SENDERS:
                self._decoders.popitem(last=False)
            machine = self._rules.machine or sender
            labels = replace(self._rules.labels, default=machine)
            self._decoders[sender] = self._form.build(replace(self._rules, machine=machine, labels=labels))
        return self._decoders[sender]


def _messages(lines: Sequence[str]) -> Iterator[tuple[bytes, int]]:
    """Lists of lines in JSON, of a bounded size, and how many lines each holds."""
    begin = size = 0
    for at, line in enumerate(lines, 1):
        size += len(line) + 1
        if size > _MESSAGE or at == len(lines):
            yield f"[{','.join(lines[begin:at])}]".encode(), at - begin
            begin, size = at, 0


def opened(settings: Settings, writer: Writer, metrics: Metrics) -> list[LogPort]:
    """The open ports.

    Args:
        settings: Their numbers, and files for TLS.
        writer: Writes to Kafka.
        metrics: Where they count.

    Raises:
        NewnormalError: ``PORT_TAKEN``, ``GATEWAY_TLS``.
    """
    limits, ports = settings.gateway, list[LogPort]()
    try:
        for kind, port in ((SYSLOG, limits.syslog_port), (GELF, limits.gelf_port)):
            if port:
                tcp, udp = sockets(limits.host, port, kind.name, f"gateway.{kind.name}_port")
                ports.append(LogPort(kind, settings, writer, metrics, tcp, udp))
        if limits.syslog_tls_port:
            tls = _tls(limits)
            tcp, udp = sockets(limits.host, limits.syslog_tls_port, "syslog over TLS", "gateway.syslog_tls_port")
            udp.close()
            ports.append(LogPort(SYSLOG, settings, writer, metrics, tcp, tls=tls))
    except NewnormalError:
        for each in ports:
            each.close()
        raise
    return ports


def _tls(limits: GatewaySettings) -> ssl.SSLContext:
    """What encrypts connections: TLS 1.2 or newer; clients need a certificate if the settings name an authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    files = f"{limits.tls_certificate or 'no certificate'}, {limits.tls_key or 'no key'}"
    with suppress(OSError):
        context.load_cert_chain(limits.tls_certificate, limits.tls_key or None)
        if limits.tls_clients:
            files = limits.tls_clients
            context.load_verify_locations(limits.tls_clients)
            context.verify_mode = ssl.CERT_REQUIRED
        return context
    names = "gateway.tls_certificate, gateway.tls_key, gateway.tls_clients"
    accepted = "files (PEM) with the gateway's certificate and its key, and with the authority of its clients"
    raise NewnormalError("GATEWAY_TLS", f"cannot be used: {files}", names, accepted, "nothing was started")
