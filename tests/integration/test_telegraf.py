"""Telegraf, running here, feeds the pipeline through Kafka in three formats; its series agree with the kernel."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.formats.columnar import decode
from engine.spec.record import Record
from pipelines.contracts import topics
from pipelines.contracts.records import Telemetry
from pipelines.contracts.records.novelty import JOINED
from tests.agents import telegraf
from tests.agents.agents import memory, processor, received, running, switches, until
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(400)]

SECOND = 1_000
CONFIG = """
[agent]
  hostname = "{machine}"
  interval = "1s"
  flush_interval = "1s"
  round_interval = false
  precision = "1ms"
[[outputs.kafka]]
  brokers = ["{kafka}"]
  topic = "{topic}"
  routing_tag = "host"
  {form}
[[inputs.cpu]]
  percpu = false
[[inputs.kernel]]
[[inputs.mem]]
[[inputs.net]]
  interfaces = ["lo"]
[[inputs.system]]
"""
FORMATS = {
    "json-s": (topics.RAW_TELEGRAF, 'data_format = "json"'),
    "json-ms": (topics.RAW_TELEGRAF, 'data_format = "json"\n  json_timestamp_units = "1ms"'),
    "influx": (topics.RAW_AGENTS, 'data_format = "influx"'),
}
"""For each machine its topic and its format."""
DIGITS = {"json-s": 10, "json-ms": 13, "influx": 19}
"""For each machine the length of its timestamps: seconds, milliseconds, nanoseconds."""
RECEIVED, SWITCHES, AVAILABLE = "net.bytes_recv{interface=lo}", "kernel.context_switches", "mem.available"
KINDS = {
    **dict.fromkeys(("cpu.usage_user{cpu=cpu-total}", "cpu.usage_idle{cpu=cpu-total}", "mem.total"), "gauge"),
    **dict.fromkeys((AVAILABLE, "mem.available_percent", "system.load1", "system.uptime"), "gauge"),
    **dict.fromkeys((RECEIVED, "net.bytes_sent{interface=lo}", SWITCHES, "kernel.processes_forked"), "counter"),
}
"""Some of the series that Telegraf's documentation promises, and what they are."""


class Kernel:
    """What the kernel says, read ten times a second."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._said: dict[str, list[int]] = defaultdict(list)

    def at(self, moment: float, what: str) -> float:
        """A figure at an instant, epoch milliseconds, interpolated."""
        return float(np.interp(moment, self._times, self._said[what]))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Reads until the block ends."""
        ended = threading.Event()

        def read() -> None:
            told = {RECEIVED: received(), SWITCHES: switches(), AVAILABLE: memory("MemAvailable")}
            for name, figure in (told | processor()).items():
                self._said[name].append(figure)
            self._times.append(int(time.time() * SECOND))

        def keep_reading() -> None:
            while not ended.wait(0.1):
                read()

        read()  # so that there is a figure before any of Telegraf's
        reader = threading.Thread(target=keep_reading)
        reader.start()
        try:
            yield
        finally:
            ended.set()
            reader.join()


