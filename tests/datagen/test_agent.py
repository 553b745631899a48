"""The agent: valid records of this very machine, once a period."""

from __future__ import annotations

from datagen.agent import Agent, run_agent
from datagen.jsonlines import to_json
from pipelines.contracts.records import Telemetry
from tests.datagen.in_memory import CollectSink, VirtualClock

NOW = 1_800_000_000_000


def test_a_sample_is_some_twenty_valid_records_of_one_instant() -> None:
    records = [Telemetry.from_json(line) for line in to_json(Agent("me").sample(NOW), Telemetry)]
    names = [record.metric for record in records]
    assert len(records) >= 20 and len(set(names)) == len(names)
    assert {(record.entity, record.time) for record in records} == {("me", NOW)}
    assert {"cpu.util", "load.1m", "mem.used", "swap.used", "disk.used_ratio{path=/}", "process.count"} <= set(names)


def test_ratios_are_between_nothing_and_all_and_counters_never_fall() -> None:
    agent = Agent()
    first, second = agent.sample(NOW), agent.sample(NOW + 1000)
    ratios = second.filter(kind="ratio")["value"]
    assert ratios.min() >= 0 and ratios.max() <= 1  # type: ignore[operator]
    both = first.filter(kind="counter").join(second, on="metric")
    assert (both["value_right"] >= both["value"]).all()


def test_it_samples_once_a_period_until_it_is_over() -> None:
    clock, sink = VirtualClock(NOW), CollectSink()
    sent = run_agent(sink, 1_000, clock=clock, until=NOW + 5_000)
    times = [frame["time"][0] for frame in sink.frames]
    assert times == [NOW + second * 1_000 for second in range(1, 6)]
    assert sent == sum(frame.height for frame in sink.frames)
