"""Injected incidents show in the data, where and when the ground truth says."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import polars as pl
import pytest

from datagen.groundtruth import ANOMALIES, STATE_CHANGES, GroundTruth
from datagen.simulator import InjectedIncident, SimulatorConfig, demo, frames, logs, simulate
from datagen.simulator.incident_schedule import Schedule
from datagen.simulator.simulation import Summary
from tests.datagen.in_memory import CollectSink, VirtualClock

NOW = 1_800_000_000_000
BEGIN, END = NOW + 1_800_000, NOW + 2_400_000
VM = 2  # the first of four VMs on two hosts; vm-00004 is the spare one


def _site(*incidents: InjectedIncident) -> SimulatorConfig:
    return SimulatorConfig(
        hosts=2, vms=4, spare=1, start=NOW, duration=3_600_000, incident_rate=0.0, incidents=incidents, skewed=0.0
    )


@cache
def _rows(incident: InjectedIncident) -> pl.DataFrame:
    """All samples of a site with one incident."""
    return pl.concat(frames(_site(incident)))


def _ratio(entity: str, metric: str, incident: InjectedIncident) -> float:
    """Mean during the incident over the mean before it."""
    rows = _rows(incident).filter(entity=entity, metric=metric)
    during = rows.filter(pl.col("time").is_between(incident.start, incident.end, closed="left"))["value"].mean()
    before = rows.filter(pl.col("time").is_between(incident.start - 600_000, incident.start, closed="left"))
    return float(during) / float(before["value"].mean())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("incident", "entity", "metric", "low", "high"),
    [
        (InjectedIncident("spike", VM, BEGIN, END, 4.0), "vm-00000", "http.requests", 3.5, 4.5),
        (InjectedIncident("spike", VM, BEGIN, END, 4.0), "host-000", "cpu.util", 1.4, 4.0),
        (InjectedIncident("latency", VM, BEGIN, END, 5.0), "vm-00000", "http.latency", 4.0, 6.0),
        (InjectedIncident("leak", VM, BEGIN, END, 1.0), "vm-00000", "mem.used", 1.4, 1.6),
        (InjectedIncident("release", VM, BEGIN, END), "vm-00000", "http.latency", 1.6, 2.0),
        (InjectedIncident("load_shift", VM, BEGIN, END, 2.0), "vm-00000", "http.requests", 1.8, 2.2),
        (InjectedIncident("migration", VM, BEGIN, END, others=(1,)), "host-000", "load.1m", 0.3, 0.8),
        (InjectedIncident("migration", VM, BEGIN, END, others=(1,)), "host-001", "load.1m", 1.2, 2.0),
        (InjectedIncident("vms_added", 0, BEGIN, END, others=(6,)), "host-000", "load.1m", 1.2, 2.0),
    ],
)
def test_an_incident_moves_the_metrics_it_names(
    incident: InjectedIncident, entity: str, metric: str, low: float, high: float
) -> None:
    rows = incident.rows(_site(incident).topology, 8)
    assert any(row.entity == entity and metric in row.metrics for row in rows)
    assert low < _ratio(entity, metric, incident) < high


def test_a_change_of_state_lasts_and_an_anomaly_ends() -> None:
    def after(incident: InjectedIncident) -> float:
        rows = _rows(incident).filter(entity="vm-00000", metric="http.requests")
        late = rows.filter(pl.col("time") > END + 300_000)["value"].mean()
        return float(late) / float(rows.filter(pl.col("time") < BEGIN)["value"].mean())  # type: ignore[arg-type]

    assert after(InjectedIncident("load_shift", VM, BEGIN, END, 2.0)) > 1.7
    assert after(InjectedIncident("spike", VM, BEGIN, END, 4.0)) < 1.3


def test_an_outage_is_silence_and_its_counters_restart() -> None:
    rows = _rows(InjectedIncident("outage", VM, BEGIN, END)).filter(entity="vm-00000")
    assert rows.filter(pl.col("time").is_between(BEGIN, END, closed="left")).is_empty()
    counter = rows.filter(kind="counter").sort("time")
    for (_,), series in counter.group_by("metric"):
        before, after = series.filter(pl.col("time") < BEGIN)["value"], series.filter(pl.col("time") >= END)["value"]
        assert before.is_sorted() and after.is_sorted()
        assert after[0] < before[-1] / 100


def test_an_outage_of_a_host_silences_its_vms() -> None:
    incident = InjectedIncident("outage", 0, BEGIN, END)
    rows = _rows(incident).filter(pl.col("time").is_between(BEGIN, END, closed="left"))
    assert set(rows["entity"].unique()) == {"host-001", "vm-00002", "vm-00003"}
    assert {row.entity for row in incident.rows(_site().topology, 8)} == {"host-000", "vm-00000", "vm-00001"}


def test_a_stuck_sensor_repeats_one_value() -> None:
    rows = pl.concat(frames(_site(InjectedIncident("stuck", VM, BEGIN, END)), 17)).filter(
        entity="vm-00000", metric="cpu.util"
    )
    assert rows.filter(pl.col("time").is_between(BEGIN, END, closed="left"))["value"].n_unique() == 1
    assert rows.filter(pl.col("time") < BEGIN)["value"].n_unique() > 100


def test_an_added_vm_is_not_there_before() -> None:
    rows = _rows(InjectedIncident("vms_added", 0, BEGIN, END, others=(6,))).filter(entity="vm-00004")
    assert BEGIN <= rows["time"].min() < BEGIN + 10_000  # type: ignore[operator]


def test_a_log_storm_and_a_new_message_are_in_the_log() -> None:
    storm = InjectedIncident("log_storm", VM, BEGIN, END, 40.0)
    lines = pl.concat(logs(_site(storm, InjectedIncident("new_message", VM + 1, BEGIN, END))))
    during = pl.col("time").is_between(BEGIN, END, closed="left")
    assert lines.filter(during, entity="vm-00000").height > 30 * 60
    new = lines.filter(pl.col("message").str.starts_with("EXT4-fs error"))
    assert new.height > 20
    assert new.filter(~during | (pl.col("entity") != "vm-00001")).is_empty()


def test_random_incidents_are_of_all_types_and_never_two_at_once_on_one_machine() -> None:
    config = SimulatorConfig(start=NOW, incident_rate=20.0)
    schedule = Schedule(config, config.topology)
    bit_by_bit = [len(schedule.until(NOW + hour * 3_600_000)) for hour in range(49)]
    incidents = Schedule(config, config.topology).until(NOW + 48 * 3_600_000)
    assert bit_by_bit[-1] == len(incidents) and schedule.until(NOW + 48 * 3_600_000) == incidents
    asked_for = {"degradation", "fleet_shift"}  # these happen only where a config names them
    assert {incident.type for incident in incidents} == {*ANOMALIES, *STATE_CHANGES} - asked_for
    rows = [row for incident in incidents for row in incident.rows(config.topology, config.metrics)]
    assert len({row.id for row in rows}) == len(rows)
    until: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: row.start):
        assert row.start >= until.get(row.entity, 0)
        until[row.entity] = row.end


def test_a_degradation_grows_to_its_size_and_a_shift_of_the_fleet_moves_one_metric_of_all() -> None:
    slow = InjectedIncident("degradation", VM, BEGIN, END, 3.0)
    shift = InjectedIncident("fleet_shift", VM, BEGIN, END, 2.0, metric=3, others=(VM + 1, VM + 2, VM + 3))
    topology = _site().topology
    values = {
        name: pl.concat(frames(_site(*incidents))).filter(pl.col("entity") == "vm-00000").sort("time", "metric")
        for name, incidents in (("none", ()), ("slow", (slow,)), ("shift", (shift,)))
    }

    def share(name: str, metric: str, start: int, end: int) -> float:
        one, other = (
            values[each].filter(pl.col("metric") == metric, pl.col("time").is_between(start, end, closed="left"))
            for each in (name, "none")
        )
        return float((one["value"] / other["value"]).mean())

    last = END - (END - BEGIN) // 10
    assert share("slow", "http.latency", last, END) == pytest.approx(2.9, abs=0.05)
    assert share("slow", "http.latency", BEGIN - 600_000, BEGIN) == pytest.approx(1.0)
    assert share("shift", "mem.used", BEGIN, END) == pytest.approx(2.0, abs=0.01)
    assert [row.entity for row in shift.rows(topology, 8)] == [f"vm-0000{n}" for n in range(4)]
    assert {tuple(row.metrics) for row in shift.rows(topology, 8)} == {("mem.used",)}


@pytest.fixture(scope="module")
def of_the_demo() -> tuple[CollectSink, Summary]:
    """The demo with two minutes of its live part."""
    sink = CollectSink()
    return sink, simulate(replace(demo(NOW), duration=120_000), sink, clock=VirtualClock(NOW))


def test_the_demo_injects_in_the_last_third_of_its_history_and_in_its_first_live_minute(
    of_the_demo: tuple[CollectSink, Summary],
) -> None:
    sink, summary = of_the_demo
    assert summary.injected == tuple(sink.rows)
    assert summary.records == sum(frame.height for frame in sink.frames)
    live = [row for row in summary.injected if row.start >= NOW]
    assert {row.type for row in live} == {"spike", "outage"}
    assert all(row.start < NOW + 60_000 for row in live)
    assert all(row.start >= NOW - 900_000 for row in summary.injected)
    assert GroundTruth.from_json(live[0].line()) == live[0]


def test_the_topology_says_on_which_host_each_vm_of_the_demo_runs_and_where_it_moved(
    of_the_demo: tuple[CollectSink, Summary],
) -> None:
    sink, summary = of_the_demo
    assert summary.placed == tuple(sink.placements)
    at_start = {each.entity: each.parent for each in sink.placements if each.time == NOW - 2_700_000}
    assert at_start == {f"vm-{n:05d}": f"host-{n // 2:03d}" for n in range(16)}
    (moved,) = (each for each in sink.placements if each.time != NOW - 2_700_000)
    (truth,) = {row.incident: row.start for row in summary.injected if row.type == "migration"}.items()
    assert (moved.entity, moved.parent, moved.time) == ("vm-00010", "host-006", truth[1])


def test_a_vm_that_is_added_is_placed_when_it_starts() -> None:
    begin = NOW + 60_000
    sink, added = CollectSink(), InjectedIncident("vms_added", 1, begin, begin + 60_000, others=(6,))
    simulate(replace(_site(added), duration=180_000), sink, clock=VirtualClock(NOW + 200_000))
    assert [(each.entity, each.parent) for each in sink.placements if each.time == begin] == [("vm-00004", "host-001")]
    assert len(sink.placements) == 5
