"""The metrics of a host and of a VM: each a function of the machine's load, its own noise, and its own scale.

The first six of each cover gauge, counter, count or rate, latency and ratio; the config says how many are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from datagen.simulator.noise import Floats
from pipelines.contracts.records.telemetry import MetricKind


class Role(IntEnum):
    """The kind of a machine."""

    HOST = 0
    VM = 1


@dataclass(frozen=True)
class Metric:
    """One metric.

    Args:
        name: Name in the record.
        kind: Kind in the record; for a counter, ``value`` gives the increase per second.
        value: Function of load (n, t), standard normal noise (n, t) and scale (n, 1), around 1.
        digits: Number of decimals.
        released: Factor that a release multiplies it by.
        follows_load: Whether it shows a change of load.
        integrated: Whether the value is per second and is multiplied by the step (counts).
    """

    name: str
    kind: MetricKind
    value: Callable[[Floats, Floats, Floats], Floats]
    digits: int = 3
    released: float = 1.0
    follows_load: bool = True
    integrated: bool = False


def _util(load: Floats, z: Floats, scale: Floats) -> Floats:
    return np.clip(1 - np.exp(-1.1 * scale * load) + 0.005 * z, 0.001, 0.999)


def _noisy(base: float, offset: float, spread: float) -> Callable[[Floats, Floats, Floats], Floats]:
    """Linear in the load, with noise in proportion."""

    def value(load: Floats, z: Floats, scale: Floats) -> Floats:
        return np.maximum(base * scale * (offset + load) * (1 + spread * z), 0.0)

    return value


def _events(base: float) -> Callable[[Floats, Floats, Floats], Floats]:
    """A count a second, with Poisson noise over ten seconds."""

    def value(load: Floats, z: Floats, scale: Floats) -> Floats:
        mean = base * scale * load
        return np.maximum(mean + np.sqrt(mean / 10) * z, 0.0)

    return value


def _time(base: float, steepness: float, spread: float) -> Callable[[Floats, Floats, Floats], Floats]:
    """A latency: grows with the square of the load, log-normal noise."""

    def value(load: Floats, z: Floats, scale: Floats) -> Floats:
        return base * scale * (1 + steepness * load * load) * np.exp(spread * z)

    return value


def _errors(load: Floats, z: Floats, scale: Floats) -> Floats:
    return np.clip(0.004 * scale * np.exp(0.25 * z) * (1 + 0.3 * load), 0.0, 1.0)


def _memory(base: float) -> Callable[[Floats, Floats, Floats], Floats]:
    def value(load: Floats, z: Floats, scale: Floats) -> Floats:
        return base * scale * (0.55 + 0.15 * load + 0.003 * z)

    return value


def _full(load: Floats, z: Floats, scale: Floats) -> Floats:
    return np.clip(0.45 * scale + 0.0005 * z, 0.0, 0.99)


_GB = 2.0**30
METRICS: dict[Role, tuple[Metric, ...]] = {
    Role.VM: (
        Metric("cpu.util", "ratio", _util, 5, released=1.35),
        Metric("http.requests", "count", _events(400.0), 0, integrated=True),
        Metric("http.latency", "latency", _time(18.0, 1.2, 0.07), released=1.8),
        Metric("mem.used", "gauge", _memory(8 * _GB), 0, released=1.3, follows_load=False),
        Metric("net.bytes_sent{interface=eth0}", "counter", _noisy(2.5e6, 0.02, 0.04), 0),
        Metric("http.error_ratio", "ratio", _errors, 6, released=2.5, follows_load=False),
        Metric("disk.write_rate{device=vda}", "rate", _noisy(3.0e6, 0.1, 0.06), 0, released=1.4),
        Metric("process.threads", "gauge", _noisy(180.0, 0.4, 0.01), 0),
        Metric("net.bytes_received{interface=eth0}", "counter", _noisy(9.0e5, 0.02, 0.04), 0),
        Metric("disk.used_ratio{path=/}", "ratio", _full, 5, follows_load=False),
    ),
    Role.HOST: (
        Metric("cpu.util", "ratio", _util, 5, released=1.35),
        Metric("load.1m", "gauge", _noisy(40.0, 0.02, 0.03)),
        Metric("disk.await{device=sda}", "latency", _time(2.4, 1.5, 0.08), released=1.8),
        Metric("mem.used", "gauge", _memory(192 * _GB), 0, released=1.3, follows_load=False),
        Metric("net.bytes_sent{interface=eth0}", "counter", _noisy(1.2e7, 0.02, 0.03), 0),
        Metric("disk.io_rate{device=sda}", "rate", _noisy(900.0, 0.1, 0.05), 1, released=1.4),
        Metric("sensor.temperature{sensor=cpu}", "gauge", _noisy(35.0, 1.1, 0.005), 2),
        Metric("kernel.context_switches", "count", _events(9000.0), 0, integrated=True),
        Metric("net.bytes_received{interface=eth0}", "counter", _noisy(1.1e7, 0.02, 0.03), 0),
        Metric("disk.used_ratio{path=/}", "ratio", _full, 5, follows_load=False),
    ),
}
MEMORY = 3
"""Index of ``mem.used`` in both."""
LATENCY = {Role.VM: 2, Role.HOST: 2}
"""Index of the latency in both."""
