"""The simulator: reproducible, independent of its chunks, and as real machines are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from datagen.jsonlines import to_json
from datagen.simulator import SimulatorConfig, demo, frames, logs, resolve
from datagen.simulator.noise import Noise
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Log, Telemetry

NOW = 1_800_000_000_000
SITE = SimulatorConfig(hosts=3, vms=7, metrics=10, start=NOW, duration=1_800_000, incident_rate=100.0, quiet=60_000)


def _json(config: SimulatorConfig, chunk: int | None) -> tuple[list[str], list[str]]:
    samples = [line for frame in frames(config, chunk) for line in to_json(frame, Telemetry)]
    return samples, [line for frame in logs(config, chunk) for line in to_json(frame, Log)]


WHOLE = _json(SITE, None)


@hypothesis_settings(deadline=None, max_examples=12)
@given(chunk=st.integers(1, 200))
def test_the_bytes_are_the_same_however_the_run_is_cut(chunk: int) -> None:
    assert _json(SITE, chunk) == WHOLE


def test_the_same_config_gives_the_same_bytes_and_another_seed_gives_others() -> None:
    assert _json(SITE, None) == WHOLE
    assert _json(replace(SITE, seed=2), None)[0] != WHOLE[0]


def test_a_longer_run_begins_like_a_shorter_one() -> None:
    shorter = pl.concat(frames(replace(SITE, duration=900_000)))
    longer = pl.concat(frames(SITE))
    settled = NOW + 900_000
    assert shorter.filter(pl.col("arrival") < settled).equals(longer.filter(pl.col("arrival") < settled))


def test_each_json_is_a_valid_record() -> None:
    for line in WHOLE[0][::50]:
        Telemetry.from_json(line)
    for line in WHOLE[1][::10]:
        Log.from_json(line)


def test_all_kinds_of_metric_occur() -> None:
    kinds = {Telemetry.from_json(line).kind for line in WHOLE[0][:500]}
    assert kinds == {"gauge", "counter", "rate", "count", "latency", "ratio"}


def test_records_come_in_order_of_arrival_and_no_event_time_runs_ahead_by_a_minute() -> None:
    rows = pl.concat(frames(SITE))
    assert rows["arrival"].is_sorted()
    assert (rows["time"] - rows["arrival"]).max() < 60_000


def test_some_records_are_out_of_order_and_some_are_late_and_some_are_missing() -> None:
    config = SimulatorConfig(start=NOW, duration=3_600_000, incident_rate=0.0)
    rows = pl.concat(frames(config))
    delay = rows["arrival"] - rows["time"]
    assert 0.01 < (delay > 1_000).mean() < 0.1
    assert (delay > 30_000).any() and delay.max() < 125_000
    complete = (config.hosts + config.vms) * 360 * config.metrics
    assert 0.995 * complete < rows.height < complete


def test_a_day_and_a_weekend_can_be_seen() -> None:
    monday = 1_799_625_600_000  # 2027-01-11
    config = SimulatorConfig(hosts=2, vms=6, start=monday, step=600_000, duration=7 * 86_400_000, incident_rate=0.0)
    load = (
        pl.concat(frames(config))
        .filter(metric="http.requests")
        .with_columns(hour=pl.col("time") // 3_600_000 % 24, day=(pl.col("time") - monday) // 86_400_000)
    )
    hourly = load.filter(pl.col("day") < 5).group_by("entity", "hour").agg(pl.col("value").mean())
    swing = hourly.group_by("entity").agg(pl.col("value").max() / pl.col("value").min())["value"]
    assert swing.min() > 1.25
    week = load.group_by("entity").agg(
        pl.col("value").filter(pl.col("day") >= 5).mean() / pl.col("value").filter(pl.col("day") < 5).mean()
    )
    assert week["value"].max() < 0.97


def test_the_metrics_of_one_machine_move_together_and_those_of_strangers_do_not() -> None:
    config = SimulatorConfig(hosts=2, vms=4, start=NOW, duration=14_400_000, incident_rate=0.0, missing=0.0)
    rows = pl.concat(frames(config)).sort("time")

    def changes(entity: str, metric: str) -> np.ndarray:
        values = rows.filter(entity=entity, metric=metric)["value"].to_numpy()
        means = values[: len(values) // 6 * 6].reshape(-1, 6).mean(axis=1)
        return np.diff(means, n=1)

    own = np.corrcoef(changes("vm-00000", "cpu.util"), changes("vm-00000", "http.requests"))[0, 1]
    other = np.corrcoef(changes("vm-00000", "cpu.util"), changes("vm-00003", "http.requests"))[0, 1]
    host = np.corrcoef(changes("vm-00000", "cpu.util"), changes("host-000", "cpu.util"))[0, 1]
    assert own > 0.6 and host > 0.3 and abs(other) < 0.3


def test_counters_grow_and_restart_from_nothing_only() -> None:
    rows = pl.concat(frames(replace(SITE, duration=7_200_000))).filter(kind="counter").sort("time")
    for (_,), series in rows.group_by("entity", maintain_order=True):
        for (_,), counter in series.group_by("metric", maintain_order=True):
            values = counter["value"].to_numpy()
            drops = np.flatnonzero(np.diff(values) < 0)
            assert (values[drops + 1] < 0.1 * values.max()).all()


def test_every_noise_is_a_pure_function_of_machine_and_step() -> None:
    noise, steps = Noise(3), np.arange(1000)
    whole = noise.smooth("x", np.arange(4)[:, None], steps, 7)
    assert np.array_equal(whole[2:3, 333:], noise.smooth("x", np.array([[2]]), steps[333:], 7))
    assert abs(noise.normal("y", np.arange(100)[:, None], steps).std() - 1) < 0.01


def test_a_run_starts_so_that_its_history_ends_now_and_a_fast_run_ends_now() -> None:
    config = SimulatorConfig(backfill=600_000)
    assert resolve(config, NOW).start == NOW - 600_000
    fast = resolve(replace(config, speed=10.0, duration=100_000), NOW)
    assert fast.start is not None and fast.start + 700_000 <= NOW + 10_000
    assert resolve(replace(config, speed=0.0, duration=100_000), NOW).start == NOW - 700_000


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"speed": 2.0}, "SIMULATOR_INVALID"),
        ({"start": NOW + 3_600_000}, "START_AHEAD"),
        ({"metrics": 11}, "SIMULATOR_INVALID"),
        ({"missing": 2.0}, "SIMULATOR_INVALID"),
    ],
)
def test_what_cannot_be_simulated_is_refused(changes: dict[str, object], code: str) -> None:
    with pytest.raises(NewnormalError) as raised:
        resolve(SimulatorConfig(**changes), NOW)  # type: ignore[arg-type]
    assert raised.value.code == code


def test_the_demo_has_24_machines_of_7_metrics_and_its_history_ends_now() -> None:
    config = demo(NOW)
    rows = pl.concat(frames(replace(config, duration=0)))
    assert rows["entity"].n_unique() == 24
    assert rows.group_by("entity").agg(pl.col("metric").n_unique())["metric"].unique().to_list() == [7]
    assert NOW - 20_000 < rows["time"].max() <= NOW + 5_000


def test_two_runs_show_the_same_site_at_the_same_instant_whenever_they_started() -> None:
    """Gauges, latencies and logs are functions of the seed and of the event time; only counters count from a start."""
    quiet = replace(SITE, incident_rate=0.0)
    later = replace(quiet, start=NOW + 600_000, duration=1_200_000)
    compared = pl.col("arrival").is_between(NOW + 720_000, NOW + 1_800_000, closed="left")  # none is from before 600 s
    for made in (frames, logs):
        one, other = (pl.concat(made(config)).filter(compared) for config in (quiet, later))
        counters = pl.col("kind") == "counter" if "kind" in one.columns else pl.lit(False)
        assert one.filter(~counters).height > 100
        assert one.filter(~counters).equals(other.filter(~counters))


def test_counters_begin_at_nothing_as_after_a_reboot() -> None:
    first = pl.concat(frames(SITE)).filter(kind="counter").sort("time").group_by("entity", "metric").first()
    assert (first["value"] < 5e8).all()  # ten seconds of traffic, at most


def test_the_demo_goes_on_with_other_machines_and_what_lasts_still_lasts() -> None:
    first, pause = demo(NOW), 420_000
    second = demo(NOW + pause, earlier=(NOW,))
    assert second.start == first.start
    assert (second.start or 0) + second.backfill == NOW + pause
    assert second.incidents[: len(first.incidents)] == first.incidents
    new = second.incidents[len(first.incidents) :]
    assert [(each.type, each.start - NOW - pause) for each in new] == [("spike", 20_000), ("outage", 40_000)]
    assert not {each.entity for each in new} & {each.entity for each in first.incidents}
