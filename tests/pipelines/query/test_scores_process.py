"""Scores of a view that follows a real Kafka: its process is killed and goes on; our gateway takes what it pushes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx
import orjson
import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.columns.partitioning import crc32
from engine.formats import columnar
from pipelines.contracts import topics
from pipelines.contracts.records import News
from pipelines.contracts.settings import Settings, load
from pipelines.gateway.serving import Gateway
from tests.pipelines.gateway.broker import samples
from tests.pipelines.query.remote_write_receiver import Receiver
from tests.pipelines.query.stored_scores import Message, Stored, history, said
from tests.pipelines.query.test_scores_pushed import pushed, sender, truth
from tests.pipelines.query.view_topics import PARTITIONS, STEP, T0, produce, until, with_topics

pytestmark = pytest.mark.servers


@pytest.fixture
def mine(endpoints: Endpoints, tmp_path: Path) -> Settings:
    return with_topics(endpoints, tmp_path)


def write(settings: Settings, beliefs: Sequence[Message], verdicts: Sequence[Message], windows: range) -> None:
    """Writes what was said of some windows, and that they are judged."""
    ends = {T0 + (number + 1) * STEP for number in windows}
    produce(settings, [each for each in beliefs if each["@timestamp"] in ends])
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap})
    for each in (each for each in verdicts if each["@timestamp"] in ends):
        partition = crc32(each["host.name"]) % PARTITIONS
        producer.produce(settings.topic(topics.NOVELTIES), orjson.dumps(each), partition=partition)
    producer.flush()
    mark = columnar.encode(News.arrow_schema().empty_table(), T0 + windows.stop * STEP)
    for partition in range(PARTITIONS):
        producer.produce(settings.topic(topics.NEWS), mark, partition=partition)
    producer.flush()


def test_our_own_gateway_takes_what_is_pushed_as_samples(mine: Settings, tmp_path: Path) -> None:
    view = Stored(tmp_path / "view")
    view.write([said("web-1", "disk{path=/}", 0, score=7.5, typical=2.0)], [], range(1))
    at_gateway = load(
        namespace=f"gw{mine.namespace}",
        state_dir=tmp_path / "gw",
        **{"kafka.bootstrap": mine.kafka.bootstrap, "gateway.port": 0, "input.machine": "machine"},
    )
    gateway = Gateway(at_gateway)
    with sender(view, f"{gateway.url}/api/v1/write") as one:
        pushed(one, 0)
        assert (one.sent.samples, one.sent.refused) == (4, 0)
    gateway.close()
    inside = "{metric=disk{path=/},tag_path=/,version=v1}"
    assert [each[:4] for each in samples(at_gateway)] == [
        (T0 + STEP, "web-1", f"newnormal_{name}{inside}", value)
        for name, value in (("incidents_open", 0.0), ("score", 7.5), ("state_score", 0.0), ("typical", 2.0))
    ]


def test_the_process_pushes_with_its_header_resumes_after_a_kill_and_a_scrape_says_how_far(
    mine: Settings, tmp_path: Path
) -> None:
    beliefs, verdicts = history(12, 10, seed=4)
    receiver = Receiver()
    word = tmp_path / "word"
    word.write_text("Bearer a-token-of-ours\n")
    write(mine, beliefs, verdicts, range(3))
    process, url = started(mine, receiver, word)
    until(lambda: bool(receiver.statuses))
    write(mine, beliefs, verdicts, range(3, 6))
    until(lambda: T0 + 6 * STEP in times(receiver))
    process.send_signal(signal.SIGKILL)
    process.wait()
    write(mine, beliefs, verdicts, range(6, 12))
    process, url = started(mine, receiver, word)
    until(lambda: T0 + 12 * STEP in times(receiver))
    until(lambda: f"newnormal_scores_pushed_event_time_seconds {(T0 + 12 * STEP) / 1000!r}" in scraped(url))
    assert "newnormal_scores_push_failing 0.0" in scraped(url)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    receiver.close()
    assert receiver.faults == []
    assert (receiver.headers["authorization"], receiver.headers["x-scope-orgid"]) == ("Bearer a-token-of-ours", "mine")
    assert receiver.samples == truth(beliefs, verdicts, range(2, 12))


def times(receiver: Receiver) -> set[int]:
    return {each for told in list(receiver.samples.values()) for each in list(told)}


def scraped(url: str) -> str:
    return httpx.get(f"{url}/scores/metrics", timeout=30).raise_for_status().text


def started(settings: Settings, receiver: Receiver, word: Path) -> tuple[subprocess.Popen[str], str]:
    own = {"NAMESPACE": settings.namespace, "STATE_DIR": str(settings.state_dir), "VIEW__PORT": "0"}
    own |= {"KAFKA__BOOTSTRAP": settings.kafka.bootstrap or "", "SCORES__REMOTE_WRITE_URL": receiver.url}
    own |= {"SCORES__REMOTE_WRITE_AUTHORIZATION_FILE": str(word), "SCORES__REMOTE_WRITE_TENANT": "mine"}
    env = os.environ | {f"NEWNORMAL_{name}": value for name, value in own.items()}
    command = [sys.executable, "-m", "pipelines.cli.main", "view", "--as", "v1"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    line = process.stdout.readline()
    assert " at http://" in line, line
    assert process.stdout.readline() == f"scores are pushed to {receiver.url.removesuffix('/api/v1/write')}\n"
    return process, line.split(" at ")[1].split()[0]