def test_the_series_of_a_live_telegraf_arrive_with_the_figures_of_the_kernel(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    program, kernel = telegraf.built(), Kernel()
    with kernel.reading(), ExitStack() as agents:
        for machine, (topic, form) in FORMATS.items():
            config, log = tmp_path / f"{machine}.conf", tmp_path / f"{machine}.log"
            given = {"kafka": pipeline.settings.kafka.bootstrap, "topic": pipeline.settings.topic(topic), "form": form}
            config.write_text(CONFIG.format(machine=machine, **given))
            agents.enter_context(running([str(program), "--config", str(config)], log))
            until(lambda name=machine: bool(written(pipeline, name)), log)
        pipeline.start("normalizer", "extractor", "detector", "sink")
        pipeline.wait("three whole windows of all machines in the index", lambda: windows(pipeline) > 3)
    pipeline.stop()

    samples = rows(pipeline, topics.TELEMETRY, Telemetry)
    assert {row["entity"] for row in samples} == FORMATS.keys()
    assert pipeline.read(topics.DEADLETTER) == [], "the text of system.uptime_format is left out without a word"
    judged = {(each["host.name"], each["metric"], each["@timestamp"]): each for each in pipeline.documents()}
    for machine, digits in DIGITS.items():
        sent = written(pipeline, machine)
        assert {len(stamp) for _, stamp in sent} == {digits}
        own = [row for row in samples if row["entity"] == machine]
        assert {row["metric"].partition("{")[0] for row in own} == {name for names, _ in sent for name in names}
        assert {row["metric"]: row["kind"] for row in own}.items() >= KINDS.items()
        values: dict[str, dict[int, float]] = defaultdict(dict)
        for row in own:
            values[row["metric"]][row["time"]] = row["value"]
        agrees(values, kernel)
        ends = sorted({end for host, _, end in judged if host == machine})
        for end in ends[1:]:  # in the first window Telegraf was starting
            assert {name for host, name, at in judged if (host, at) == (machine, end)} == {*values, JOINED}
            assert judged[machine, "mem.total", end]["actual"] == memory()
            for counter in (RECEIVED, SWITCHES):
                verdict = judged[machine, counter, end]
                assert verdict["metric_kind"] == "counter"
                assert verdict["actual"] == pytest.approx(rate(values[counter], verdict["window_start"], end))


def written(pipeline: Pipeline, machine: str) -> list[tuple[set[str], str]]:
    """What Telegraf has written for a machine: for each message the names of its numbers, and its timestamp."""
    topic, form = FORMATS[machine]
    found = []
    for value in (str(each.value(), "utf-8") for each in pipeline.read(topic) if each.key() == machine.encode()):
        if "json" in form:
            message = json.loads(value)
            name, stamp = message["name"], str(message["timestamp"])
            numbers = [field for field, told in message["fields"].items() if not isinstance(told, str)]
        else:
            tags, rest = value.split(" ", 1)
            fields, stamp = rest.rsplit(maxsplit=1)
            name, numbers = tags.partition(",")[0], re.findall(r"(\w+)=[-0-9]", fields)
        found.append(({f"{name}.{field}" for field in numbers}, stamp))
    return found


def windows(pipeline: Pipeline) -> int:
    """How many windows of each machine are in the index, at least."""
    ends = {(each["host.name"], each["@timestamp"]) for each in pipeline.documents() if each["metric"] == RECEIVED}
    return min(sum(host == machine for host, _ in ends) for machine in FORMATS)


def rows(pipeline: Pipeline, topic: str, record: type[Record]) -> list[dict[str, Any]]:
    """The records of a columnar topic."""
    tables = [decode(each.value() or b"", record.arrow_schema())[0] for each in pipeline.read(topic)]
    return [row for table in tables for row in table.to_pylist()]


def rate(values: dict[int, float], begin: int, end: int) -> float:
    """The increase of a counter a second in a window, from the last sample before it."""
    steps = [(at - last, values[at] - values[last]) for last, at in pairwise(sorted(values)) if begin <= at < end]
    return SECOND * sum(growth for _, growth in steps) / sum(elapsed for elapsed, _ in steps)


def agrees(values: dict[str, dict[int, float]], kernel: Kernel) -> None:
    """Checks the samples of a machine against the kernel's figures at their times, which may be cut to seconds."""
    for counter in (RECEIVED, SWITCHES):
        for at, value in values[counter].items():
            assert kernel.at(at - SECOND, counter) <= value <= kernel.at(at + 2 * SECOND, counter)
    assert set(values["mem.total"].values()) == {memory()}
    for at, value in values[AVAILABLE].items():
        assert value == pytest.approx(kernel.at(at, AVAILABLE), abs=memory() / 20)
    for state in ("user", "system", "idle", "nice"):
        shares = values[f"cpu.usage_{state}{{cpu=cpu-total}}"]
        begin, *_, end = sorted(shares)
        ticks = {each: kernel.at(end, each) - kernel.at(begin, each) for each in processor()}
        told = [share for at, share in shares.items() if at > begin]
        assert np.mean(told) == pytest.approx(100 * ticks[state] / sum(ticks.values()), abs=5)
