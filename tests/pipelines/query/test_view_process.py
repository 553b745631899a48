"""`newnormal view` as a process that is killed, and that ends; what it knows then, compared with the topic."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import orjson
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from typer.testing import CliRunner

from deploy.embedded.endpoints import Endpoints
from engine.columns.partitioning import crc32
from engine.spec.duration import iso
from pipelines.cli.main import app
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from tests.pipelines.query.view_topics import PARTITIONS, T0, Own, produce, state, until, with_topics

pytestmark = pytest.mark.servers


@pytest.fixture
def mine(endpoints: Endpoints, tmp_path: Path) -> Settings:
    return with_topics(endpoints, tmp_path)


class Process:
    """`newnormal view` as a process."""

    def __init__(self, settings: Settings) -> None:
        own = {"NAMESPACE": settings.namespace, "STATE_DIR": str(settings.state_dir), "VIEW__PORT": "0"}
        own |= {"KAFKA__BOOTSTRAP": settings.kafka.bootstrap or ""}
        env = os.environ | {f"NEWNORMAL_{name}": value for name, value in own.items()}
        command = [sys.executable, "-m", "pipelines.cli.main", "view", "--as", "v1"]
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline() if self.process.stdout else ""
        assert " at http://" in line, line
        self.url = line.split(" at ")[1].split()[0]
        self.http = httpx.Client(base_url=self.url, timeout=30)

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        return dict(self.http.get(path, params=query).raise_for_status().json())

    def end(self, how: signal.Signals) -> tuple[int, str]:
        """Sends a signal; returns the exit status and what was written to stderr."""
        self.process.send_signal(how)
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said


def test_a_killed_view_frees_its_port_goes_on_where_it_was_and_ends_without_a_word_on_ctrl_c(mine: Settings) -> None:
    rng = np.random.default_rng(5)
    updates = [state(f"h{n % 300}", f"m{rng.integers(10)}", n) for n in range(20_000)]
    expected = {(each["host.name"], each["metric"]): each for each in updates}
    writing = threading.Thread(target=produce, args=(mine, updates))
    writing.start()
    view = Process(mine)
    until(lambda: view.get("/health")["messages"] > 3_000)
    read = view.get("/health")["messages"]
    view.end(signal.SIGKILL)
    until(lambda: not reachable(view.url), 10)
    writing.join()
    view = Process(mine)
    until(lambda: view.get("/health")["age"]["messages_behind"] == 0)
    assert view.get("/health")["messages"] <= len(updates) - read
    found = view.get("/states", limit=10_000)["states"]
    assert {(each["host.name"], each["metric"]): each for each in found} == expected
    assert view.get("/counts")["counts"]["series"] == len(expected)
    query = ["sql", "SELECT entity, count(*) AS n FROM view.states GROUP BY entity", "--view", view.url, "--json"]
    asked = CliRunner().invoke(app, [*query, "--kafka", mine.kafka.bootstrap, "--namespace", mine.namespace])
    rows = {row["entity"]: row["n"] for row in map(orjson.loads, asked.stdout.splitlines())}
    assert rows == Counter(entity for entity, _ in expected)
    assert view.end(signal.SIGINT) == (0, "")  # with a connection that is still open


def test_the_view_and_newnormal_query_full_say_what_will_be_full_next(mine: Settings) -> None:
    hour, now = 3_600_000, T0
    made = [state(f"db-{n}", "disk.used_percent{path=/}", n) for n in range(60)]
    for n in range(40):  # the later the name, the sooner it is full; some perhaps never
        median = now + (100 - n) * hour
        made[n] |= {"full_earliest": median - hour, "full_median": median, "full_rate": 0.5}
        made[n] |= {"full_latest": median + hour} if n % 3 else {}
    produce(mine, made)
    room_again = {name: value for name, value in made[39].items() if not name.startswith("full_")}
    produce(mine, [room_again])
    view = Process(mine)
    until(lambda: view.get("/health")["age"]["messages_behind"] == 0 and view.get("/health")["messages"] == 61)
    found = view.get("/full", k=5)
    assert [each["host.name"] for each in found["states"]] == ["db-38", "db-37", "db-36", "db-35", "db-34"]
    assert found["states"] == [made[n] for n in range(38, 33, -1)]
    assert len(view.get("/full", k=1000)["states"]) == 39
    assert view.http.get("/full", params={"k": 0}).status_code == 422
    asked = CliRunner().invoke(app, ["query", "full", "2", "--view", view.url, "--json"])
    assert [each["host.name"] for each in orjson.loads(asked.stdout)["states"]] == ["db-38", "db-37"], asked.output
    shown = CliRunner().invoke(app, ["query", "full", "3", "--view", view.url], env={"COLUMNS": "300"})
    assert shown.exit_code == 0, shown.output
    lines = [line for line in shown.stdout.splitlines() if "db-" in line]
    assert [line.split()[0].strip("│┃") or line.split()[1] for line in lines] == ["db-38", "db-37", "db-36"]
    assert iso(now + 62 * hour)[:16] in shown.stdout.replace("T", " ") or iso(now + 62 * hour)[:16] in shown.stdout
    assert view.end(signal.SIGINT) == (0, "")


def reachable(url: str) -> bool:
    host, port = url.removeprefix("http://").split(":")
    with socket.socket() as asking:
        return asking.connect_ex((host, int(port))) == 0


_FOLLOW = """
import pickle, sys
from pipelines.query.view.follower import Follower
follower = Follower(pickle.load(sys.stdin.buffer))
print("reads", flush=True)
while True:
    follower.step(0.05)
