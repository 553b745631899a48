"""The incidents of the demo, with its topology: each names the machine where it began, and says what happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import polars as pl
import pytest

from datagen.simulator.config import SimulatorConfig, demo
from pipelines.contracts.records import Incident
from pipelines.contracts.settings import load
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.incidents.grouping import Site, incidents
from pipelines.jobs.incidents.job import rules
from tests.benchmarks import kinds
from tests.benchmarks.measures.news import NEWS, episodes_of, news_of
from tests.pipelines.incidents.cases import MINUTE, T0, placed


def _site(seed: int) -> SimulatorConfig:
    return replace(demo(T0, seed), duration=4 * MINUTE)


def _news(config: SimulatorConfig, threshold: float) -> pl.DataFrame:
    detection, made = Detection(load(**{"detector.threshold": threshold}).detector), []
    state = detection.new_state()
    for done, frame in kinds.frames(config):
        verdicts, state = detection.process(frame, state, now=(config.start or 0) + done * config.step)
        made.append(verdicts.filter(NEWS))
    return news_of(pl.concat(made), "default")


def _written(config: SimulatorConfig, threshold: float = 50.0) -> list[Incident]:
    known = episodes_of(_news(config, threshold))
    moves = [move for incident in config.incidents for move in incident.moves(config.topology)]
    topology = config.topology
    parents = {topology.names[vm]: topology.names[host] for host in range(config.hosts) for vm in topology.vms_of(host)}
    site = Site("default", placed(parents, moves), {}, {})
    found = incidents(known, site, rules(load().incidents), T0 + 4 * MINUTE)
    return [each.incident for each in found if each.notable]


def _told(config: SimulatorConfig, written: list[Incident]) -> Iterator[tuple[str, bool]]:
    """For each injected event that an incident tells of, whether it names the event's machine first."""
    for event in config.incidents:
        name = config.topology.names[event.entity]
        own = [i for i in written if abs(i.start - event.start) <= MINUTE and name in i.message]
        yield from ((event.type, i.candidates[0].entity == name or i.message.startswith(name)) for i in own)


@pytest.mark.parametrize("seed", [1, 7])
def test_the_demo_names_the_cause_of_its_surges_outages_release_latency_and_move_first(seed: int) -> None:
    """A log storm is no part of this, as metrics do not show it; seed 7 was not used to choose the rules."""
    config = _site(seed)
    written = _written(config)
    told = list(_told(config, written))
    assert len(told) >= 6
    assert sum(right for _, right in told) >= 5 / 6 * len(told)
    silent = [i for i in written if "sent nothing" in i.message]
    assert {i.candidates[0].entity for i in silent} == {"vm-00008", "vm-00015"}
    assert {i.severity for i in silent} <= {"major", "critical"}
    assert {i.series[0].kind for i in silent} == {"absence"}


def test_a_lower_threshold_of_the_detector_makes_more_incidents_and_none_of_the_whole_site() -> None:
    """At 30 there were five times as many novelties, and one incident of all 24 machines."""
    config = _site(1)
    many, few = _written(config, 30.0), _written(config)
    assert len(many) >= len(few)
    assert max(i.machine_count for i in many) <= 6
