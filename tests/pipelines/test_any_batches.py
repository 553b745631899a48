"""The chain of metrics, from agents' messages to verdicts: whatever the micro-batches of each job, the end is the same.

The load is that of `newnormal chaos`, the comparison that of its verifier. Jobs run one after the other without Spark
and Kafka; a broker that was away delivers all it has at once.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import pyarrow as pa
import pytest

from engine.formats.heartbeat import HEARTBEAT
from engine.kafka.heartbeat_sender import HEARTBEAT_SECONDS
from engine.runtime.intake import KAFKA
from engine.spec.job import Job
from engine.testing import Driven
from pipelines.contracts import topics
from pipelines.contracts.settings import load
from pipelines.jobs.detectors.job import detector
from pipelines.jobs.extractor import extractor
from pipelines.jobs.normalizers import normalizer
from tests.chaos.runs.scenario import STEP_MS, Scenario
from tests.chaos.runs.verifier.finding import Tally
from tests.chaos.runs.verifier.verdict_checks import Final, check_reference, newest

SETTINGS = load(**{"detector.emit": "all", "window.allowed_lateness": "3m"})
PARTITIONS, SHARDS = SETTINGS.kafka.partitions, 2
STEPS, SPEED = 160, 5
"""Steps of the load, and how much faster than its event time it comes."""

AGO, SETTLE = 8 * 3_600_000, 300
"""How long before it comes it happened, and how long after a micro-batch began its results arrive, milliseconds."""


class Entry(NamedTuple):
    """A message in Kafka, and when it arrived there, epoch milliseconds."""

    arrived: int
    topic: str
    partition: int
    value: bytes


def load_of(seed: int, begin: int, away: tuple[int, int]) -> list[Entry]:
    """The messages of a scenario, with heartbeats; what is sent while the broker is away arrives when it is back.

    Args:
        seed: Of the scenario.
        begin: Event time of its first sample, epoch milliseconds.
        away: From when until when the broker is away, milliseconds after the beginning.
    """
    scenario, found = Scenario(seed, begin), []
    sent = [(step, scenario.at(step)) for step in range(STEPS)]
    sent += [(STEPS, scenario.closing(step)) for step in range(STEPS + 20, STEPS + 50)]
    for step, messages in sent:
        after = step * STEP_MS // SPEED
        arrived = begin + AGO + (away[1] if away[0] <= after < away[1] else after)
        found += [Entry(arrived, m.topic, crc32(m.key.encode()) % PARTITIONS, m.value) for m in messages]
    read = (*normalizer(SETTINGS).topics, topics.RULES, topics.LABELS, topics.CHANGES)
    return sorted([*found, *heartbeats(read, found)], key=lambda entry: entry.arrived)


def heartbeats(names: Iterable[str], entries: Sequence[Entry]) -> list[Entry]:
    """Heartbeats from the first message to well after the last one."""
    times = [entry.arrived for entry in entries]
    beats = range(min(times), max(times) + 30_000, int(HEARTBEAT_SECONDS * 1000))
    return [Entry(time, name, p, HEARTBEAT) for name in names for p in range(PARTITIONS) for time in beats]


def run(job: Job, entries: Sequence[Entry], rng: random.Random, pause: float) -> list[Entry]:
    """Runs a job; a partition may be read later than others.

    Args:
        job: The job.
        entries: What it reads, in order of arrival.
        rng: Draws the micro-batches.
        pause: Mean time between two of them, milliseconds.

    Returns:
        What it has written to its output, with heartbeats.
    """
    driven, waiting, made = Driven(job, SHARDS), dict[tuple[str, int], list[tuple[int, Entry]]](), []
    for entry in entries:
        own = waiting.setdefault((entry.topic, entry.partition), [])
        own.append((len(own), entry))
    now, last = float(entries[0].arrived), entries[-1].arrived
    while now <= last:
        now += rng.expovariate(1 / pause)
        rows = []
        for place, own in waiting.items():
            until = now - (rng.uniform(0, 2 * pause) if now <= last and rng.random() < 0.3 else 0)
            count = next((n for n, (_, entry) in enumerate(own) if entry.arrived > until), len(own))
            rows += [(entry.value, *place, offset, entry.arrived) for offset, entry in own[:count]]
            del own[:count]
        if rows:
            table = pa.Table.from_pylist([dict(zip(KAFKA.names, row, strict=True)) for row in rows], schema=KAFKA)
            before = len(driven.messages)
            driven.kafka([table])
            wrote = [message for _, message in driven.messages[before:] if message.topic == job.output.topic]
            made += [Entry(int(now) + SETTLE, m.topic, m.partition, m.value) for m in wrote]
    assert not any(map(len, waiting.values())), "all was read"
    return sorted([*made, *heartbeats([job.output.topic], made)], key=lambda entry: entry.arrived)


def verdicts(entries: Sequence[Entry], seed: int, pause: float, until: int) -> Final:
    """The final verdicts of the chain on windows that end by a time."""
    rng = random.Random(seed)
    telemetry = run(normalizer(SETTINGS), [e for e in entries if e.topic in normalizer(SETTINGS).topics], rng, pause)
    features = run(extractor(SETTINGS), telemetry, rng, pause)
    said = [entry for entry in entries if entry.topic in (topics.RULES, topics.LABELS, topics.CHANGES)]
    told = run(detector(SETTINGS), sorted([*features, *said], key=lambda entry: entry.arrived), rng, pause)
    found: list[dict[str, Any]] = [json.loads(entry.value) for entry in told if entry.value != HEARTBEAT]
    return newest(found, until)


@pytest.mark.parametrize("seed", [1, 2])
def test_final_verdicts_do_not_depend_on_the_micro_batches(seed: int) -> None:
    rng = random.Random(seed)
    begin = 1_795_649_650_000 + rng.randrange(1_000) * 10_000
    gone = rng.uniform(5_000, 40_000)
    entries = load_of(seed, begin, (int(gone), int(gone + rng.uniform(2_000, 25_000))))
    until = begin + STEPS * STEP_MS
    once, often = (verdicts(entries, seed, pause, until) for pause in (60_000.0, rng.uniform(500, 4_000)))
    assert len(once) > 1_500 and any(verdict["kind"] == "anomaly" for verdict in once.values())
    tally = Tally()
    check_reference(tally, often, once)
    assert not tally.findings, "\n".join(map(str, tally.findings))
