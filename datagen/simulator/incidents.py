"""The incidents of a site, and the machines and metrics that each affects."""

from __future__ import annotations

from dataclasses import dataclass

from datagen.groundtruth import STATE_CHANGES, GroundTruth, IncidentType
from datagen.simulator.catalogue import LATENCY, MEMORY, METRICS, Role
from datagen.simulator.topology import Topology
from pipelines.contracts.records import Placement

VISIBLE = 0.15
"""Relative change of a host's load from which on an incident of its VM also counts as one of the host."""


@dataclass(frozen=True)
class InjectedIncident:
    """One incident; machines are indices into the topology.

    Args:
        type: The type of incident.
        entity: Index of the affected machine (migration: the VM; vms_added: the host).
        start: Event time in epoch ms.
        end: Event time in epoch ms; of a state change: until when it is news (it lasts).
        size: Factor on the load (spike, load_shift), the latency (latency; degradation: at its end, of 1 at its
            start) or a metric (fleet_shift); growth of the memory (leak); lines a step
            (log_storm); strength (release: 1 the usual, 0 rolled back); not used otherwise.
        metric: Index of the metric that is stuck (stuck) or changes (fleet_shift).
        others: Indices: the host moved to (migration), the VMs added (vms_added), the VMs that go down with their host
            (outage; empty: those that were there at the start), the other machines of its role (fleet_shift).
        host: The host a VM is on at that time; -1: the one it was on at the start.
    """

    type: IncidentType
    entity: int
    start: int
    end: int
    size: float = 1.0
    metric: int = 0
    others: tuple[int, ...] = ()
    host: int = -1

    @property
    def lasts(self) -> bool:
        """Whether it is a change of state."""
        return self.type in STATE_CHANGES

    def on(self, topology: Topology) -> int:
        """The host that this VM is on."""
        return self.host if self.host >= 0 else int(topology.home[self.entity - topology.hosts])

    def down(self, topology: Topology) -> list[int]:
        """Indices of the machines that an outage silences."""
        if topology.role(self.entity) is Role.VM:
            return [self.entity]
        return [self.entity, *(self.others or topology.vms_of(self.entity).tolist())]

    def rows(self, topology: Topology, count: int) -> list[GroundTruth]:
        """The ground truth, given that each machine has ``count`` metrics."""
        name = f"{self.type}-{topology.names[self.entity]}-{self.start}"
        return [
            GroundTruth(
                id=f"{name}-{topology.names[entity]}" if entity != self.entity else name,
                incident=name,
                type=self.type,
                cls="state_change" if self.lasts else "anomaly",
                entity=topology.names[entity],
                metrics=metrics,
                start=self.start,
                end=self.end,
            )
            for entity, metrics in self._touched(topology, count).items()
        ]

    def moves(self, topology: Topology) -> list[Placement]:
        """The VMs that run on another host from its start on."""
        if self.type == "migration":
            return [topology.placement(self.entity, self.others[0], self.start, self.on(topology))]
        if self.type == "vms_added":
            return [topology.placement(vm, self.entity, self.start) for vm in self.others]
        return []

    def _touched(self, topology: Topology, count: int) -> dict[int, list[str]]:
        role = topology.role(self.entity)
        metrics = METRICS[role][:count]
        single = {
            "log_storm": ["logs"],
            "new_message": ["logs"],
            "stuck": [metrics[self.metric].name],
            "latency": [metrics[LATENCY[role]].name],
            "degradation": [metrics[LATENCY[role]].name],
            "leak": [metrics[MEMORY].name],
            "release": [metric.name for metric in metrics if metric.released != 1.0],
        }
        if self.type in single:
            return {self.entity: single[self.type]}
        if self.type == "fleet_shift":
            return {machine: [metrics[self.metric].name] for machine in (self.entity, *self.others)}
        loaded = {kind: [m.name for m in METRICS[kind][:count] if m.follows_load] for kind in Role}
        if self.type == "migration":
            return {self.on(topology): loaded[Role.HOST], self.others[0]: loaded[Role.HOST]}
        if self.type == "vms_added":
            return {self.entity: loaded[Role.HOST]}
        if self.type == "outage":
            touched = {e: [m.name for m in METRICS[topology.role(e)][:count]] for e in self.down(topology)}
        else:
            touched = {self.entity: loaded[role]}
        if role is Role.VM:
            host, change = self.on(topology), 1.0 if self.type == "outage" else abs(self.size - 1)
            if change / topology.nominal[host] >= VISIBLE:
                touched[host] = loaded[Role.HOST]
        return touched
