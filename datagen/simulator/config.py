"""The config of a simulation: which site, from when, how long and how fast. It has only values and reads no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle

from datagen.simulator.incidents import InjectedIncident
from datagen.simulator.topology import Topology
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError

AHEAD_MS = 60_000
"""How far an event time may lie after its arrival before the pipeline refuses it, milliseconds."""

DEMO_HISTORY_MS = 2_700_000
"""The history that a `demo` begins with, milliseconds."""

DEMO_LIVE_VMS = ((3, 15), (11, 5), (6, 9), (13, 2), (0, 12))
"""Of each run of the demo, in turn, the VM with the surge and the VM with the outage: on two hosts, and not in the
history's incidents."""


@dataclass(frozen=True)
class SimulatorConfig:
    """A site, and what happens there. The same config gives the same bytes.

    Args:
        seed: Seed of all random numbers.
        hosts: Physical machines.
        vms: Virtual machines, spread evenly over the hosts.
        spare: Further VMs that exist only once a `vms_added` incident brings them up.
        metrics: Metrics a machine, 6 to 10.
        start: Event time of the first step, epoch ms; ``None``: see `resolve`.
        step: Milliseconds between two samples of a metric.
        backfill: Milliseconds of history that are sent as fast as possible.
        duration: Milliseconds of the live part; ``None``: until stopped.
        speed: Event time a wall-clock time in the live part; 0: as fast as possible.
        incident_rate: Random incidents per machine and day.
        quiet: Milliseconds from the start without random incidents.
        settle: Milliseconds for which a change of state counts as news.
        incidents: Incidents that happen in addition to the random ones.
        missing: Share of scrapes that are lost; of single samples, a tenth of that share.
        delayed: Share of scrapes that arrive some seconds late, out of order.
        late: Share of scrapes that arrive up to ``late_by`` milliseconds late.
        late_by: See ``late``.
        skewed: Share of machines whose clock is wrong, by up to ``skew`` milliseconds.
        skew: See ``skewed``.
        log_rate: Log lines per machine and step, on average.
        alike: Whether all VMs are replicas behind a balancer, with loads that are nearly the same.
    """

    seed: int = 1
    hosts: int = 20
    vms: int = 80
    spare: int = 4
    metrics: int = 8
    start: int | None = None
    step: int = 10_000
    backfill: int = 0
    duration: int | None = None
    speed: float = 1.0
    incident_rate: float = 0.5
    quiet: int = 900_000
    settle: int = 600_000
    incidents: tuple[InjectedIncident, ...] = ()
    missing: float = 0.001
    delayed: float = 0.02
    late: float = 0.001
    late_by: int = 120_000
    skewed: float = 0.05
    skew: int = 3_000
    log_rate: float = 0.2
    alike: bool = False

    def __post_init__(self) -> None:
        shares = {name: getattr(self, name) for name in ("missing", "delayed", "late", "skewed")}
        wrong = {
            "hosts": (self.hosts < 1, self.hosts, "at least 1"),
            "vms": (self.vms < 0 or self.spare < 0, (self.vms, self.spare), "at least 0"),
            "metrics": (not 6 <= self.metrics <= 10, self.metrics, "6 to 10"),
            "step": (not 100 <= self.step <= 86_400_000, self.step, "100ms to 1d"),
            "speed": (self.speed < 0, self.speed, "0 (as fast as possible) or more"),
            "backfill": (self.backfill < 0, self.backfill, "at least 0"),
            "duration": (self.duration is not None and self.duration < 0, self.duration, "at least 0, or none"),
            "incident_rate": (self.incident_rate < 0, self.incident_rate, "at least 0"),
            "log_rate": (not 0 <= self.log_rate <= 100, self.log_rate, "0 to 100 lines per machine and step"),
            "skew": (not 0 <= self.skew < AHEAD_MS, self.skew, "less than a minute"),
            **{name: (not 0 <= share <= 1, share, "0 to 1") for name, share in shares.items()},
        }
        for name, (bad, value, accepted) in wrong.items():
            if bad:
                raise NewnormalError("SIMULATOR_INVALID", f"{name} = {value!r}", f"simulator {name}", accepted)
        for incident in self.incidents:
            if reason := self._misplaced(incident):
                raise NewnormalError("SIMULATOR_INVALID", f"{incident}: {reason}", "simulator incidents")

    def _misplaced(self, incident: InjectedIncident) -> str:
        on_vm = incident.entity >= self.hosts
        if not all(0 <= machine < self.size for machine in (incident.entity, *incident.others)):
            return "there is no such machine"
        if incident.type in ("migration", "load_shift") and not on_vm:
            return "this happens to VMs only"
        if incident.type == "vms_added" and (on_vm or min(incident.others, default=0) < self.hosts + self.vms):
            return "adds spare VMs to a host"
        if incident.type == "migration" and not (incident.others and incident.others[0] < self.hosts):
            return "moves a VM to a host"
        if incident.type in ("stuck", "fleet_shift") and not 0 <= incident.metric < self.metrics:
            return "there is no such metric"
        return "" if incident.end > incident.start else "ends before it starts"

    @property
    def size(self) -> int:
        """Machines, spare ones included."""
        return self.hosts + self.vms + self.spare

    @property
    def origin(self) -> int:
        """Event time of step 0, epoch ms: steps are counted from 1970, so that all runs call one instant alike.

        Raises:
            ValueError: If the config has no start: see `resolve`.
        """
        if self.start is None:
            raise ValueError("a config without a start: resolve() it first")
        return self.start % self.step

    @property
    def steps(self) -> int | None:
        """Steps in all; ``None``: no end."""
        return None if self.duration is None else -(-(self.backfill + self.duration) // self.step)

    @property
    def topology(self) -> Topology:
        """The machines."""
        return Topology(self.hosts, self.vms, self.spare)


def resolve(config: SimulatorConfig, now: int) -> SimulatorConfig:
    """The config with a fixed start, such that event time never runs ahead of the wall clock.

    Up to real time, the backfill ends now. A faster run ends with the event time at which it is done.

    Raises:
        NewnormalError: ``START_AHEAD`` if the start that was given cannot be kept; ``SIMULATOR_INVALID`` for a run
            faster than real time without an end.
    """
    fast = config.speed == 0 or config.speed > 1
    if fast and config.duration is None:
        accepted = "a duration, or speed 1 at the most"
        raise NewnormalError("SIMULATOR_INVALID", f"speed {config.speed:g} without an end", "simulator speed", accepted)
    live = config.duration or 0
    wall = live if not fast else int(live / config.speed) if config.speed else 0
    latest = now - config.backfill - (live - wall if fast else 0)
    if config.start is None:
        return replace(config, start=latest // config.step * config.step)
    if config.start > latest + AHEAD_MS:
        accepted = f"{iso(latest)} or earlier"
        why = f"from {iso(config.start)} on, event time would run ahead of the clock and be refused downstream"
        raise NewnormalError("START_AHEAD", why, "simulator start", accepted, "nothing was sent")
    return config


def demo(now: int, seed: int = 1, earlier: Sequence[int] = ()) -> SimulatorConfig:
    """Eight hosts, sixteen VMs, seven metrics each: 45 minutes of history, then live.

    The last third of the history has one incident of each clear kind. A surge of load follows 20 s into the live part,
    an outage 40 s into it. A run that goes on from earlier ones is the same simulation, with the time between the runs
    as further history: all that happened before stays as it was, and another surge and another outage follow, of other
    machines.

    Args:
        now: Start of the live part, epoch ms; best the moment at which `simulate` is called.
        seed: Seed of all random numbers.
        earlier: The same of the runs that this one goes on from, ascending.
    """
    step, minute, settle = 10_000, 60_000, 600_000
    runs = [at // step * step for at in (*earlier, now)]
    start = runs[0] - DEMO_HISTORY_MS
    vm = 8  # index of the first VM; two on each host
    history = (
        InjectedIncident("spike", vm + 1, start + 31 * minute, start + 33 * minute, size=3.5),
        InjectedIncident("release", vm + 4, start + 33 * minute, start + 33 * minute + settle, size=1.0),
        InjectedIncident("latency", vm + 7, start + 35 * minute, start + 39 * minute, size=5.0),
        InjectedIncident("outage", vm + 8, start + 37 * minute, start + 39 * minute),
        InjectedIncident("migration", vm + 10, start + 38 * minute, start + 38 * minute + settle, others=(6,)),
        InjectedIncident("log_storm", vm + 14, start + 40 * minute, start + 42 * minute, size=40.0),
    )
    live = [
        incident
        for at, (surge, outage) in zip(runs, cycle(DEMO_LIVE_VMS), strict=False)
        for incident in (
            InjectedIncident("spike", vm + surge, at + 20_000, at + 110_000, size=4.0),
            InjectedIncident("outage", vm + outage, at + 40_000, at + 130_000),
        )
    ]
    return SimulatorConfig(
        seed=seed,
        hosts=8,
        vms=16,
        spare=0,
        metrics=7,
        start=start,
        step=step,
        backfill=runs[-1] - start,
        incident_rate=0.0,
        incidents=(*history, *live),
        settle=settle,
        log_rate=0.5,
    )
