"""`newnormal notify run` as a process on a real topic: killed, stopped, started again; what its receiver got."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from pipelines.contracts import topics
from pipelines.contracts.records import Incident
from pipelines.contracts.settings import load
from pipelines.notify.status import notifier
from tests.pipelines.notify.receivers import HttpReceiver, http_receiver, incident, until

pytestmark = [pytest.mark.servers, pytest.mark.timeout(180)]
COMMAND = [sys.executable, "-m", "pipelines.cli.main", "notify", "run", "--as", "v1"]
ENV = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}


class Site:
    """A topic of incidents, and processes that tell of them."""

    def __init__(self, endpoints: Endpoints, folder: Path, receiver: HttpReceiver, channels: str = "") -> None:
        self.namespace, self.folder = f"tell{uuid.uuid4().hex[:8]}.", folder
        self.topic = self.namespace + topics.INCIDENTS
        ensure_topics(endpoints.bootstrap, {self.topic: topics.config(topics.INCIDENTS)}, 3)
        (folder / "newnormal.toml").write_text(
            f'namespace = "{self.namespace}"\n'
            f'[kafka]\nbootstrap = "{endpoints.bootstrap}"\n'
            '[notify]\nport = 0\nrate = 10000\nper = "1s"\n'
            + (channels or f'[notify.channels.hook]\nkind = "webhook"\nurl = "{receiver.url}"\n')
        )
        self.settings = load(namespace=self.namespace, state_dir=folder / "state")
        self.producer = Producer({"bootstrap.servers": endpoints.bootstrap, "linger.ms": 0})

    def write(self, found: Iterable[Incident]) -> None:
        for each in found:
            self.producer.produce(self.topic, each.to_json(), key=each.id.encode())
        self.producer.flush()

    def start(self) -> subprocess.Popen[str]:
        environment = ENV | {"NEWNORMAL_STATE_DIR": str(self.folder / "state")}
        process = subprocess.Popen(
            COMMAND, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = process.stdout.readline() if process.stdout else ""
        assert re.match("telling [a-z, ]+ of incidents of v1", line), (
            line,
            process.communicate()[1] if not line else "",
        )
        self.metrics = line[line.index("http://") :].split()[0]
        return process

    def sent(self) -> tuple[int, int]:
        """How many messages the channel took, by the metrics and by the file that `newnormal status` reads."""
        with urllib.request.urlopen(self.metrics) as answer:
            line = next(line for line in answer.read().decode().splitlines() if "notify_sent_total{" in line)
        process = notifier(self.settings)
        return round(float(line.split()[-1])), process.channels[0].sent if process else -1


def test_what_lasts_is_told_at_the_start_and_what_came_and_went_meanwhile_at_the_next(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    with http_receiver() as receiver:
        site = Site(endpoints, tmp_path, receiver)
        site.write([incident("over"), incident("lasts"), incident("over", "resolved", revision=1)])
        process = site.start()
        until(lambda: len(receiver.got) == 1)
        until(lambda: site.sent() == (1, 1))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 0 and "Traceback" not in said
        assert notifier(site.settings) is None
        site.write([incident("brief"), incident("brief", "resolved", revision=1)])
        process = site.start()
        until(lambda: len(receiver.got) == 2)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert [body["id"] for body in receiver.bodies] == ["lasts:1:opened", "brief:1:resolved"]


@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_after_kill_9_nothing_is_missing_and_what_is_sent_again_has_the_same_id(
    endpoints: Endpoints, tmp_path: Path, kills: int
) -> None:
    """Incidents open, end and come back while the process is killed; only the topic says what must have been told."""
    dice, over = random.Random(3), threading.Event()
    last: dict[str, Incident] = {}
    with http_receiver() as receiver:

        def slow_and_busy(number: int) -> tuple[int, dict[str, str], str]:
            time.sleep(0.01)
            return (503, {}, "") if number % 40 == 0 else (200, {}, "")

        receiver.answers = slow_and_busy
        site = Site(endpoints, tmp_path, receiver)

        def live() -> None:
            while not over.is_set():
                name = f"i{dice.randrange(25):02}"
                now = last.get(name)
                again = 0 if now is None else now.reopenings + (now.status == "resolved")
                status = "resolved" if now and now.status != "resolved" else "reopened" if again else "open"
                revision = now.revision + 1 if now else 0
                last[name] = incident(name, status, reopenings=again, revision=revision)
                site.write([last[name]])
                time.sleep(0.02)

        writing = threading.Thread(target=live)
        for number in range(kills):
            process, before = site.start(), len(receiver.got)
            if number == 0:  # what is over at the first start is not told
                writing.start()
            until(lambda before=before: len(receiver.got) > before + 15)  # type: ignore[misc]
            process.kill()
            process.communicate()
        over.set()
        writing.join()
        process = site.start()
        until(lambda: finally_told(receiver) == {name: each.status == "resolved" for name, each in last.items()})
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        got = [body["id"] for body in receiver.bodies]
    repeated = {name: count for name, count in Counter(got).items() if count > 1}
    assert sum(repeated.values()) - len(repeated) <= kills, "only a message that a kill interrupted is sent again"
    interrupted = 0
    for name, states in by_incident(got).items():
        twice = [a for a, b in pairwise(states) if a == b]
        interrupted += twice.count("resolved")
        assert set(twice) <= {"reopened", "resolved"}, (name, states)  # its end in between was missed while nothing ran
        assert states[0] in ("opened", "resolved")
    assert interrupted <= kills, "an end is told twice only if a kill stopped the message that it had begun again"


def by_incident(ids: Iterable[str]) -> dict[str, list[str]]:
    """The states that were told of each incident, in order, each message once."""
    found: dict[str, list[str]] = defaultdict(list)
    for each in dict.fromkeys(ids):
        name, _, state = each.split(":")
        found[name].append(state)
    return found


def finally_told(receiver: HttpReceiver) -> dict[str, bool]:
    """For each incident whether the last message said that it is over."""
    return {name: states[-1] == "resolved" for name, states in by_incident(b["id"] for b in receiver.bodies).items()}
