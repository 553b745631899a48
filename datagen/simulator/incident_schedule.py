"""The schedule of incidents: those of the config, and random ones, which are drawn hour by hour as needed."""

from __future__ import annotations

import numpy as np

from datagen.groundtruth import IncidentType
from datagen.simulator.catalogue import METRICS
from datagen.simulator.config import SimulatorConfig
from datagen.simulator.incidents import InjectedIncident
from datagen.simulator.noise import key
from datagen.simulator.topology import Topology

_HOUR = 3_600_000
_REST = 300_000
# what, how often, seconds of it, size; on hosts, on VMs
_KINDS: tuple[tuple[IncidentType, float, tuple[int, int], tuple[float, float], bool, bool], ...] = (
    ("spike", 4, (60, 300), (2.5, 5.0), True, True),
    ("outage", 2, (60, 600), (1.0, 1.0), True, True),
    ("leak", 2, (900, 3600), (0.5, 1.2), True, True),
    ("stuck", 2, (600, 1800), (1.0, 1.0), True, True),
    ("latency", 3, (120, 900), (2.5, 8.0), True, True),
    ("log_storm", 2, (60, 300), (20.0, 60.0), True, True),
    ("new_message", 2, (120, 600), (1.0, 1.0), True, True),
    ("vms_added", 1, (0, 0), (1.0, 1.0), True, False),
    ("release", 3, (0, 0), (1.0, 1.0), False, True),
    ("migration", 2, (0, 0), (1.0, 1.0), False, True),
    ("load_shift", 2, (0, 0), (1.6, 2.2), False, True),
)


class Schedule:
    """The incidents of a config, drawn as far as `until` needs; the steps in which it is called do not matter.

    A machine and its neighbours have at most one incident at a time, so that the ground truth is unambiguous.
    """

    def __init__(self, config: SimulatorConfig, topology: Topology) -> None:
        assert config.start is not None
        self._config, self._topology, self._start = config, topology, config.start
        self._hour = 0
        self._busy: dict[int, int] = {}
        self._home = topology.home.copy()
        self._changed: set[tuple[str, int]] = set()
        self._incidents = sorted(config.incidents, key=_order)
        for incident in self._incidents:
            self._note(incident)

    def until(self, time: int) -> list[InjectedIncident]:
        """All incidents that start before ``time``, in order."""
        while self._config.incident_rate and self._start + self._hour * _HOUR < time:
            self._incidents += self._draw(self._hour)
            self._incidents.sort(key=_order)
            self._hour += 1
        return [incident for incident in self._incidents if incident.start < time]

    def _draw(self, hour: int) -> list[InjectedIncident]:
        config = self._config
        random = np.random.Generator(np.random.Philox(key=key(config.seed, "schedule", hour)))
        machines = config.hosts + config.vms
        number = random.poisson(config.incident_rate * machines / 24)
        begin = self._start + hour * _HOUR
        starts = np.sort(begin + random.integers(0, _HOUR // config.step + 1, number) * config.step)
        weights = np.array([kind[1] for kind in _KINDS])
        kinds = random.choice(len(_KINDS), number, p=weights / weights.sum())
        drawn = []
        for start, kind in zip(starts.tolist(), kinds.tolist(), strict=True):
            incident = self._one(random, start, kind)
            if incident and start >= self._start + config.quiet and start < begin + _HOUR and self._free(incident):
                self._note(incident)
                drawn.append(incident)
        return drawn

    def _one(self, random: np.random.Generator, start: int, kind: int) -> InjectedIncident | None:
        config, hosts = self._config, self._config.hosts
        name, _, seconds, sizes, on_hosts, on_vms = _KINDS[kind]
        low, high = (0 if on_hosts else hosts), (hosts + config.vms if on_vms else hosts)
        if low >= high:
            return None
        entity = int(random.integers(low, high))
        lasting = int(random.integers(seconds[0], seconds[1] + 1)) * 1_000 if seconds[1] else config.settle
        size = float(random.uniform(*sizes))
        host = int(self._home[entity - hosts]) if entity >= hosts else -1
        metric, others = 0, tuple[int, ...]()
        if name in ("release", "load_shift") and (name, entity) in self._changed:
            size = 0.0 if name == "release" else 1.0  # back to the old regime
        elif name == "load_shift" and random.random() < 0.4:
            size = 1 / size
        elif name == "stuck":
            kinds = METRICS[self._topology.role(entity)][: config.metrics]
            metric = int(random.choice([i for i, m in enumerate(kinds) if m.kind not in ("counter", "count")]))
        elif name == "outage" and entity < hosts:
            others = tuple(int(vm) + hosts for vm in np.flatnonzero(self._home == entity))
        elif name == "migration":
            others = (int(random.integers(0, hosts)),)
        elif name == "vms_added":
            others = tuple(int(vm) + hosts for vm in np.flatnonzero(self._home < 0)[:1])
        if (name == "migration" and others[0] == host) or (name == "vms_added" and not others):
            return None
        return InjectedIncident(name, entity, start, start + lasting, size, metric, others, host)

    def _free(self, incident: InjectedIncident) -> bool:
        return all(incident.start >= self._busy.get(machine, 0) for machine in self._near(incident))

    def _note(self, incident: InjectedIncident) -> None:
        self._busy |= dict.fromkeys(self._near(incident), incident.end + _REST)
        if incident.type in ("release", "load_shift"):
            self._changed ^= {(incident.type, incident.entity)}
        elif incident.type == "migration":
            self._home[incident.entity - self._config.hosts] = incident.others[0]
        elif incident.type == "vms_added":
            self._home[np.array(incident.others) - self._config.hosts] = incident.entity

    def _near(self, incident: InjectedIncident) -> set[int]:
        machines = {incident.entity, *incident.others}
        return machines | {int(self._home[e - self._config.hosts]) for e in machines if e >= self._config.hosts}


def _order(incident: InjectedIncident) -> tuple[int, int]:
    return incident.start, incident.entity
