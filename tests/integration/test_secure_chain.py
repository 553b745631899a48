"""The whole chain on a Kafka and an Elasticsearch that want logins and TLS.

Logins are refused, certificates expire and permissions are taken away, before a start and under load. Each of these is
told with its code, and once it is mended the output is whole, counted independently. No secret stands anywhere.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from deploy.embedded.endpoints import Endpoints
from pipelines.contracts import topics
from pipelines.contracts.settings import load
from pipelines.runtime import processes as running
from tests.chaos.feed import HOSTS, METRICS, WINDOW, Feed
from tests.chaos.verify import verify
from tests.chaos.watching import health, results
from tests.integration.conftest import Pipeline
from tests.security.broker import PASSWORD, USER, SecureKafka, secure_kafka
from tests.security.elasticsearch_proxy import Guard, guarded_elasticsearch
from tests.security.leaks import files, leaks, processes
from tests.security.tokens import Provider, token_server

pytestmark = [
    pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(3000),
]  # fmt: skip  # long until it has been seen through on a quiet machine

AGENT, MUTUAL, ROBOT = "agent", "by-certificate", "by-token"
AGENT_PASSWORD, WRONG, OTHER = "hush-agent-word", "hush-wrong-word", "hush-other-word"
KEY, OAUTH_SECRET = "aHVzaC1FbGFzdGljOmtleQ==", "hush-oauth-word"
JOBS = ("normalizer", "extractor", "detector", "incidents", "sink")
"""The chain of the metrics; that of the logs is not fed here."""
SECONDS = 600.0
"""The longest wait for anything; most take a few seconds on a machine that does nothing else."""


@dataclass
class Site:
    """A pipeline, not started, whose servers want logins.

    Attributes:
        pipeline: The pipeline. Its settings have no logins: they serve the verifier, which nobody refuses.
        kafka: The broker.
        elastic: What stands before Elasticsearch.
        provider: Gives tokens for OAUTHBEARER.
        words: Folder of the files with secrets.
        secrets: All secrets, also the wrong ones, and the lines of private keys.
    """

    pipeline: Pipeline
    kafka: SecureKafka
    elastic: Guard
    provider: Provider
    words: Path
    secrets: list[str]

    def word(self, secret: str) -> str:
        """The path of a file that holds a secret."""
        file = self.words / f"word-{abs(hash(secret))}"
        file.write_text(f"{secret}\n")
        file.chmod(0o600)
        return str(file)

    def logs_in(self, **settings: str) -> None:
        """Changes settings of the pipeline: `kafka__bootstrap="a:1"`; an empty value is that of the default."""
        for name, value in settings.items():
            self.pipeline.environment[f"NEWNORMAL_{name.upper()}"] = value

    def refused(self, **settings: str) -> str:
        """Starts the pipeline with other settings, which must be refused; returns the message."""
        before = dict(self.pipeline.environment)
        self.logs_in(**settings)
        said = self.pipeline.refused("run", *JOBS)
        self.pipeline.environment = before
        assert "Traceback" not in said
        with self.pipeline.log.open("a") as log:
            log.write(said)
        return said

    def permit(self, user: str, *of: str) -> None:
        """Gives a user what `newnormal acls` lists, and nothing else."""
        listed = [json.loads(line) for line in self.pipeline.command("acls", *of, "--json").splitlines()]
        assert listed
        self.kafka.allow(user, ((a["resource"], a["name"], a["prefix"], a["operation"]) for a in listed))

    def says(self, *words: str) -> None:
        """Waits until the pipeline's health names a trouble."""

        def told() -> bool:
            status, text = health(self.pipeline)
            return status == 503 and all(word in text for word in words)

        self.pipeline.wait(f"health that names {words}", told, SECONDS)

    def goes_on(self) -> None:
        """Waits until the pipeline is healthy and has written something new."""
        before = results(self.pipeline)
        self.pipeline.wait("a result", lambda: results(self.pipeline) > before, SECONDS)
        self.pipeline.wait("health", lambda: health(self.pipeline)[0] == 200, SECONDS)

    def run_to_end(self) -> None:
        """Processes what the topics hold now."""
        process = self.pipeline.spawn("run", *JOBS, "--until", "now")
        assert process.wait(SECONDS) == 0, self.pipeline.log.read_text()[-4000:]


