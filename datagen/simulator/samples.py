"""The values of the metrics of all machines, step by step, from load and from the incidents of single metrics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from datagen.simulator.catalogue import LATENCY, MEMORY, METRICS, Metric, Role
from datagen.simulator.config import SimulatorConfig
from datagen.simulator.incidents import InjectedIncident
from datagen.simulator.noise import Floats, Noise
from datagen.simulator.topology import Topology

_REBOOTS_A_DAY = 0.05


class Samples:
    """Values of consecutive steps; counters and stuck sensors go on from the values of the steps before.

    At the first step each counter has just begun at 0, as after a reboot.
    """

    def __init__(self, config: SimulatorConfig, topology: Topology) -> None:
        self._config, self._topology, self._origin = config, topology, config.origin
        self._noise = Noise(config.seed)
        self._machines = np.arange(topology.size)[:, None]
        self._span = {Role.HOST: slice(0, topology.hosts), Role.VM: slice(topology.hosts, topology.size)}
        self._total = np.zeros((topology.size, config.metrics), np.int64)
        self._base = np.zeros_like(self._total)
        self._stuck: dict[InjectedIncident, float] = {}

    def at(self, steps: NDArray[np.int64], load: Floats, incidents: Sequence[InjectedIncident]) -> Floats:
        """The values.

        Args:
            steps: The steps directly after those of the last call.
            load: Load at these steps, shape (machines, steps).
            incidents: The incidents that started before the end of these steps, by start.

        Returns:
            Shape (machines, steps, metrics); NaN where a sample is missing.
        """
        time = self._origin + steps * self._config.step
        values = np.empty((*load.shape, self._config.metrics))
        factors = self._factors(time, incidents)
        resets = self._resets(steps, time, incidents)
        for role, span in self._span.items():
            for index, metric in enumerate(METRICS[role][: self._config.metrics]):
                values[span, :, index] = self._metric(
                    role, index, metric, steps=steps, load=load[span], factors=factors, resets=resets[span]
                )
        for incident in incidents:
            if incident.type == "stuck":
                self._stick(values, time, incident)
        self._punch(values, steps)
        return values

    def _metric(
        self,
        role: Role,
        index: int,
        metric: Metric,
        *,
        steps: NDArray[np.int64],
        load: Floats,
        factors: dict[tuple[int, int], Floats],
        resets: NDArray[np.bool_],
    ) -> Floats:
        span, machines = self._span[role], self._machines[self._span[role]]
        scale = np.exp(0.2 * self._noise.normal(f"scale {index}", machines))
        value = metric.value(load, self._noise.normal(f"noise {index}", machines, steps), scale)
        for (entity, at), factor in factors.items():
            if at == index and self._topology.role(entity) is role:
                value[entity - span.start] *= factor
        if metric.kind == "ratio":
            value = np.minimum(value, 1.0)
        if metric.kind == "counter":
            return self._counted(value, span, index, resets)
        return np.round(value * (self._config.step / 1000) if metric.integrated else value, metric.digits)

    def _counted(self, rate: Floats, span: slice, index: int, resets: NDArray[np.bool_]) -> Floats:
        """A counter's readings; integers inside, so that the sum does not depend on where it is cut."""
        total = np.cumsum(np.rint(rate * (self._config.step / 1000)).astype(np.int64), axis=1)
        total += self._total[span, index, None]
        before = np.concatenate([self._total[span, index, None], total[:, :-1]], axis=1)
        base = np.where(resets, before, 0)
        base[:, 0] = np.maximum(base[:, 0], self._base[span, index])
        base = np.maximum.accumulate(base, axis=1)
        self._total[span, index], self._base[span, index] = total[:, -1], base[:, -1]
        return (total - base).astype(np.float64)

    def _resets(
        self, steps: NDArray[np.int64], time: NDArray[np.int64], incidents: Sequence[InjectedIncident]
    ) -> NDArray[np.bool_]:
        """Where a machine came up anew: at random, and after an outage or a leak."""
        often = _REBOOTS_A_DAY * self._config.step / 86_400_000
        resets: NDArray[np.bool_] = self._noise.uniform("reset", self._machines, steps) < often
        for incident in incidents:
            at = int(np.searchsorted(time, incident.end))
            if incident.type in ("outage", "leak") and at < len(time) and time[at] - incident.end < self._config.step:
                machines = incident.down(self._topology) if incident.type == "outage" else [incident.entity]
                resets[machines, at] = True
        return resets

    def _factors(self, time: NDArray[np.int64], incidents: Sequence[InjectedIncident]) -> dict[tuple[int, int], Floats]:
        """What single metrics are multiplied by, by machine and metric."""
        factors: dict[tuple[int, int], Floats] = {}

        def of(entity: int, metric: int) -> Floats:
            return factors.setdefault((entity, metric), np.ones(len(time)))

        for incident in incidents:
            first, last = (int(i) for i in np.searchsorted(time, (incident.start, incident.end)))
            role = self._topology.role(incident.entity)
            if incident.type == "release" and first < len(time):
                for index, metric in enumerate(METRICS[role][: self._config.metrics]):
                    if metric.released != 1.0:
                        of(incident.entity, index)[first:] = metric.released**incident.size
            elif incident.type == "latency" and first < last:
                of(incident.entity, LATENCY[role])[first:last] *= incident.size
            elif incident.type == "degradation" and first < last:
                done = (time[first:last] - incident.start) / (incident.end - incident.start)
                of(incident.entity, LATENCY[role])[first:last] *= 1 + (incident.size - 1) * done
            elif incident.type == "fleet_shift" and first < len(time):
                for machine in (incident.entity, *incident.others):
                    of(machine, incident.metric)[first:] *= incident.size
            elif incident.type == "leak" and first < last:
                done = (time[first:last] - incident.start) / (incident.end - incident.start)
                of(incident.entity, MEMORY)[first:last] *= 1 + incident.size * done
        return factors

    def _stick(self, values: Floats, time: NDArray[np.int64], incident: InjectedIncident) -> None:
        first, last = np.searchsorted(time, (incident.start, incident.end))
        if first < last:
            value = self._stuck.setdefault(incident, float(values[incident.entity, first, incident.metric]))
            values[incident.entity, first:last, incident.metric] = value

    def _punch(self, values: Floats, steps: NDArray[np.int64]) -> None:
        """Takes single samples out."""
        share = self._config.missing / 10 * self._config.metrics
        if share:
            luck = self._noise.uniform("gap", self._machines, steps)
            machine, step = np.nonzero(luck < share)
            values[machine, step, (luck[machine, step] / share * self._config.metrics).astype(np.int64)] = np.nan
