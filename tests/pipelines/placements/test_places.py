"""The job `places`: what is written of each machine, whatever the micro-batches and shards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.formats.heartbeat import HEARTBEAT
from engine.runtime.intake import KAFKA
from engine.testing.driven import Driven
from pipelines.contracts import topics
from pipelines.contracts.records import InferredPlacement
from pipelines.contracts.settings import load
from pipelines.jobs.places.job import MOST_MACHINES, places
from pipelines.jobs.places.logic import DAY, SETTLED
from tests.pipelines.placements.test_decoder import T, request

SETTINGS = load(**{"kafka.partitions": 2})
SLOT = 10_000
MINUTE = 60_000

Sent = tuple[int, int, bytes]
"""(time, partition, message)"""


class Site:
    """Runs the job over messages, each of which arrives at its event time."""

    def __init__(self, shards: int = 1) -> None:
        self.run, self.offset = Driven(places(SETTINGS), shards), 0

    def send(self, *sent: Sent, topic: str = topics.RAW_AGENTS) -> list[dict[str, Any]]:
        """One micro-batch of a topic, with heartbeats in the other one; returns what was written."""
        before = len(self.run.rows)
        rows = []
        for at, partition, value in sent:
            self.offset += 1
            for each in (topics.RAW_AGENTS, topics.TRACES_AGENTS):
                rows.append((value if each == topic else HEARTBEAT, each, partition, self.offset, at))
        tables = [[row for row in rows if row[1:3] == (t, p)] for t in self.run.job.topics for p in range(2)]
        made = [pa.Table.from_pylist([dict(zip(KAFKA.names, row, strict=True)) for row in t], KAFKA) for t in tables]
        self.run.kafka([table for table in made if table.num_rows])
        return self.run.rows[before:]

    def until(self, at: int) -> list[dict[str, Any]]:
        """Nothing more comes until then; what was written meanwhile."""
        return self.send(*((at, p, HEARTBEAT) for p in range(2)), *tick(at))


def tick(at: int) -> tuple[Sent, ...]:
    """Another machine is seen in each partition, which carries the watermark."""
    return tuple((at, p, pod(f"other-{p}", "n0", at)) for p in range(2))


def pod(name: str, node: str, at: int, **more: str) -> bytes:
    named = {key.replace("_", "."): value for key, value in more.items()}
    return request({"k8s.pod.name": name, "k8s.node.name": node, **named}, time=at).SerializeToString()


def written(rows: Iterable[dict[str, Any]], entity: str) -> list[tuple[Any, ...]]:
    found = (InferredPlacement.model_validate(row) for row in rows if row["host.name"] == entity)
    return [(each.parent, each.moved_from, each.moved, each.workload) for each in found]


def test_a_pod_is_written_once_however_often_it_is_seen() -> None:
    site = Site()
    for n in range(30):
        at = T + n * SLOT
        site.send((at, n % 2, pod("db-0", "n1", at, k8s_statefulset_name="db")), *tick(at))
    assert written(site.run.rows, "db-0") == [("n1", None, None, "db")]


def test_a_pod_that_is_made_again_on_another_node_has_moved_when_it_was_first_seen_there() -> None:
    site, moved = Site(), T + 10 * SLOT
    for n in range(40):
        at = T + n * SLOT
        site.send((at, 0, pod("db-0", "n1" if at < moved else "n2", at)), *tick(at))
    assert written(site.run.rows, "db-0") == [("n1", None, None, None), ("n2", "n1", moved, None)]


def test_two_sources_that_contradict_each_other_do_not_move_it_to_and_fro() -> None:
    site = Site()
    for n in range(60):
        at = T + n * SLOT
        site.send((at, 0, pod("db-0", "n1", at)), (at, 1, pod("db-0", "n1.example.com", at)), *tick(at))
    assert len(written(site.run.rows, "db-0")) == 1


def test_what_stands_is_written_again_each_day_and_what_is_gone_is_taken_away_after_a_week() -> None:
    site = Site()
    site.send((T, 0, pod("db-0", "n1", T)), *tick(T))
    for day in range(1, 11):
        at = T + day * DAY
        site.send(*([(at, 0, pod("db-0", "n1", at))] if day < 3 else []), *tick(at))
    found = [(row["@timestamp"], row.get("parent")) for row in site.run.rows if row["host.name"] == "db-0"]
    assert [parent for _, parent in found] == ["n1", "n1", "n1", None]
    assert found[-1][0] == T + 2 * DAY + 7 * DAY
    site.until(T + 12 * DAY)
    assert site.run.written[-1].stats[0].keys == 2, "only the two that are still seen"


STEPS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 1), st.sampled_from(["a", "b"]), st.sampled_from(["n1", "n2", "n3"])),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.lists(st.integers(0, 60), max_size=6), st.sampled_from([1, 2]))
def test_micro_batches_order_and_shards_change_nothing(
    steps: Sequence[tuple[int, int, str, str]], cuts: list[int], shards: int
) -> None:
    sent = sorted((T + n * SLOT, p, pod(name, node, T + n * SLOT)) for n, p, name, node in steps)
    ticks = [each for n in range(61) for each in tick(T + n * SLOT)]
    everything = sorted([*sent, *ticks])
    end = T + 61 * SLOT + SETTLED + 5 * MINUTE
    one = Site()
    one.send(*everything)
    one.until(end)
    other = Site(shards)
    bounds = [T, *sorted(T + cut * SLOT for cut in cuts), end]
    for begin, stop in pairwise(bounds):
        other.send(*reversed([each for each in everything if begin <= each[0] < stop]))
    other.until(end)
    key = lambda row: (row["host.name"], row["@timestamp"])  # noqa: E731
    assert sorted(one.run.rows, key=key) == sorted(other.run.rows, key=key)
    for name in "ab":
        nodes = {node for _, _, entity, node in steps if entity == name}
        assert {row.get("parent") for row in one.run.rows if row["host.name"] == name} <= nodes


@pytest.mark.parametrize("late", [0, 4_000])
def test_a_sighting_that_comes_within_the_disorder_of_agents_is_not_late(late: int) -> None:
    site = Site()
    site.send(*tick(T + SLOT))
    site.send((T + SLOT + late, 0, pod("db-0", "n1", T + SLOT - late)), *tick(T + 2 * SLOT))
    site.until(T + 5 * MINUTE)
    assert written(site.run.rows, "db-0") == [("n1", None, None, None)]


@pytest.mark.parametrize("names", [5_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_names_that_are_invented_within_a_minute_do_not_grow_the_state(
    names: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many machines have a place as the bound says; those that were known go on, and one letter a batch tells it."""
    most = 1_000 if names < MOST_MACHINES else MOST_MACHINES
    monkeypatch.setattr("pipelines.jobs.places.job.MOST_MACHINES", most)
    site, sizes, together = Site(), list[int](), names // 50
    site.send((T, 0, pod("honest", "n1", T)), *tick(T))
    for n in range(50):
        at = T + MINUTE + n * 1_200
        resources = [{"k8s.pod.name": f"x{n * together + i}", "k8s.node.name": "n"} for i in range(together)]
        site.send((at, 0, request(*resources, time=at).SerializeToString()), *tick(at))
    for n in range(20):
        at = T + 2 * MINUTE + n * SLOT
        site.send((at, 0, pod("honest", "n1" if n < 2 else "n2", at)), *tick(at))
        sizes.append(sum(len(value) for value in site.run.states[0].values.values()))
    placed = {row["host.name"] for row in site.run.rows}
    assert most - 10 <= len(placed) <= most, "each partition is full"
    assert written(site.run.rows, "honest")[-1][0] == "n2", "what was known goes on"
    letters = [letter for letter in site.run.dead if letter["error.code"] == "TOO_MANY_KEYS"]
    assert sum(letter["records"] for letter in letters) >= names - most
    assert len(letters) <= 2 * len(site.run.written), "one for each partition and micro-batch"
    assert sizes[-1] < 400 * most, "nothing is left of those that were refused"
