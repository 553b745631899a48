"""The latent load of every machine: seasonality, noise and incidents; a host's load follows from that of its VMs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from datagen.simulator.catalogue import Role
from datagen.simulator.config import SimulatorConfig
from datagen.simulator.incidents import InjectedIncident
from datagen.simulator.noise import Floats, Noise
from datagen.simulator.topology import Topology

_DAY = 86_400_000
_IDLE = 0.05
_SLOW, _FAST = 1_800_000, 60_000


class Load:
    """The load of all machines at any steps; usual values are around 0.35, and 1 is a high load."""

    def __init__(self, config: SimulatorConfig, topology: Topology) -> None:
        self._topology, self._origin, self._step = topology, config.origin, config.step
        self._noise = Noise(config.seed)
        self._slow, self._fast = (max(2, period // config.step) for period in (_SLOW, _FAST))
        vms = np.arange(topology.hosts, topology.size)[:, None]
        uniform, normal = self._noise.uniform, self._noise.normal
        self._own = vms if config.alike else None
        vms = np.full_like(vms, topology.hosts) if config.alike else vms  # the same random numbers for all
        self._numbers = vms
        self._base = 0.3 * np.exp(0.25 * normal("base", vms))
        self._amplitude = 0.15 + 0.3 * uniform("amplitude", vms)
        self._weekend = 0.1 + 0.3 * uniform("weekend", vms)
        self._phase = 2 * np.pi * (-0.33 + 0.05 * normal("phase", vms))
        self._phase2 = 2 * np.pi * uniform("phase2", vms)
        placed = np.flatnonzero(topology.home >= 0)
        share = 0.9 / topology.nominal[topology.home[placed]]
        shape = (topology.hosts, topology.vms + topology.spare)
        self._placed = csr_matrix((share, (topology.home[placed], placed)), shape=shape)

    def at(self, steps: NDArray[np.int64], incidents: Sequence[InjectedIncident]) -> Floats:
        """Load at consecutive steps, shape (machines, steps); 0 for machines that do not exist or are down."""
        time = self._origin + steps * self._step
        hosts = self._topology.hosts
        vms = self._vms(steps, time)
        spare = vms[self._topology.vms :].copy()
        vms[self._topology.vms :] = 0
        level: dict[int, float] = {}
        for incident in incidents:
            self._on_vm(vms, spare, level, time, incident)
        host: Floats = np.asarray(self._placed @ vms)
        for incident in incidents:
            self._on_host(host, vms, time, incident)
        host += _IDLE
        host *= np.exp(0.015 * self._noise.smooth("host", np.arange(hosts)[:, None], steps, self._fast))
        for incident in incidents:
            if self._topology.role(incident.entity) is Role.HOST:
                span = slice(*np.searchsorted(time, (incident.start, incident.end)))
                if incident.type == "spike":
                    host[incident.entity, span] *= incident.size
                elif incident.type == "outage":
                    host[incident.entity, span] = 0
        return np.concatenate([host, vms])

    def _vms(self, steps: NDArray[np.int64], time: NDArray[np.int64]) -> Floats:
        """Load of the VMs without incidents."""
        angle = 2 * np.pi * (time % _DAY) / _DAY
        daily = np.sin(angle) * np.cos(self._phase) + np.cos(angle) * np.sin(self._phase)
        daily += 0.25 * (np.sin(2 * angle) * np.cos(self._phase2) + np.cos(2 * angle) * np.sin(self._phase2))
        day = (time / _DAY + 3) % 7  # 0: Monday, 0:00
        weekend = 1 / (1 + np.exp((5 - day) * 12)) - 1 / (1 + np.exp((7 - day) * 12)) + 1 / (1 + np.exp(day * 12))
        rough = 0.05 * self._noise.smooth("slow", self._numbers, steps, self._slow)
        rough += 0.06 * self._noise.smooth("fast", self._numbers, steps, self._fast)
        out: Floats = self._base * (1 + self._amplitude * daily) * (1 - self._weekend * weekend) * np.exp(rough)
        if self._own is not None:
            out = out * np.exp(0.04 * self._noise.smooth("own", self._own, steps, self._fast))
        return out

    def _on_vm(
        self, vms: Floats, spare: Floats, level: dict[int, float], time: NDArray[np.int64], incident: InjectedIncident
    ) -> None:
        hosts = self._topology.hosts
        first, last = np.searchsorted(time, (incident.start, incident.end))
        if incident.type == "vms_added" and first < len(time):
            added = np.array(incident.others) - hosts
            vms[added, first:] = spare[added - self._topology.vms, first:]
        elif incident.type == "outage":
            for machine in incident.down(self._topology):
                if machine >= hosts:
                    vms[machine - hosts, first:last] = 0
        elif incident.type == "spike" and incident.entity >= hosts:
            vms[incident.entity - hosts, first:last] *= incident.size
        elif incident.type == "load_shift":
            vms[incident.entity - hosts, first:] *= incident.size / level.get(incident.entity, 1.0)
            level[incident.entity] = incident.size

    def _on_host(self, host: Floats, vms: Floats, time: NDArray[np.int64], incident: InjectedIncident) -> None:
        first = int(np.searchsorted(time, incident.start))
        if first == len(time) or incident.type not in ("migration", "vms_added"):
            return
        nominal = self._topology.nominal
        if incident.type == "migration":
            source, target = incident.on(self._topology), incident.others[0]
            moved = vms[incident.entity - self._topology.hosts, first:] * 0.9
            host[source, first:] = np.maximum(host[source, first:] - moved / nominal[source], 0)
            host[target, first:] += moved / nominal[target]
        else:
            for added in incident.others:
                moved = vms[added - self._topology.hosts, first:]
                host[incident.entity, first:] += moved * 0.9 / nominal[incident.entity]