@pytest.fixture
def site(endpoints: Endpoints, tmp_path: Path) -> Iterator[Site]:
    """Servers that want logins, and a pipeline with files of its own."""
    name, place = f"secure{time.time_ns() % 10**9}.", tmp_path / "pipeline"
    for folder in ("kafka", "words", "pipeline/tmp"):
        (tmp_path / folder).mkdir(parents=True)
    with ExitStack() as stack:
        kafka = stack.enter_context(secure_kafka(tmp_path / "kafka"))
        mine = kafka.authority.issue("elasticsearch")
        guard = Guard("nobody", "hush-nobody", KEY)
        elastic = stack.enter_context(guarded_elasticsearch(endpoints.elasticsearch_url, mine, guard))
        provider = stack.enter_context(token_server(Provider(kafka.signer, ROBOT, OAUTH_SECRET)))
        given = {"namespace": name, "state_dir": place / "state", "detector.emit": "all"}
        plain = {"kafka.bootstrap": kafka.internal, "elasticsearch.url": endpoints.elasticsearch_url}
        environment = os.environ | {
            "NEWNORMAL_NAMESPACE": name,
            "NEWNORMAL_STATE_DIR": str(place / "state"),
            "NEWNORMAL_DETECTOR__EMIT": "all",  # the verifier wants a verdict on each window
            "NEWNORMAL_CONSOLE__PORT": "0",
            "TMPDIR": str(place / "tmp"),
        }
        pipeline = Pipeline(load(**given, **plain), place / "driver.log", environment)
        secrets = [PASSWORD, AGENT_PASSWORD, WRONG, OTHER, KEY, OAUTH_SECRET]
        made = Site(pipeline, kafka, elastic, provider, tmp_path / "words", secrets)
        ca = str(kafka.authority.file)
        made.logs_in(kafka__bootstrap=kafka.sasl, kafka__security_protocol="SASL_SSL", kafka__ssl_ca_file=ca)
        made.logs_in(kafka__sasl_username=USER, kafka__sasl_password_file=made.word(PASSWORD))
        made.logs_in(elasticsearch__url=elastic.url, elasticsearch__ca_file=ca)
        made.logs_in(elasticsearch__api_key_file=made.word(KEY))
        stack.callback(pipeline.stop)
        yield made


def test_the_chain_is_whole_after_refused_logins_expired_certificates_and_missing_acls(site: Site) -> None:
    pipeline, kafka = site.pipeline, site.kafka
    for user in (USER, MUTUAL, ROBOT):
        site.permit(user, *JOBS)
    site.permit(AGENT, "agents")
    kafka.scram(AGENT, AGENT_PASSWORD)
    pipeline.start(*JOBS)
    pipeline.wait("the jobs", lambda: pipeline.log.read_text().count("job started") >= len(JOBS), SECONDS)
    begin = (int(time.time() * 1000) - 3 * 3_600_000) // WINDOW * WINDOW
    feed = Feed(agents_address(site), pipeline.settings.topic(topics.RAW_JSON), begin)
    feed.start()
    pipeline.wait("the first documents", lambda: len(pipeline.documents()) > HOSTS * METRICS, SECONDS)
    pipeline.wait("health", lambda: health(pipeline)[0] == 200, SECONDS)
    said = pipeline.log.read_text()
    assert "NOT_ALLOWED" not in said and "uthorization" not in said, "the ACLs that are listed suffice"

    troubles_under_load(site)
    assert not leaks(site.secrets, shown_by(site)), "a process shows a secret"
    pipeline.stop()
    assert "Traceback" not in pipeline.log.read_text()
    refused_starts(site)

    by_certificate(site)
    site.run_to_end()
    end = feed.finish()
    by_token(site)
    site.run_to_end()
    assert set(site.provider.scopes) == {"kafka"}
    counted = verify(pipeline, begin, end)
    assert counted["documents"] == (end - begin) // WINDOW * HOSTS * METRICS
    assert site.elastic.forwarded > 0

    nothing_stands_in_files(site)


def agents_address(site: Site) -> str:
    """The brokers, for an agent that may write what agents write."""
    login = {"sasl_username": AGENT, "sasl_password": AGENT_PASSWORD, "ssl_ca_file": str(site.kafka.authority.file)}
    given = {"bootstrap": site.kafka.sasl, "security_protocol": "SASL_SSL", **login}
    return load(**{f"kafka.{name}": value for name, value in given.items()}).kafka.bootstrap or ""


def troubles_under_load(site: Site) -> None:
    """Takes away what the pipeline needs, while records come, and gives it back."""
    kafka, prefix = site.kafka, site.pipeline.settings.namespace
    # the password is another one now; the broker that ends cuts the connections that had been let in
    kafka.scram(USER, OTHER)
    kafka.kill()
    kafka.start()
    site.says("kafka", "KAFKA_LOGIN_REFUSED")
    kafka.scram(USER, PASSWORD)
    site.goes_on()

    # the broker's certificate has expired
    kafka.show(kafka.authority.issue("expired", expired=True))
    kafka.kill()
    kafka.start()
    site.says("kafka", "KAFKA_TLS_FAILED", "certificate has expired")
    kafka.show(kafka.authority.issue("renewed"))
    kafka.kill()
    kafka.start()
    site.goes_on()

    # ACLs are gone: to write as a job, and to write to its topic
    for acl in (
        ("transactional-id", f"{prefix}detector.writer", True, "Write"),
        ("topic", f"{prefix}{topics.FEATURES}", False, "Write"),
    ):
        kafka.forbid(USER, acl)
        job = "detector" if "detector" in acl[1] else "extractor"
        site.says(f"{job}: failed and will restart", "KAFKA_NOT_ALLOWED", "newnormal acls")
        kafka.allow(USER, [acl])
        site.goes_on()

    site.elastic.api_key = "another"
    site.says("elasticsearch", "ELASTICSEARCH_REFUSED", "401")
    site.elastic.api_key = KEY
    site.goes_on()


