"""Spark's Kafka source logs in in all ways, as the other clients do; neither its log nor its plans show a secret."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from deploy.artifacts import spark_jars
from deploy.java import java_home
from engine.address import kafka_options
from engine.kafka.admin import ensure_topics
from engine.kafka.asking import problem
from engine.spark.query import Runtime, read
from engine.spark.session import end, spark_session
from pipelines.contracts.settings import load
from tests.security.broker import PASSWORD, USER, SecureKafka
from tests.security.token_server import token_server

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

CLIENT, WORD = "robot", "hush-token-client-word"
LATEST = 60.0


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of Spark."""
    return tmp_path_factory.mktemp("spark") / "spark.log"


@pytest.fixture(scope="module")
def spark(log: Path) -> Iterator[SparkSession]:
    """A session that logs all that it can."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")]))
        session = spark_session(spark_jars(), java_home(), 1, log.parent, "1g", log=log)
    session.sparkContext.setLogLevel("DEBUG")
    yield session
    end(session)


def ways(secure: SecureKafka) -> dict[str, dict[str, Any]]:
    """The ways to log in without tokens."""
    mine = secure.authority.issue("machine")
    ca = {"kafka.ssl_ca_file": str(secure.authority.file)}
    user = ca | {
        "kafka.bootstrap": secure.sasl,
        "kafka.security_protocol": "SASL_SSL",
        "kafka.sasl_username": USER,
        "kafka.sasl_password": PASSWORD,
    }
    found = {name: user | {"kafka.sasl_mechanism": name} for name in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")}
    mutual = {
        "kafka.bootstrap": secure.mutual,
        "kafka.security_protocol": "SSL",
        "kafka.ssl_certificate_file": str(mine.certificate),
        "kafka.ssl_key_file": str(mine.key),
    }
    return {**found, "mutual": ca | mutual}


class Source:
    """Reads a topic with Spark, and keeps what Spark shows of it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder, self.shown = spark, folder, list[str]()

    def rows(self, name: str, address: str) -> list[bytes]:
        """The messages of the topic ``shared``; one query for each name."""
        rows: list[bytes] = []

        def keep(batch: DataFrame, _: int) -> None:
            rows.extend(bytes(row.value) for row in batch.collect())

        frame = read(self._spark, ["shared"], Runtime(address, self._folder), 1_000)
        self.shown.append(frame._jdf.queryExecution().toString())
        place = str(self._folder / "checkpoints" / name)
        query = frame.writeStream.option("checkpointLocation", place).foreachBatch(keep)
        running = query.trigger(availableNow=True).start()
        try:
            assert running.awaitTermination(300)
        finally:
            self.shown.append(f"{running.lastProgress} {running.exception()}")
            running.stop()
        return rows

    def everything(self) -> str:
        """Plans, reports, and files of the checkpoints."""
        files = [file for file in (self._folder / "checkpoints").rglob("*") if file.is_file()]
        assert files
        return "".join([*self.shown, *(file.read_text(errors="replace") for file in files)])


def test_both_clients_log_in_in_all_ways_and_spark_shows_no_secret(
    secure: SecureKafka, spark: SparkSession, log: Path, tmp_path: Path
) -> None:
    ensure_topics(secure.internal, {"shared": {}}, partitions=1)
    for user in (USER, "machine", CLIENT):
        secure.allow(user, [("topic", "shared", False, each) for each in ("read", "write")])
    source = Source(spark, tmp_path)
    for name, way in ways(secure).items():
        address = load(**way).kafka.bootstrap or ""
        written(name, address)
        assert name.encode() in source.rows(name, address)
    with token_server(CLIENT, WORD) as tokens:
        address = load(
            **{
                "kafka.ssl_ca_file": str(secure.authority.file),
                "kafka.bootstrap": secure.sasl,
                "kafka.security_protocol": "SASL_SSL",
                "kafka.sasl_mechanism": "OAUTHBEARER",
                "kafka.oauth_token_url": tokens.url,
                "kafka.oauth_client_id": CLIENT,
                "kafka.oauth_client_secret": WORD,
                "kafka.oauth_scope": "kafka",
            }
        ).kafka.bootstrap
        written("OAUTHBEARER", address or "")
        assert tokens.given > 0
        # the embedded broker takes tokens without a signature only, and Spark's client refuses these once it has one
        before = tokens.given
        with pytest.raises(StreamingQueryException):
            source.rows("OAUTHBEARER", address or "")
        assert tokens.given > before and tokens.refused == 0
    spark.sparkContext.setLogLevel("ERROR")
    text = log.read_text(errors="replace") + source.everything()
    assert "sasl.mechanism = SCRAM-SHA-512" in text, "the log has the options of the clients"
    for secret in (PASSWORD, PASSWORD.replace("\\", "\\\\").replace('"', '\\"'), WORD, "PRIVATE KEY"):
        assert secret not in text


def written(name: str, address: str) -> None:
    """Writes one message with the Python client."""
    assert problem(address, LATEST) is None, name
    producer = Producer(kafka_options(address))
    producer.produce("shared", name.encode())
    assert producer.flush(LATEST) == 0, name
