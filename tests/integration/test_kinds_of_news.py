"""The simulated site of the demo through Kafka and Spark: each kind of news arrives in Elasticsearch as a document."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from datagen.kafka_writer import KafkaWriter
from datagen.simulator import SimulatorConfig, simulate
from datagen.simulator.incidents import InjectedIncident
from datagen.sinks import KafkaSink
from pipelines.contracts.records import Change
from pipelines.contracts.records.novelty import JOINED
from pipelines.query.control_topics import write
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.timeout(400)]

MINUTE, STEP, HISTORY = 60_000, 10_000, 64
DAY, MORNING = 1_440 * MINUTE, 480 * MINUTE
DOWN, SPIKE, SHIFTED, TAKEN_DOWN = 1, 2, 3, 4
"""Numbers of the machines to which something happens. Host 1 takes its VM, the last machine, down with it.
The other VMs run on host 0, as what happens on one host at nearly the same time is one incident."""


def _site(start: int) -> SimulatorConfig:
    """Two hosts and three VMs: 50 quiet minutes, then a load that lasts, a surge, a host that takes its VM down."""
    incidents = (
        InjectedIncident("spike", SPIKE, start + 50 * MINUTE, start + 53 * MINUTE, size=4.0),
        InjectedIncident("load_shift", SHIFTED, start + 50 * MINUTE, start + 60 * MINUTE, size=2.0),
        InjectedIncident("outage", DOWN, start + 55 * MINUTE, start + 58 * MINUTE, others=(TAKEN_DOWN,)),
    )
    quiet = {"incident_rate": 0.0, "skewed": 0.0, "late": 0.0, "delayed": 0.0, "missing": 0.0, "log_rate": 0.0}
    shape: dict[str, Any] = {"hosts": 2, "vms": 3, "spare": 0, "metrics": 6, "start": start, "step": STEP}
    return SimulatorConfig(**shape, **quiet, backfill=HISTORY * MINUTE, duration=0, incidents=incidents)


def test_each_kind_of_news_and_the_metrics_behind_a_joined_verdict_are_seen_in_elasticsearch(
    pipeline: Pipeline,
) -> None:
    start = _last_working_day() * DAY + MORNING
    site = _site(start)
    with KafkaWriter(pipeline.settings.kafka.bootstrap or "") as writer:
        simulate(site, KafkaSink(writer, pipeline.settings.namespace))
    pipeline.start("normalizer", "extractor", "detector", "incidents", "sink")
    names = site.topology.names

    def told(machine: int, kind: Callable[[dict[str, Any]], bool]) -> list[float]:
        """Minutes after the start at which documents of a machine end."""
        ends = [d["@timestamp"] for d in found if d["host.name"] == names[machine] and kind(d)]
        return sorted((end - start) / MINUTE for end in ends)

    def all_there() -> bool:
        """Whether the last windows of all machines are judged, and the index holds the newest revisions."""
        done = {v["host.name"] for v in pipeline.verdicts() if v["@timestamp"] >= start + (HISTORY - 2) * MINUTE}
        return done == set(names) and pipeline.all_indexed()

    pipeline.wait("all verdicts in the index", all_there)
    pipeline.wait("the incident of the outage in the index", lambda: _incident(pipeline, names[DOWN]) is not None)
    found = pipeline.documents()

    assert 50 < told(SPIKE, lambda d: d["kind"] == "anomaly")[0] < 51
    assert 53 <= told(SPIKE, lambda d: d["kind"] == "recovered")[-1] < 60
    joined = [d for d in found if d["host.name"] == names[SPIKE] and d["metric"] == JOINED and d["kind"] == "anomaly"]
    influencers = joined[0]["influencers"]
    shares = list(influencers.values())
    assert len(shares) > 1
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0, abs=0.1)
    assert set(influencers) <= {d["metric"] for d in found}

    assert told(DOWN, lambda d: d["kind"] == "absence" and d["metric"] == JOINED) == [pytest.approx(55, abs=0.7)]
    (over,) = (m for m in told(DOWN, lambda d: d["kind"] == "recovered" and d["metric"] == JOINED) if m > 55)
    assert 58 <= over < 61

    assert 50 < told(SHIFTED, lambda d: d["kind"] == "state_change")[0] < 56
    accepted = told(SHIFTED, lambda d: d["kind"] == "new_normal")
    assert 51 < accepted[0] <= accepted[-1] <= 62
    assert told(DOWN, lambda d: d["kind"] in ("state_change", "new_normal")) == [], "an outage is no state that lasts"

    outage = _incident(pipeline, names[DOWN])
    assert outage is not None
    assert outage["candidates"][0]["entity"] == names[DOWN]
    assert {each["entity"] for each in outage["candidates"]} == {names[DOWN], names[TAKEN_DOWN]}
    assert (outage["event.start"] - start) / MINUTE == pytest.approx(55, abs=0.7)

    done = Change(id="ci/7", time=start, kind="deployment", message="cart 1.4", machines=["vm-*"])
    write(pipeline.settings, done)
    changes = pipeline.settings.change_alias
    pipeline.wait("the change in the index", lambda: len(pipeline.documents(changes)) > 0)
    assert [Change.model_validate(each) for each in pipeline.documents(changes)] == [done]

    started = re.findall(r"job started .*job=(\w+)", pipeline.log.read_text())
    assert list(dict.fromkeys(started)) == ["normalizer", "extractor", "detector", "sink", "incidents"], (
        "the way of a metric comes first"
    )


def _last_working_day() -> int:
    """The last day from Monday to Friday before today, in days since 1970 (a Thursday).

    The simulated load is another one on weekends, and with it what else is unusual when the host fails.
    """
    day = int(time.time() * 1000) // DAY - 1
    return day - max(0, (day + 3) % 7 - 4)


def _incident(pipeline: Pipeline, machine: str) -> dict[str, Any] | None:
    """The incident that began at a machine."""
    found = pipeline.documents(pipeline.settings.incident_alias)
    return next((each for each in found if each["candidates"][0]["entity"] == machine), None)
