"""The decoders of two plain formats with a value or value list a line: Graphite, and collectd's ``PUTVAL`` commands."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from engine.spec.decoder import Decoded, Decoder, Messages
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.message_decoder import metric_name
from pipelines.formats.refusals import LINE_INVALID, Refusals
from pipelines.formats.remembering import remembered
from pipelines.formats.samples import LONGEST, Coded, divisible, table
from pipelines.formats.text_lines import lines

LineSample = tuple[str, str, float | None, float]
"""(machine, metric, epoch seconds or nothing for the arrival, value)"""

_PUTVAL = re.compile(
    r'PUTVAL\s+(?:"([^"]+)"|([^"\s]+))((?:\s++[a-z_]++=\S++)*+)((?:\s++(?:N|[0-9.]++)(?::[^\s:]++)++)++)', re.I
)
"""Possessive, as the repetitions of a group are otherwise all remembered, at 200 bytes each."""
_NAMES = {
    "load": ("shortterm", "midterm", "longterm"), "disk_io_time": ("io_time", "weighted_io_time"),
    **dict.fromkeys(("if_octets", "if_packets", "if_errors", "if_dropped"), ("rx", "tx")),
    **dict.fromkeys(("disk_octets", "disk_ops", "disk_time", "disk_merged"), ("read", "write")),
}  # fmt: skip
_SECONDS = 10**11
_NO_VALUE = ("U", "nan")
_GROUPS = frozenset(("servers", "hosts", "collectd", "icinga2", "netdata"))
"""First parts of paths behind which the machine stands."""
_STATSD = frozenset(("stats", "stats_counts", "statsd"))
"""First parts of the paths of StatsD, which name no machine."""


class PlainLineDecoder(Decoder):
    """Decodes lines one by one; a message with a broken line is refused as a whole."""

    @abstractmethod
    def samples(self, line: str) -> Iterator[LineSample]:
        """The samples of a line.

        Raises:
            ValueError: If the line is broken.
        """

    def decode(self, messages: Messages) -> Decoded:
        refusals = Refusals()
        rows: list[int] = []
        samples: list[LineSample] = []
        for row, number, line in lines(messages.values, refusals).select("row", "number", "line").iter_rows():
            try:
                mine = list(self.samples(line))
            except ValueError as error:
                refusals.add(row, LINE_INVALID, f"line {number}: {error}")
                continue
            samples += mine
            rows += [row] * len(mine)
        places = np.array(rows, np.int32)
        arrived = messages.arrived[places].tolist()
        times = [_time(sample[2], at) for sample, at in zip(samples, arrived, strict=True)]
        entities: dict[str, int] = {}
        metrics: dict[str, int] = {}
        entity = np.array([entities.setdefault(sample[0], len(entities)) for sample in samples], np.int64)
        metric = np.array([metrics.setdefault(sample[1], len(metrics)) for sample in samples], np.int64)
        values = np.array([sample[3] for sample in samples], np.float64)
        kind = Coded(np.zeros(len(samples), np.int64), ("gauge",))
        named = Coded(entity, list(entities)), Coded(metric, list(metrics))
        return table(places, np.array(times, np.int64), *named, values, kind, refusals)

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        split = lines(pa.array([value]), Refusals())["line"].to_list()
        counts = [[samples for samples in self.samples(line) if not math.isnan(samples[3])] for line in split]
        if any(len(samples) > 1 for samples in counts) or not divisible(self, value, sum(map(len, counts))):
            return None
        kept = [line for line, samples in zip(split, counts, strict=True) if samples]
        return "\n".join(kept[at] for at in sorted(records)).encode()


@dataclass(frozen=True)
class GraphiteDecoder(PlainLineDecoder):
    """Decodes lines such as ``web-1.cpu.idle 97.5 1795220820`` or ``cpu.idle;host=web-1 97.5 1795220820``.

    Times are in seconds; -1 is the arrival. A tag names the machine; without tags the first part of the path does,
    or the second one behind ``servers``, ``collectd`` and the like. ``nan`` is no value.

    Args:
        labels: Which tags name the machine and the series.

    >>> list(GraphiteDecoder().samples("web-1.cpu.idle 97.5 1795220820"))
    [('web-1', 'cpu.idle', 1795220820.0, 97.5)]
    """

    labels: LabelRule = LABELS

    def __post_init__(self) -> None:
        if "server" not in self.labels.machine:  # as in the documentation of Graphite's tags
            object.__setattr__(self, "labels", replace(self.labels, machine=(*self.labels.machine, "server")))

    def samples(self, line: str) -> Iterator[LineSample]:
        parts = line.split()
        if len(parts) != 3:
            raise ValueError("accepted: machine.metric value seconds")
        time = _number(parts[2])
        value = math.nan if parts[1].lower() == "nan" else _number(parts[1])
        yield *_path(self.labels, parts[0]), None if time == -1 else time, value


@dataclass(frozen=True)
class PutvalDecoder(PlainLineDecoder):
    """Decodes lines such as ``PUTVAL "a/cpu-0/cpu-idle" interval=10.000 1795220820.013:97.5``.

    The metrics have the same names as from collectd's JSON. The commands do not say what is a counter: with StoreRates
    collectd writes rates, so that all are gauges. ``U``, and ``nan`` as write_http writes it, are no value; ``N`` is
    the arrival.

    >>> list(PutvalDecoder().samples('PUTVAL "a/cpu-0/cpu-idle" interval=10 1795220820:97.5'))
    [('a', 'cpu.cpu.idle{instance=0}', 1795220820.0, 97.5)]
    """

    def samples(self, line: str) -> Iterator[LineSample]:
        command = _PUTVAL.fullmatch(line)
        if command is None:
            raise ValueError("accepted: PUTVAL host/plugin-instance/type-instance interval=10 seconds:value:value")
        for value_list in command[4].split():
            stamp, *values = value_list.split(":")
            time = None if stamp in ("N", "n") else _number(stamp)
            machine, metrics = _identifier(command[1] or command[2], len(values))
            for metric, value in zip(metrics, values, strict=True):
                yield machine, metric, time, math.nan if value in _NO_VALUE else _number(value)


def _number(text: str) -> float:
    number = float(text)
    if "_" in text or not math.isfinite(number):
        raise ValueError(f"{text[:40]!r} is no finite number")
    return number


def _time(seconds: float | None, arrived: int) -> int:
    if seconds is None:
        return int(arrived)
    return round(seconds * 1000) if abs(seconds) < _SECONDS else min(max(round(seconds), -(2**53)), 2**53)


@remembered(1 << 17, lambda rule, path: len(path))
def _path(rule: LabelRule, path: str) -> tuple[str, str]:
    """The machine and the metric of a path of Graphite."""
    name, *tags = path.split(";")
    pairs = [tag.split("=", 1) for tag in tags]
    if not all(len(pair) == 2 and all(pair) for pair in pairs):
        raise ValueError("a tag has no name or no value")
    machine, inside = rule.apply((key, value) for key, value in pairs)
    if not machine and not tags:
        machine, _, name = name.partition(".")
        if machine in _GROUPS and "." in name:
            machine, _, name = name.partition(".")
        elif machine in _STATSD:
            machine = rule.default
    return machine, f"{name}{inside}" if name else ""


@remembered(1 << 17, lambda text, values: len(text))
def _identifier(text: str, values: int) -> tuple[str, tuple[str, ...]]:
    """The machine and the metrics of an identifier of collectd with so many values."""
    parts = text.split("/")
    if len(parts) != 3 or not all(parts) or max(map(len, parts)) > LONGEST:
        raise ValueError(f"accepted: an identifier host/plugin-instance/type-instance, each up to {LONGEST} characters")
    host, (plugin, _, instance), (kind, _, inner) = parts[0], parts[1].partition("-"), parts[2].partition("-")
    known = _NAMES.get(kind, ())
    ends = ("",) if values == 1 else known if len(known) == values else tuple(map(str, range(values)))
    pairs = {"instance": instance} if instance else {}
    return host, tuple(metric_name(".".join(filter(None, (plugin, kind, inner, end))), pairs) for end in ends)
