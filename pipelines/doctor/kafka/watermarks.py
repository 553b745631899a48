"""Checks that no partition of the agents' topics holds the watermark back, and that no machine's clock runs ahead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.spec.decoder import ROW, Decoder, Messages
from engine.spec.duration import duration_ms, iso
from pipelines.contracts.quantities.words import duration
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.doctor.tails import Arrived
from pipelines.jobs.chain import JOBS
from pipelines.jobs.sources import bounds

_kind = subject("Kafka")
_HELD = _kind(
    "WATERMARK_HELD_BACK",
    Severity.AT_RISK,
    "event time in one partition of the agents' topics is far behind that in the others, and all windows wait for it; "
    "topic, partition and the distance are named",
    "mend the clock or the delay of the machine that is named; a partition without heartbeats gets them when "
    "`newnormal run` runs the normalizers",
)
_AHEAD = _kind(
    "CLOCK_AHEAD",
    Severity.AT_RISK,
    "a machine's event times lie after their arrival: its clock runs ahead, and others in its partition come too late",
    "mend that machine's clock (NTP); a smaller `watermark.max_ahead` refuses such records",
)  # fmt: skip
_NORMALIZERS = ("normalizer", "log_normalizer")
_FAR_MS = 60_000


@dataclass(frozen=True)
class _Clock:
    """What the last messages of a partition say about time; instants in epoch milliseconds.

    Attributes:
        topic: Full name of the topic.
        partition: The partition.
        heard: When its last message arrived; ``None`` without messages.
        record: When its last record arrived; ``None`` without records.
        newest: Greatest event time; ``None`` without records.
        machine: The machine with that event time.
        ahead: How far an event time lies after its arrival at most, milliseconds.
        leading: The machine whose event time lies so far ahead.
    """

    topic: str
    partition: int
    heard: int | None
    record: int | None = None
    newest: int | None = None
    machine: str = ""
    ahead: int = 0
    leading: str = ""

    @property
    def place(self) -> str:
        return f"{self.topic}/{self.partition}"

    def waits(self, idle_after: int) -> bool:
        """True if the watermark waits for the partition: it is not known to be idle."""
        return self.heard is None or (self.record is not None and self.heard - self.record < idle_after)


def watermarks(context: Context) -> list[Finding]:
    """Finds partitions that hold the watermark back, and machines whose clock is ahead."""
    settings = context.settings
    findings: list[Finding] = []
    for name in _NORMALIZERS:
        formats = JOBS[name](settings).inputs[0].formats
        clocks = list(_clocks(context, formats))
        findings += _held(clocks, duration_ms(settings.watermark.idle_after))
        for clock in clocks:
            if clock.ahead > duration_ms(settings.watermark.out_of_orderness):
                what = f"event times of {clock.leading} lie up to {duration(clock.ahead)} after their arrival"
                findings.append(Finding(_AHEAD, what, clock.place))
    return findings


def _held(clocks: Sequence[_Clock], idle_after: int) -> Iterator[Finding]:
    newest = max((clock.newest for clock in clocks if clock.newest is not None), default=None)
    if newest is None:
        return
    if silent := [clock.place for clock in clocks if clock.heard is None]:
        what = f"{len(silent)} partitions have no message, not even a heartbeat, and the watermark waits for them"
        yield Finding(_HELD, what, ", ".join(silent))
    for clock in clocks:
        if clock.newest is not None and clock.waits(idle_after) and newest - clock.newest > _FAR_MS:
            behind = f"{duration(newest - clock.newest)} behind that of the other partitions"
            what = f"its greatest event time is {iso(clock.newest)[:19]}Z ({clock.machine}), {behind}"
            yield Finding(_HELD, what, clock.place)


def _clocks(context: Context, formats: dict[str, Decoder]) -> Iterator[_Clock]:
    for (topic, partition), tail in context.tails.items():
        if topic in formats:
            yield _clock(context, formats[topic], topic, partition, tail)


def _clock(context: Context, decoder: Decoder, topic: str, partition: int, tail: Sequence[Arrived]) -> _Clock:
    records = [message for message in tail if not message.beats]
    heard = max((message.time for message in tail), default=None)
    if not records:
        return _Clock(topic, partition, heard)
    arrived = np.array([message.time for message in records], np.int64)
    offsets = np.array([message.offset for message in records], np.int64)
    values = pa.array([message.value for message in records], pa.binary())
    decoded = decoder.decode(Messages(topic, partition, values, offsets, arrived)).records
    came = arrived[decoded.column(ROW).to_numpy()]
    times, limits = decoded.column("time").to_numpy(), bounds(context.settings)
    taken = ~(limits.ahead(times, came) | limits.early(times))
    if not taken.any():
        return _Clock(topic, partition, heard, int(arrived.max()))
    times, came = times[taken], came[taken]
    machines = pc.cast(decoded.column("entity"), pa.string()).filter(pa.array(taken)).to_pylist()
    newest, leading = int(times.argmax()), int((times - came).argmax())
    return _Clock(
        topic=topic,
        partition=partition,
        heard=heard,
        record=int(arrived.max()),
        newest=int(times[newest]),
        machine=machines[newest],
        ahead=int(times[leading] - came[leading]),
        leading=machines[leading],
    )
