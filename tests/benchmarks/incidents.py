"""Incidents: the simulator's site through the detection and the grouping, against its ground truth of injected events.

The site is that of `tests.benchmarks.kinds`, with outages of hosts that take their VMs down. Its windows of five
minutes are read as windows of ten seconds, so that three weeks are seventeen hours of the default settings.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import polars as pl

from datagen.groundtruth import GroundTruth
from datagen.simulator.config import SimulatorConfig
from datagen.simulator.incidents import InjectedIncident
from pipelines.contracts.settings import load
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.incidents.episode import Episode
from pipelines.jobs.incidents.grouping import GroupedIncident, Site, incidents
from pipelines.jobs.incidents.job import rules
from tests.benchmarks import kinds
from tests.benchmarks.measures.news import NEWS, episodes_of, news_of
from tests.pipelines.incidents.cases import placed

FASTER = 30
"""How much shorter the windows are read than they are."""

GRACE = 60_000
"""Novelties that begin so long after an event, in milliseconds of short windows, are still its own."""


def run(entities: int = 25, weeks: int = 3, seed: int = 1) -> dict[str, Any]:
    """The figures of the grouping with and without topology, and how many verdicts a second it takes."""
    config, truths = _site(entities, weeks, seed)
    rows = _news(config)
    known, now = episodes_of(rows), int(rows["window_end"].to_numpy().max()) + kinds.DAY
    topology = config.topology
    parents = {topology.names[vm]: topology.names[host] for host in range(config.hosts) for vm in topology.vms_of(host)}
    settings = rules(load().incidents)
    figures: dict[str, Any] = {"machines": config.size, "news": rows.height, "episodes": len(known)}
    for name, places in (("with topology", parents), ("without topology", {})):
        began = time.perf_counter()
        made = [
            each for each in incidents(known, Site("default", placed(places), {}, {}), settings, now) if each.notable
        ]
        took = time.perf_counter() - began
        figures[name] = _figures(made, truths, parents) | {"episodes grouped a second": round(len(known) / took)}
    return figures


def _site(entities: int, weeks: int, seed: int) -> tuple[SimulatorConfig, list[GroundTruth]]:
    hosts = max(2, entities // 5)
    quiet = {"incident_rate": 0.0, "skewed": 0.0, "late": 0.0, "delayed": 0.0}
    shape = {
        "seed": seed,
        "hosts": hosts,
        "vms": entities - hosts,
        "spare": 0,
        "start": kinds.START,
        "step": kinds.STEP,
    }
    base = SimulatorConfig(**shape, duration=weeks * 7 * kinds.DAY, **quiet)
    planned = list(kinds._turns(kinds._plan(base, np.random.default_rng(seed))))
    span = ((weeks - 1) * 7 - 2) * kinds.DAY // hosts
    for host in range(hosts):
        at = (kinds.START + kinds.QUIET + kinds.DAY + host * span) // kinds.STEP * kinds.STEP
        vms = tuple(int(vm) for vm in base.topology.vms_of(host))
        near = [i for i in planned if i.entity in vms and at - kinds.DAY < i.start < at + kinds.DAY]
        planned = [i for i in planned if i not in near]  # the ground truth of a host that is down is the host
        planned.append(InjectedIncident("outage", host, at, at + 24 * kinds.STEP, 1.0, 0, vms))
    config = SimulatorConfig(**{**vars(base), "incidents": tuple(sorted(planned, key=lambda i: (i.start, i.entity)))})
    return config, [row for i in config.incidents for row in i.rows(config.topology, config.metrics)]


def _news(config: SimulatorConfig) -> pl.DataFrame:
    """The news of the detection, with the times of short windows."""
    detection, made = Detection(load().detector), []
    state = detection.new_state()
    for done, frame in kinds.frames(config):
        verdicts, state = detection.process(frame, state, now=kinds.START + done * kinds.STEP)
        made.append(verdicts.filter(NEWS))
    times = [_short(pl.col(name)).alias(name) for name in ("window_start", "window_end", "since")]
    return news_of(pl.concat(made).with_columns(*times), "default")


def _short(at: pl.Expr) -> pl.Expr:
    return kinds.START + (at - kinds.START) // FASTER


def _figures(made: list[GroupedIncident], truths: list[GroundTruth], parents: dict[str, str]) -> dict[str, Any]:
    held = [_events(found.episodes, truths, parents) for found in made]
    events = {event for some in held for event in some}
    hosts = [found for found, some in zip(made, held, strict=True) if any(e.startswith("outage-host") for e in some)]
    first = [f.incident.candidates[0].entity.startswith("host") for f in hosts]
    known = [some for some in held if some]
    causes = {truth.incident: truth.entity for truth in truths if truth.id == truth.incident}
    named = [
        found.incident.candidates[0].entity in {causes[event] for event in some}
        for found, some in zip(made, held, strict=True)
        if some
    ]
    return {
        "events": len({truth.incident for truth in truths}),
        "events found": len(events),
        "incidents": len(made),
        "incidents that hold exactly one event": _share([len(some) == 1 for some in held]),
        "incidents that hold none": _share([not some for some in held]),
        "incidents that hold several": _share([len(some) > 1 for some in held]),
        "incidents an event": round(sum(len(some) for some in held) / max(1, len(events)), 3),
        "incidents that name their cause first": _share(named),
        "of one VM: incidents that name it first": _share(
            [n for n, some in zip(named, known, strict=True) if _of_vm(some)]
        ),
        "outages of hosts that name a host first": _share(first),
    }


def _events(some: tuple[Episode, ...], truths: list[GroundTruth], parents: dict[str, str]) -> set[str]:
    """The injected events during which episodes began.

    What a VM does is seen on its host, which cannot tell the events of two VMs apart: an episode of a host is one of a
    VM's event only if the incident has no event of a VM by the VM's own episodes.
    """
    hosts = set(parents.values())
    own = {(t.incident, t.entity) for t in truths if t.entity not in hosts or t.incident.startswith("outage-host")}
    seen = {(name, parents[entity]) for name, entity in own if entity in parents} - own
    spans: dict[str, tuple[int, int]] = {}
    for truth in truths:
        start, end = (kinds.START + (at - kinds.START) // FASTER for at in (truth.start, truth.end))
        spans[truth.incident] = start - GRACE, end + GRACE

    def during(places: set[tuple[str, str]]) -> set[str]:
        began = [(name, *spans[name], entity) for name, entity in places]
        return {n for n, a, b, entity in began for e in some if e.entity == entity and a <= e.since <= b}

    return during(own) or during(seen)


def _of_vm(events: set[str]) -> bool:
    return all("-vm-" in event for event in events)


def _share(flags: list[bool]) -> float:
    return round(sum(flags) / len(flags), 3) if flags else 0.0
