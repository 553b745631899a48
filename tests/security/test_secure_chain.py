"""The whole chain on a Kafka with TLS, a login and exactly the ACLs listed, and an Elasticsearch behind TLS and a key.

Afterwards no file, output, command line or environment of the run shows a secret.
"""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.address import kafka_options
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.settings import Settings, load
from pipelines.jobs import LINKS
from pipelines.runtime.acls import Acl, needed, of_agents, of_operators
from tests.security.broker import SecureKafka
from tests.security.elasticsearch_proxy import Guard, guarded_elasticsearch
from tests.security.waiting import until

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

NAMESPACE = "safe."
WORDS = {"chain": 'hush-Chain "1" \\ word', "operator": "hush-Operator-2-word", "agent": "hush-Agent-3-word"}
KEY = "aHVzaC1FbGFzdGljOmNoYWlu"
SECRETS = [*WORDS.values(), KEY, *(base64.b64encode(word.encode()).decode() for word in WORDS.values())]
SECRETS += [word.replace("\\", "\\\\").replace('"', '\\"') for word in WORDS.values()]
JOBS = tuple(name for name, link in LINKS.items() if not link.needs)
MACHINES, METRICS, WINDOWS, STEP, SPIKE = 4, 3, 60, 2_000, 50


class Site:
    """Settings and processes of the test."""

    def __init__(self, folder: Path, kafka: SecureKafka, guard: Guard, ca: Path) -> None:
        self.folder, self.kafka, self.guard, self.ca = folder, kafka, guard, ca
        self.outputs, self.processes = list[str](), list[subprocess.Popen[bytes]]()
        self.log = folder / "driver.log"
        for user, word in WORDS.items():
            kafka.scram(user, word)
            (folder / f"{user}.word").write_text(f"{word}\n")
        (folder / "key").write_text(KEY)

    def given(self, user: str) -> dict[str, str]:
        return {
            "kafka.bootstrap": self.kafka.sasl,
            "kafka.security_protocol": "SASL_SSL",
            "kafka.sasl_username": user,
            "kafka.sasl_password_file": str(self.folder / f"{user}.word"),
            "kafka.ssl_ca_file": str(self.kafka.authority.file),
            "elasticsearch.url": self.guard.url,
            "elasticsearch.api_key_file": str(self.folder / "key"),
            "elasticsearch.ca_file": str(self.ca),
            "console.port": "0",
            "namespace": NAMESPACE,
            "state_dir": str(self.folder / "state"),
        }

    def settings(self, user: str) -> Settings:
        return load(**self.given(user))

    def environment(self, user: str) -> dict[str, str]:
        named = {f"NEWNORMAL_{name.replace('.', '__').upper()}": value for name, value in self.given(user).items()}
        return os.environ | named | {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}

    def command(self, *words: str, user: str = "operator", code: int | None = 0) -> str:
        full = [sys.executable, "-m", "pipelines.cli.main", *words]
        done = subprocess.run(
            full, env=self.environment(user), capture_output=True, text=True, timeout=300, check=False
        )
        self.outputs.append(done.stdout + done.stderr)
        assert code is None or done.returncode == code, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout + done.stderr

    def start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            words = [sys.executable, "-m", "pipelines.cli.main", "run", *JOBS]
            process = subprocess.Popen(words, env=self.environment("chain"), stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def documents(self) -> list[dict[str, Any]]:
        with elasticsearch_client(self.settings("chain").elasticsearch.url or "", request_timeout=30) as client:
            if not client.indices.exists_alias(name=f"{NAMESPACE}novelties"):
                return []
            client.indices.refresh(index=f"{NAMESPACE}novelties")
            found = client.search(index=f"{NAMESPACE}novelties", size=9_000)
            return [hit["_source"] for hit in found["hits"]["hits"]]


@pytest.fixture
def site(secure: SecureKafka, endpoints: Endpoints, tmp_path: Path) -> Iterator[Site]:
    mine = secure.authority.issue("elasticsearch")
    with guarded_elasticsearch(endpoints.elasticsearch_url, mine, Guard("nobody", "x", KEY)) as guard:
        site = Site(tmp_path, secure, guard, secure.authority.file)
        try:
            yield site
        finally:
            for process in site.processes:
                process.terminate()
            for process in site.processes:
                process.wait(120)


def allow(kafka: SecureKafka, user: str, acls: list[Acl]) -> None:
    kafka.allow(user, [_acl(acl) for acl in acls])


def _acl(acl: Acl) -> tuple[str, str, bool, str]:
    return acl.resource, acl.name, acl.prefix, acl.operation


def lines(begin: int, first: int, last: int) -> Iterator[tuple[str, str]]:
    """Samples of windows, quiet but for one; host and JSON."""
    for window in range(first, last):
        for at in range(begin + window * 10_000, begin + (window + 1) * 10_000, STEP):
            for machine in range(MACHINES):
                for metric in range(METRICS):
                    noise = random.Random(f"{at}-{machine}-{metric}").gauss(50, 1)
                    odd = (machine, metric, window) == (2, 1, SPIKE)
                    value = 400.0 if odd else noise
                    record = {"@timestamp": at, "host.name": f"m{machine}", "metric": f"x{metric}", "value": value}
                    yield f"m{machine}", json.dumps(record)


def test_the_chain_runs_with_exactly_the_listed_acls_and_shows_no_secret(site: Site) -> None:
    chain = site.settings("chain")
    acls = needed(chain, JOBS)
    without = Acl("topic", f"{NAMESPACE}features", "Write")
    assert without in acls
    allow(site.kafka, "chain", [acl for acl in acls if acl != without])
    allow(site.kafka, "operator", of_operators(chain))
    allow(site.kafka, "agent", of_agents(chain))

    refused = site.command("run", *JOBS, user="chain", code=2)
    assert "KAFKA_NOT_ALLOWED" in refused
    assert f"Write on {NAMESPACE}features" in refused
    assert "newnormal acls" in refused

    begin = (int(time.time() * 1000) - (WINDOWS + 10) * 10_000) // 10_000 * 10_000
    producer = Producer(kafka_options(site.settings("agent").kafka.bootstrap or ""))

    def send(first: int, last: int) -> None:
        for host, line in lines(begin, first, last):
            producer.produce(f"{NAMESPACE}{topics.RAW_JSON}", line, host)
        assert producer.flush(60) == 0

    send(0, WINDOWS)
    allow(site.kafka, "chain", [without])
    process = site.start()
    send(WINDOWS + 3, WINDOWS + 4)  # lets the watermark pass the last window
    expected = MACHINES * METRICS * WINDOWS

    def judged() -> bool:
        assert process.poll() is None, site.log.read_text()[-6000:]
        return len(inside(site.documents(), begin)) >= expected

    until("all windows are in Elasticsearch", judged, 900)
    of_run = children(process.pid)
    for words in (
        ["status"],
        ["doctor"],
        ["versions"],
        ["explain-job", "extractor"],
        ["services", "status"],
        ["tail", "novelties", "--limit", "3"],
        ["acls"],
    ):
        site.command(*words, code=None if words[0] in ("doctor", "tail", "services") else 0)

    found = inside(site.documents(), begin)
    counts = Counter((each["host.name"], each["metric"], each["window_start"]) for each in found)
    assert len(counts) == expected and set(counts.values()) == {1}, "each window has one verdict"
    worst = max(found, key=lambda each: float(each["record_score"]))
    assert (worst["host.name"], worst["metric"], worst["window_start"]) == ("m2", "x1", begin + SPIKE * 10_000)
    assert site.guard.refused == 0

    process.terminate()
    process.wait(180)
    assert_no_secret(site, of_run)


def inside(documents: list[dict[str, Any]], begin: int) -> list[dict[str, Any]]:
    """The verdicts of the windows with samples."""
    end = begin + WINDOWS * 10_000
    return [each for each in documents if begin <= each["window_start"] < end and each["metric"][0] == "x"]


def children(pid: int) -> dict[str, str]:
    """Command lines and environments of a process and its descendants."""
    root = psutil.Process(pid)
    shown = {}
    for process in [root, *root.children(recursive=True)]:
        try:
            shown[f"{process.pid}"] = f"{process.cmdline()} {process.environ()}"
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    assert len(shown) > 1, "Spark's JVM at least"
    return shown


def assert_no_secret(site: Site, of_run: dict[str, str]) -> None:
    """No secret in any file of the state directory, log, output, command line or environment."""
    own = {site.folder / f"{user}.word" for user in WORDS} | {site.folder / "key"}
    places = {f"process {pid}": text.encode() for pid, text in of_run.items()}
    places |= {f"output {n}": text.encode() for n, text in enumerate(site.outputs)}
    files = [file for file in site.folder.rglob("*") if file.is_file() and file not in own]
    assert any("spark.log" in file.name for file in files) and any("checkpoints" in str(file) for file in files)
    places |= {str(file): file.read_bytes() for file in files}
    found = [where for where, content in places.items() if any(secret.encode() in content for secret in SECRETS)]
    assert not found
