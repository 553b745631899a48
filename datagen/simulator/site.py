"""Telemetry and logs of a site as frames of columns, in order of arrival, however large the frames are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
import polars as pl
from numpy.typing import NDArray

from datagen.simulator.arrival import Delivery, Ints
from datagen.simulator.catalogue import METRICS, Role
from datagen.simulator.config import SimulatorConfig
from datagen.simulator.incident_schedule import Schedule
from datagen.simulator.incidents import InjectedIncident
from datagen.simulator.load import Load
from datagen.simulator.loglines import LogLines
from datagen.simulator.noise import Floats
from datagen.simulator.samples import Samples

TELEMETRY_ROWS = 250_000
"""Rows of a frame, about, if nothing else is asked for."""


class Site:
    """A site in motion: each `advance` yields what arrives during the next steps. Goes forward only."""

    def __init__(self, config: SimulatorConfig) -> None:
        self.config, self.topology, self._origin = config, config.topology, config.origin
        self.schedule = Schedule(config, self.topology)
        self._next = (config.start or 0) // config.step
        self._load, self._samples = Load(config, self.topology), Samples(config, self.topology)
        self._network, self._lines = Delivery(config), LogLines(config, self.topology)
        self._telemetry, self._logs = _Held(), _Held()
        self._names = _enum(self.topology.names)
        every = list(dict.fromkeys(m.name for role in Role for m in METRICS[role]))
        kinds = list(dict.fromkeys(m.kind for role in Role for m in METRICS[role]))
        used = [METRICS[role][: config.metrics] for role in Role]
        self._metric, self._kind = _enum(every), _enum(kinds)
        self._metric_codes = np.array([[every.index(m.name) for m in metrics] for metrics in used], dtype=np.uint32)
        self._kind_codes = np.array([[kinds.index(m.kind) for m in metrics] for metrics in used], dtype=np.uint32)

    @property
    def time(self) -> int:
        """Epoch ms up to which all was yielded."""
        return self._origin + self._next * self.config.step

    def advance(self, steps: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """What arrives during the next ``steps``: telemetry and logs; 0 steps: all that is still under way."""
        if not steps:
            return self._frame(self._telemetry.until(None)), self._lines.frame(self._logs.until(None), self._names)
        at = np.arange(self._next, self._next + steps)
        self._next += steps
        incidents = self.schedule.until(self.time)
        load = self._load.at(at, incidents)
        up = self._up(at, incidents)
        sent = self._network.carry(at, "metrics")
        values = self._samples.at(at, load, incidents)
        entity, step = np.nonzero(up & sent.arrives)
        self._telemetry.put(sent.arrival[entity, step], entity, sent.time[entity, step], values[entity, step])
        sent = self._network.carry(at, "logs", phased=False)
        entity, step, what = self._lines.at(at, load, up & sent.arrives, incidents)
        offset = what[:, 0].astype(np.int64)
        self._logs.put(sent.arrival[entity, step] + offset, entity, sent.time[entity, step] + offset, what)
        now = self.time
        return self._frame(self._telemetry.until(now)), self._lines.frame(self._logs.until(now), self._names)

    def _up(self, steps: Ints, incidents: list[InjectedIncident]) -> NDArray[np.bool_]:
        time = self._origin + steps * self.config.step
        up = np.ones((self.topology.size, len(steps)), dtype=bool)
        up[self.topology.hosts + self.topology.vms :] = False
        for incident in incidents:
            first, last = np.searchsorted(time, (incident.start, incident.end))
            if incident.type == "vms_added":
                up[list(incident.others), first:] = True
            elif incident.type == "outage" and first < last:
                up[incident.down(self.topology), first:last] = False
        return up

    def _frame(self, arrived: tuple[Ints, Ints, Ints, Floats]) -> pl.DataFrame:
        arrival, entity, time, values = arrived
        metrics = self.config.metrics
        role = (entity >= self.topology.hosts).astype(np.intp)
        return pl.DataFrame(
            {
                "time": np.repeat(time, metrics),
                "entity": self._names.gather(np.repeat(entity, metrics)),
                "metric": self._metric.gather(self._metric_codes[role].ravel()),
                "value": values.ravel(),
                "kind": self._kind.gather(self._kind_codes[role].ravel()),
                "arrival": np.repeat(arrival, metrics),
            }
        ).filter(pl.col("value").is_not_nan())


class _Held:
    """What is under way, handed out in order of (arrival, machine, time)."""

    def __init__(self) -> None:
        self._held: list[tuple[Ints, Ints, Ints, Floats]] = []

    def put(self, arrival: Ints, entity: Ints, time: Ints, values: Floats) -> None:
        self._held.append((arrival, entity, time, values))

    def until(self, time: int | None) -> tuple[Ints, Ints, Ints, Floats]:
        arrival, entity, when, values = (np.concatenate(part) for part in zip(*self._held, strict=True))
        order = np.lexsort((entity, arrival))
        last = len(order) if time is None else int(np.searchsorted(arrival[order], time))
        out, rest = order[:last], np.sort(order[last:])  # the rest stays in order of generation: ties go by it
        self._held = [(arrival[rest], entity[rest], when[rest], values[rest])]
        return arrival[out], entity[out], when[out], values[out]


def _enum(names: Sequence[str]) -> pl.Series:
    return pl.Series(names, dtype=pl.Enum(names))


def frames(config: SimulatorConfig, chunk: int | None = None) -> Iterator[pl.DataFrame]:
    """The telemetry of a site, in order of arrival; without an end if the config has none.

    Args:
        config: With a start: see `resolve`.
        chunk: Steps a frame; the rows, joined, are the same whatever it is.

    Yields:
        Columns ``time``, ``entity``, ``metric``, ``value``, ``kind`` (of `Telemetry`) and ``arrival``.
    """
    return (telemetry for telemetry, _ in _chunks(config, chunk))


def logs(config: SimulatorConfig, chunk: int | None = None) -> Iterator[pl.DataFrame]:
    """The log lines of a site, likewise: ``time``, ``entity``, ``program``, ``severity``, ``message``, ``arrival``."""
    return (lines for _, lines in _chunks(config, chunk))


def usual_chunk(config: SimulatorConfig) -> int:
    """Steps for a frame of a convenient size."""
    return max(1, TELEMETRY_ROWS // (config.size * config.metrics))


def _chunks(config: SimulatorConfig, chunk: int | None) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    site, size = Site(config), chunk or usual_chunk(config)
    total = config.steps
    for first in count(0, size) if total is None else range(0, total, size):
        yield site.advance(size if total is None else min(size, total - first))
    yield site.advance(0)