def refused_starts(site: Site) -> None:
    """Starts that cannot work: each ends at once, with its code and what to do."""
    kafka, ca = site.kafka, site.kafka.authority
    said = site.refused(kafka__sasl_password_file=site.word(WRONG))
    assert "KAFKA_LOGIN_REFUSED" in said and "kafka.sasl_" in said and "nothing was started" in said
    said = site.refused(kafka__bootstrap=kafka.expired)
    assert "KAFKA_TLS_FAILED" in said and "certificate has expired" in said and "kafka.ssl_ca_file" in said
    acl = ("topic", site.pipeline.settings.topic(topics.NOVELTIES), False, "Write")
    kafka.forbid(USER, acl)
    said = site.refused()
    assert "KAFKA_NOT_ALLOWED" in said and f"Write on {acl[1]}" in said and "newnormal acls" in said
    kafka.allow(USER, [acl])
    said = site.refused(elasticsearch__api_key_file=site.word(WRONG))
    assert "ELASTICSEARCH_REFUSED" in said and "elasticsearch.api_key" in said and "nothing was started" in said
    old = ca.issue("old-elasticsearch", expired=True)
    with guarded_elasticsearch(site.elastic.url, old, Guard("", "", KEY)) as late:
        said = site.refused(elasticsearch__url=late.url)
    assert "ELASTICSEARCH_TLS_FAILED" in said and "expired" in said and "elasticsearch.ca_file" in said


def by_certificate(site: Site) -> None:
    """The pipeline logs in with its certificate from now on."""
    mine = site.kafka.authority.issue(MUTUAL)
    site.secrets += [line for line in mine.key.read_text().splitlines() if len(line) > 40]
    site.logs_in(kafka__bootstrap=site.kafka.mutual, kafka__security_protocol="SSL")
    site.logs_in(kafka__ssl_certificate_file=str(mine.certificate), kafka__ssl_key_file=str(mine.key))
    for name in ("kafka__sasl_username", "kafka__sasl_password_file"):
        del site.pipeline.environment[f"NEWNORMAL_{name.upper()}"]


def by_token(site: Site) -> None:
    """The pipeline logs in with tokens of an identity provider from now on."""
    for name in ("kafka__ssl_certificate_file", "kafka__ssl_key_file"):
        del site.pipeline.environment[f"NEWNORMAL_{name.upper()}"]
    site.logs_in(kafka__bootstrap=site.kafka.sasl, kafka__security_protocol="SASL_SSL")
    site.logs_in(kafka__sasl_mechanism="OAUTHBEARER", kafka__oauth_token_url=site.provider.url)
    site.logs_in(kafka__oauth_client_id=ROBOT, kafka__oauth_client_secret_file=site.word(OAUTH_SECRET))
    site.logs_in(kafka__oauth_scope="kafka")


def nothing_stands_in_files(site: Site) -> None:
    """No secret stands in logs, state, checkpoints, topics or documents; each is found where it does stand."""
    looked, place = list[str](), site.pipeline.log.parent
    kafka = [site.kafka.log, *(site.kafka.folder / "log").rglob("*.log")]  # its other files are indices of these

    def written() -> Iterator[tuple[str, bytes]]:
        for name, content in files(place, *kafka):
            looked.append(name)
            yield name, content
        yield "documents", json.dumps(site.pipeline.documents()).encode()

    assert not leaks(site.secrets, written()), "a file shows a secret"
    assert len(looked) > 100
    assert {str(site.pipeline.log), str(place / "state" / "logs" / "spark.log"), str(site.kafka.log)} <= set(looked)
    words = list(site.words.iterdir())
    assert len(leaks(site.secrets, files(*words))) == len(words)


def shown_by(site: Site) -> Iterable[tuple[str, bytes]]:
    """What the running pipeline shows of itself: its processes, its pages, and what commands say of it."""
    pipeline = site.pipeline
    assert pipeline.process
    yield from processes(pipeline.process.pid)
    url = running.job_processes(pipeline.settings)[0].url
    for path in ("/health", "/metrics", "/api/status", "/api/incidents"):
        yield path, httpx.get(url + path, timeout=20).content
    for command in ("doctor", "status"):
        yield command, pipeline.said(command).encode()
