"""Sources while a real Kafka is killed, hung, gone or not there yet; what the topic holds is counted independently."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from datagen.kafka_writer import KafkaWriter
from deploy.embedded import services
from deploy.progress import silent
from engine.kafka.admin import ensure_topics
from pipelines.contracts.settings import load

pytestmark = pytest.mark.servers

START = "2026-01-01T00:00:00Z"
SITE = ["--start", START, "--hosts", "50", "--vms", "200", "--backfill", "10m", "--duration", "0s", "--late", "0"]


class Broker:
    """A Kafka of this module's own, to be ill-treated."""

    def __init__(self, state: Path) -> None:
        self.settings = load(state_dir=state)

    def up(self) -> None:
        services.up(self.settings, elasticsearch=False, say=silent)

    def down(self) -> None:
        services.down(self.settings)

    @property
    def pid(self) -> int:
        running = services.status(self.settings)
        assert running
        return running.servers[0].pid

    @property
    def address(self) -> str:
        running = services.status(self.settings)
        assert running
        return running.endpoints.bootstrap

    def kill(self) -> None:
        """With SIGKILL; its supervisor starts it again on the same data."""
        os.killpg(self.pid, signal.SIGKILL)

    @contextmanager
    def hung(self) -> Iterator[None]:
        """Stopped with SIGSTOP for the length of a block: its address is open, and nobody answers."""
        pid = self.pid
        os.killpg(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(pid, signal.SIGCONT)

    def records(self, topic: str, partitions: int = 4) -> list[dict[str, object]]:
        """All that a topic holds, in order within each partition."""
        options = {"bootstrap.servers": self.address, "group.id": "count", "enable.partition.eof": True}
        reader = Consumer(options)
        reader.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        found, ended = [], 0
        while ended < partitions:
            messages = reader.consume(10_000, 1.0)
            ended += sum(message.error() is not None for message in messages)
            found += [json.loads(message.value()) for message in messages if message.error() is None]
        reader.close()
        return found


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    found = Broker(tmp_path_factory.mktemp("broker"))
    yield found
    found.down()


@pytest.fixture
def run(broker: Broker, tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts a command of `newnormal` on the broker, in a namespace of the test's own."""
    started: list[Run] = []

    def start(*arguments: str) -> Run:
        started.append(Run([*arguments, "--state-dir", str(broker.settings.state)], tmp_path / f"{len(started)}.log"))
        return started[-1]

    yield start
    for command in started:
        command.process.kill()


class Run:
    """A command in a process of its own."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            command = [sys.executable, "-m", "pipelines.cli.main", *arguments]
            environ = os.environ | {"COLUMNS": "200"}
            self.process = subprocess.Popen(command, stdout=output, stderr=output, env=environ)

    @property
    def said(self) -> str:
        return self.log.read_text()

    def wait_for(self, what: str, seconds: float = 90) -> None:
        """Until it has said something that a regular expression finds."""
        deadline = time.monotonic() + seconds
        while not re.search(what, self.said):
            assert time.monotonic() < deadline, f"{what!r} was not said:\n{self.said}"
            time.sleep(0.05)

    def stop(self, seconds: float = 15) -> int:
        """Ctrl-C; returns the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(seconds)


def now() -> int:
    return time.time_ns() // 1_000_000


def by_machine(records: list[dict[str, object]]) -> dict[object, list[tuple[object, ...]]]:
    """The samples of each machine, in order."""
    found: dict[object, list[tuple[object, ...]]] = defaultdict(list)
    for record in records:
        found[record["host.name"]].append((record["@timestamp"], record["metric"], record["value"]))
    return found


def assert_each_sample_once_in_order_without_gap(records: list[dict[str, object]], every: int) -> None:
    """Of one agent: whole samples, no instant twice or out of order, none missing for longer than a slow reading."""
    instants = Counter(int(str(record["@timestamp"])) for record in records)
    samples = Counter((record["@timestamp"], record["metric"]) for record in records)
    assert max(samples.values()) == 1, "a sample is there twice"
    assert list(instants) == sorted(instants), "samples are out of order"
    fewest = min(instants.values())
    assert fewest >= 20 and max(instants.values()) <= fewest + 4, "part of a reading is missing"
    steps = [later - earlier for earlier, later in zip(list(instants)[:-1], list(instants)[1:], strict=True)]
    assert max(steps) < every + 900, f"a gap of {max(steps)} ms"


def test_a_simulation_waits_for_a_broker_that_is_killed_or_hangs_and_every_record_arrives_once(
    broker: Broker, run: Callable[..., Run], tmp_path: Path
) -> None:
    broker.up()
    expected = run("simulate", *SITE, "--to", str(tmp_path))
    sent = run("simulate", *SITE, "--namespace", "simulate.")
    sent.wait_for("hosts")
    broker.kill()
    sent.wait_for(r"kafka: no answer for \d+ s; [\d,]+ records wait")
    sent.wait_for(r"kafka: answers again after \d+ s; the [\d,]+ records that had waited were delivered")
    assert sent.process.wait(120) == expected.process.wait(60) == 0
    lines = (tmp_path / "telemetry.json").read_text().splitlines()
    assert by_machine(broker.records("simulate.telemetry.json")) == by_machine([json.loads(line) for line in lines])


def test_an_agent_starts_before_its_broker_and_outlives_its_death_and_its_silence(
    broker: Broker, run: Callable[..., Run]
) -> None:
    broker.down()
    agent = run("agent", "--entity", "me", "--every", "200ms", "--namespace", "agent.")
    agent.wait_for(r"kafka: no answer for \d+ s .*no embedded one is running.*; [\d,]+ records wait in the buffer")
    broker.up()
    agent.wait_for(r"kafka: answers again after \d+ s; the [\d,]+ records that had waited were delivered")
    broker.kill()
    agent.wait_for(r"(?s)(kafka: answers again.*){2}")
    with broker.hung():
        agent.wait_for(r"(?s)(no answer.*answers again.*){2}no answer")
    agent.wait_for(r"(?s)(kafka: answers again.*){3}")
    assert agent.stop() == 0
    assert "Traceback" not in agent.said and "stay in the buffer" not in agent.said
    records = broker.records("agent.telemetry.json")
    assert_each_sample_once_in_order_without_gap(records, 200)
    read = re.search(r"(\d+) samples read", agent.said)
    assert read and len(records) == int(read[1])


def test_what_could_not_be_sent_before_a_kill_or_ctrl_c_is_told_and_an_agent_sends_it_once_at_its_next_start(
    broker: Broker, run: Callable[..., Run]
) -> None:
    """The broker hangs when the agent is killed: what was under way then is taken by the broker after its death."""
    broker.up()
    options = ["--entity", "me", "--every", "100ms", "--namespace", "killed."]
    killed = run("agent", *options)
    simulated = run("simulate", "--hosts", "1", "--vms", "2", "--step", "1s", "--namespace", "stopped.")
    simulated.wait_for("hosts")
    killed.wait_for("me: a sample")
    time.sleep(2)
    with broker.hung():
        time.sleep(1)
        killed.process.kill()
        death = now()
        stopped = run("agent", *options)
        stopped.wait_for("records of an earlier run wait in the buffer")
        stopped.wait_for("kafka: no answer")
        end = now()
        stopped.process.send_signal(signal.SIGINT)
        assert simulated.stop() == 2
        assert stopped.process.wait(15) == 0
    assert re.search(r"DELIVERY_FAILED: [\d,]+ records were not acknowledged: no answer for \d+ s", simulated.said)
    assert re.search(r"[\d,]+ records stay in the buffer \S+me\.sqlite; the next start sends them", stopped.said)
    last = run("agent", *options, "--duration", "2s")
    assert last.process.wait(60) == 0
    assert "stay in the buffer" not in last.said
    records = broker.records("killed.telemetry.json")
    times = [int(str(record["@timestamp"])) for record in records]
    assert times == sorted(times), "samples are out of order"
    for begin, until in ((0, death), (death, end), (end, now())):
        part = [record for record in records if begin <= int(str(record["@timestamp"])) < until]
        assert_each_sample_once_in_order_without_gap(part, 100)
        assert int(str(part[-1]["@timestamp"])) > until - 1_000 or until > end, "the end of a run is missing"


def test_a_source_that_waits_for_an_answer_leaves_the_processor_alone(broker: Broker) -> None:
    """The boundary between waiting and asking again and again: a busy broker answers late, to all its producers."""
    broker.up()
    bootstrap = broker.address
    ensure_topics(bootstrap, {"waits": {}}, 4)
    keys = [f"host-{number}" for number in range(50)]
    with KafkaWriter(bootstrap) as writer:
        writer.write("waits", keys, keys)
        writer.flush()
        with broker.hung():
            began, used = time.monotonic(), time.process_time()
            while time.monotonic() < began + 2:
                writer.write("waits", keys, keys)
                time.sleep(0.05)
            used = time.process_time() - used
    assert used < 0.5, "seconds of processor time in two seconds of waiting"
