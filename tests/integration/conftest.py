"""A pipeline as a user runs it: `newnormal run` in a process of its own, on the session's real servers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from engine.kafka.content import content
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.settings import Settings, load


@dataclass
class Pipeline:
    """Starts, kills and watches `newnormal run`."""

    settings: Settings
    log: Path
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self, *jobs: str) -> None:
        """Starts jobs in one driver: all, or those named."""
        self.process = self.spawn("run", *jobs)

    def spawn(self, *command: str) -> subprocess.Popen[bytes]:
        """Starts a command of `newnormal` in a process of its own."""
        words = [sys.executable, "-m", "pipelines.cli.main", *command]
        with self.log.open("ab") as log:
            return subprocess.Popen(words, env=self.environment, stdout=log, stderr=log, start_new_session=True)

    def command(self, *command: str, seconds: float = 300) -> str:
        """Runs a command of `newnormal` to its end, which must be good; returns what it wrote to standard output."""
        words = [sys.executable, "-m", "pipelines.cli.main", *command]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=seconds, check=False)
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def kill(self) -> None:
        """Kills the driver with SIGKILL: no chance to tidy up."""
        assert self.process
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> None:
        """Ends it as Ctrl-C does."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(90)

    def refused(self, *command: str) -> str:
        """Runs a command of `newnormal` that must be refused; returns the message."""
        words = [sys.executable, "-m", "pipelines.cli.main", *command]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 2, f"{command}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stderr

    def said(self, *command: str) -> str:
        """Runs a command of `newnormal` to its end, however that is; returns all that it wrote."""
        words = [sys.executable, "-m", "pipelines.cli.main", *command]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=120, check=False)
        return done.stdout + done.stderr

    def wait(self, what: str, done: Callable[[], bool], seconds: float = 300) -> None:
        """Waits for a condition; fails with the driver's log when it does not come, or when the driver ends."""
        deadline = time.monotonic() + seconds
        while not done():
            running = self.process is not None and self.process.poll() is None
            if not running or time.monotonic() > deadline:
                pytest.fail(f"{what} did not happen (driver running: {running})\n{self.log.read_text()[-6000:]}")
            time.sleep(0.5)

    def read(self, topic: str) -> list[Any]:
        """All committed messages of a topic."""
        return list(content(self.settings.kafka.bootstrap or "", self.settings.topic(topic)))

    def documents(self, alias: str = "") -> list[dict[str, Any]]:
        """All documents behind an alias, by default that of verdicts, by Elasticsearch's own count and scroll."""
        client = elasticsearch_client(self.settings.elasticsearch.url or "", request_timeout=30)
        index, found = alias or self.settings.alias, []
        if not client.indices.exists_alias(name=index):
            return []
        client.indices.refresh(index=index)
        page = client.search(index=index, size=5000, scroll="1m", sort=["_doc"])
        while page["hits"]["hits"]:
            found += [hit["_source"] for hit in page["hits"]["hits"]]
            page = client.scroll(scroll_id=page["_scroll_id"], scroll="1m")
        client.close()
        return found

    def verdicts(self, topic: str = topics.NOVELTIES) -> list[dict[str, Any]]:
        """The newest revision of each verdict in the topic `novelties` of some version."""
        return list(self.final(topic).values())

    def final(self, topic: str = topics.NOVELTIES) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The newest revision of each verdict by its machine, metric and time."""
        newest = {}
        for message in self.read(topic):
            verdict = json.loads(message.value())
            newest[_identity(verdict)] = verdict
        return newest

    def all_indexed(self) -> bool:
        """Whether the newest revision of each verdict of the topic is in Elasticsearch."""
        return _revisions(self.documents()) == _revisions(self.verdicts())


def _identity(verdict: dict[str, Any]) -> tuple[Any, ...]:
    return verdict["host.name"], verdict["metric"], verdict["@timestamp"]


def _revisions(verdicts: list[dict[str, Any]]) -> dict[tuple[Any, ...], int]:
    return {_identity(verdict): verdict["revision"] for verdict in verdicts}


@pytest.fixture(autouse=True)
def brief_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark runs for a minute here: its JVM compiles once and simply, which takes less than it gains."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")


@pytest.fixture
def pipeline(endpoints: Endpoints, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pipeline]:
    """A pipeline with topics, index and state of its own; ended after the test."""
    name = f"it{abs(hash((request.node.name, time.time_ns()))) % 10**9}"
    state = tmp_path / "state"
    given = {
        "NEWNORMAL_NAMESPACE": f"{name}.",
        "NEWNORMAL_KAFKA__BOOTSTRAP": endpoints.bootstrap,
        "NEWNORMAL_ELASTICSEARCH__URL": endpoints.elasticsearch_url,
        "NEWNORMAL_STATE_DIR": str(state),
        "NEWNORMAL_CONSOLE__PORT": "0",
        "NEWNORMAL_DETECTOR__EMIT": "all",  # most of these tests compare the verdicts on all windows
    }
    settings = load(
        namespace=f"{name}.",
        state_dir=state,
        **{
            "kafka.bootstrap": endpoints.bootstrap,
            "elasticsearch.url": endpoints.elasticsearch_url,
            "detector.emit": "all",
        },
    )
    wanted = {settings.topic(n): c for n, c in topics.configs().items()}
    ensure_topics(endpoints.bootstrap, wanted, settings.kafka.partitions)
    running = Pipeline(settings, tmp_path / "driver.log", os.environ | given)
    try:
        yield running
    finally:
        running.stop()