"""


@pytest.mark.slow
def test_whenever_the_view_is_killed_it_agrees_in_the_end_with_an_independent_fold_of_the_topic(mine: Settings) -> None:
    """States, tombstones and aborted transactions are written all the time; only the topic says what is right."""
    rng, stop = np.random.default_rng(7), threading.Event()
    writing = threading.Thread(target=transactions, args=(mine, stop))
    writing.start()
    for _ in range(25):
        with subprocess.Popen(
            [sys.executable, "-c", _FOLLOW], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as follower:
            assert follower.stdin and follower.stdout
            follower.stdin.write(pickle.dumps(mine))
            follower.stdin.close()
            assert follower.stdout.readline() == b"reads\n"
            time.sleep(rng.uniform(0, 0.6))
            follower.kill()
    stop.set()
    writing.join()
    view = Own(mine)
    view.read_all()
    states, _ = view.range("", False, b"", 100_000)
    top, counts = view.top(100_000), view.counts()
    view.follower.close()
    topic = folded(mine)
    assert {(each["host.name"], each["metric"]): each for each in states} == topic
    abnormal = [each["record_score"] for each in topic.values() if each["kind"] == "anomaly"]
    assert [each["record_score"] for each in top] == sorted(abnormal, reverse=True)
    assert (counts["series"], counts["abnormal"]) == (len(topic), len(abnormal))


def transactions(settings: Settings, stop: threading.Event) -> None:
    """Writes some 2,500 states and tombstones a second in transactions, and aborts each fifth.

    Without that pace a slow machine, on which each start of the view takes longer, had more to read in the end.
    """
    rng = np.random.default_rng(11)
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap, "transactional.id": settings.namespace})
    producer.init_transactions()
    for n in itertools.count():
        producer.begin_transaction()
        for number in rng.integers(3_000, size=rng.integers(1, 1_000)).tolist():
            entity, metric = f"h{number % 300}", f"m{number // 300}"
            kind = "anomaly" if rng.random() < 0.3 else "normal"
            value = None if rng.random() < 0.05 else orjson.dumps(state(entity, metric, n, kind, float(n % 100)))
            key = orjson.dumps({"entity": entity, "metric": metric})
            producer.produce(settings.topic(topics.STATE), value, key=key, partition=crc32(entity) % PARTITIONS)
        producer.flush()
        producer.abort_transaction() if n % 5 == 0 else producer.commit_transaction()
        if stop.wait(0.2):
            return


def folded(settings: Settings) -> dict[tuple[str, str], dict[str, Any]]:
    """The last committed value of each key of the topic; keys with a tombstone are left out."""
    reader = Consumer(
        {"bootstrap.servers": settings.kafka.bootstrap, "group.id": "fold", "enable.partition.eof": True}
        | {"isolation.level": "read_committed", "enable.auto.commit": False}
    )
    reader.assign([TopicPartition(settings.topic(topics.STATE), n, 0) for n in range(PARTITIONS)])
    last: dict[bytes, bytes | None] = {}
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = reader.poll(5)
        if message.error():
            ended.add(message.partition())
        else:
            last[message.key()] = message.value()
    reader.close()
    states = [orjson.loads(value) for value in last.values() if value]
    return {(each["host.name"], each["metric"]): each for each in states}
