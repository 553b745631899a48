"""What holds for every plan."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.contracts.settings import load as settings
from pipelines.plan import advice
from pipelines.plan.coefficients import UNITS, read
from pipelines.plan.layout import MOST, divisor, fitted, power_of_two
from pipelines.plan.load import EMITS, Load
from pipelines.plan.needs import Machines, plan
from pipelines.plan.render import Prices

KNOWN = read()
SECOND, DAY = 1_000, 86_400_000
LOADS = st.builds(
    Load,
    events=st.floats(0.01, 1e8),
    series=st.floats(1, 1e8),
    window_ms=st.integers(SECOND, DAY),
    retention_ms=st.integers(SECOND, 365 * DAY),
    index_retention_ms=st.integers(SECOND, 365 * DAY),
    emit=st.sampled_from(EMITS),
    replication=st.integers(1, 7),
    lateness_ms=st.integers(0, DAY),
    metrics=st.floats(1, 1_000),
    stored=st.none() | st.floats(0, 1),
    lines=st.floats(0, 1e7),
    spans=st.floats(0, 1e7),
)
AT_LEAST = 1 - 1e-9
"""Sums of floats are compared with so much room."""


@given(LOADS, st.floats(1, 100), st.sampled_from(["events", "series", "lines", "spans"]))
def test_more_never_needs_less(load: Load, times: float, what: str) -> None:
    less = plan(load, KNOWN)
    more = plan(replace(load, **{what: getattr(load, what) * times}), KNOWN)
    assert more.partitions >= less.partitions and more.shards >= less.shards and more.nodes >= less.nodes
    for before, after in zip(less.needs, more.needs, strict=True):
        if what == "series" and before.part == "extractor":
            continue  # with more series and the same samples each series has fewer windows that wait
        for need in ("cores", "disk"):
            if what != "series" or before.part not in ("checkpoints", "spark local"):
                assert getattr(after, need) >= getattr(before, need) * AT_LEAST, before.part
    prices = Prices(3, 2, 1)
    if what != "series":
        assert prices.total(more) >= prices.total(less) * AT_LEAST


@given(LOADS)
def test_doubling_the_retention_doubles_the_disk_of_every_topic_and_nothing_else(load: Load) -> None:
    once, twice = plan(load, KNOWN), plan(replace(load, retention_ms=2 * load.retention_ms), KNOWN)
    for before, after in zip(once.needs, twice.needs, strict=True):
        assert (before.cores, before.memory) == (after.cores, after.memory)
        if before.part.startswith("kafka:"):
            assert after.disk == pytest.approx(2 * before.disk)
        elif before.part == "open segments":
            assert before.disk <= after.disk <= 2.002 * before.disk  # whole milliseconds of a segment of 1 s or more
        else:
            assert after.disk == before.disk


@given(LOADS)
def test_doubling_the_retention_of_indices_doubles_the_disk_of_a_copy(load: Load) -> None:
    machines = Machines(index_replicas=1)
    once = plan(load, KNOWN, machines)["elasticsearch"].disk
    twice = plan(replace(load, index_retention_ms=2 * load.index_retention_ms), KNOWN, machines)["elasticsearch"].disk
    assert twice == pytest.approx(2 * once)


@given(LOADS, st.none() | st.integers(1, MOST))
def test_shards_divide_partitions_and_both_are_settings_that_are_accepted(load: Load, partitions: int | None) -> None:
    found = plan(load, KNOWN, Machines(partitions=partitions))
    assert found.partitions % found.shards == 0
    assert partitions in (None, found.partitions)
    tree = tomllib.loads(advice.settings(found))
    loaded = settings(**{f"{part}.{name}": value for part, some in tree.items() for name, value in some.items()})
    assert (loaded.kafka.partitions, loaded.engine.shards) == (found.partitions, found.shards)
    assert loaded.engine.shards <= MOST


@given(LOADS)
def test_a_shard_that_catches_up_has_some_two_million_rows_at_a_time_on_a_large_site(load: Load) -> None:
    """Unless the default is less: 16,384 rows are the most of a message, and 100 messages the fewest at a time."""
    found = plan(load, KNOWN)
    most = tomllib.loads(advice.settings(found))["engine"]["max_records"]
    assert 1 <= most <= settings().engine.max_records
    rows = most * min(16_384, load.series / found.partitions) / found.shards
    assert rows <= 2_020_000 or most == 100
    assert rows >= 1_980_000 or most == settings().engine.max_records


def test_each_number_of_partitions_has_shards_that_divide_it() -> None:
    for partitions in range(1, MOST + 1):
        for least in (0.1, 2.5, partitions / 2, 2 * partitions):
            shards = divisor(partitions, least)
            assert partitions % shards == 0
            others = [n for n in range(1, shards) if partitions % n == 0]
            assert all(n < least for n in others)


@given(st.floats(0.001, 5_000), st.floats(0.001, 5_000))
def test_planned_partitions_leave_room_to_double_the_shards(keyed: float, busiest: float) -> None:
    partitions, shards = fitted(keyed, busiest)
    assert shards >= min(keyed, MOST) and partitions >= min(busiest, MOST)
    assert partitions % (2 * shards) == 0 or partitions == MOST


@given(st.floats(0.001, 1e6))
def test_a_power_of_two_is_the_smallest(least: float) -> None:
    found = power_of_two(least)
    assert found >= least and (found == 1 or found / 2 < least) and math.log2(found).is_integer()


@given(LOADS)
def test_each_need_names_coefficients_that_are_known_and_only_these(load: Load) -> None:
    for need in plan(load, KNOWN).needs:
        assert set(need.coefficients) <= set(UNITS)
        assert need.driven_by


@given(LOADS)
def test_a_replica_doubles_what_a_message_costs_on_the_disk(load: Load) -> None:
    one, two = (plan(replace(load, replication=n), KNOWN).total("disk", "kafka:") for n in (1, 2))
    assert two == pytest.approx(2 * one)


def test_a_site_with_traces_pays_for_them_and_one_with_more_machines_than_have_a_place_is_told() -> None:
    """The boundary is the bound of docs/bounds.md: 100,000 machines, whose state no longer grows beyond."""
    site = Load(events=1e5, series=1e6, metrics=10)
    quiet, traced = plan(site, KNOWN), plan(replace(site, spans=10_000), KNOWN)
    assert traced["calls"].cores > quiet["calls"].cores and traced["kafka:traces.agents"].disk > 0
    assert quiet["places"].cores > 1e5 / 10 * 4e-5, "45 µs a machine each ten seconds"
    assert not any("have a place" in each for each in advice.bottlenecks(quiet, KNOWN))
    larger = plan(replace(site, series=1_000_010), KNOWN)
    assert any("100,000 have a place by telemetry" in each for each in advice.bottlenecks(larger, KNOWN))
    assert larger["places"].memory == quiet["places"].memory
