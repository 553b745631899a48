"""The downloaded jars: the pinned ones byte for byte, whole or not at all, and never downloaded twice."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer

from deploy import artifacts, checksums, ivy
from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from engine.kafka.content import content
from engine.spark.hadoop_path import HadoopPath
from engine.spec.errors import NewnormalError


def test_what_is_here_already_needs_neither_network_nor_ivy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(artifacts, "retrieve", lambda *_: pytest.fail("Ivy was started"))
    artifacts.SPARK.directory.mkdir(parents=True)
    (artifacts.SPARK.directory / "a.jar").touch()
    assert [jar.name for jar in artifacts.spark_jars()] == ["a.jar"]


def test_a_failed_download_is_explained_and_leaves_nothing_that_looks_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    empty = tmp_path / "settings.xml"
    repository = f'<filesystem name="none"><artifact pattern="{tmp_path}/none/[artifact].[ext]"/></filesystem>'
    empty.write_text(
        f'<ivysettings><settings defaultResolver="none"/><resolvers>{repository}</resolvers></ivysettings>'
    )
    monkeypatch.setenv("NEWNORMAL_IVY_SETTINGS", str(empty))
    monkeypatch.setattr(artifacts, "_ATTEMPTS", 1)
    with pytest.raises(NewnormalError) as failed:
        artifacts.spark_jars()
    assert failed.value.code == "DOWNLOAD_FAILED"
    assert "not found" in failed.value.what
    assert not artifacts.SPARK.directory.exists()


def mirror(place: Path, jars: list[Path]) -> Path:
    """A Maven repository with some of Spark's jars, and the Ivy settings that name it."""
    for artifact in artifacts.SPARK.artifacts:
        name = f"{artifact.name}-{artifact.version}"
        there = place / artifact.organisation.replace(".", "/") / artifact.name / artifact.version
        there.mkdir(parents=True)
        group = f"<groupId>{artifact.organisation}</groupId><artifactId>{artifact.name}</artifactId>"
        pom = f"<project><modelVersion>4.0.0</modelVersion>{group}<version>{artifact.version}</version></project>"
        (there / f"{name}.pom").write_text(pom)
        shutil.copy(next(jar for jar in jars if jar.name == f"{name}.jar"), there)
    settings = place / "settings.xml"
    resolver = f'<ibiblio name="mirror" m2compatible="true" root="{place.as_uri()}/"/>'
    settings.write_text(
        f'<ivysettings><settings defaultResolver="mirror"/><resolvers>{resolver}</resolvers></ivysettings>'
    )
    return settings


@pytest.mark.servers
def test_a_mirror_that_serves_one_changed_byte_is_refused_and_nothing_of_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = sorted(artifacts.ensure(artifacts.SPARK).glob("*.jar"))
    monkeypatch.setenv("NEWNORMAL_IVY_SETTINGS", str(mirror(tmp_path / "mirror", right)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    served = next((tmp_path / "mirror").rglob("commons-pool2-*.jar"))
    whole = served.read_bytes()
    served.write_bytes(whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:])
    with pytest.raises(NewnormalError) as refused:
        artifacts.spark_jars()
    assert refused.value.code == "DOWNLOAD_ALTERED"
    assert refused.value.what.startswith("commons-pool2-2.12.1.jar has SHA-512 ")
    assert not artifacts.SPARK.directory.exists()
    assert not list((tmp_path / "cache").rglob("*.jar"))
    (tmp_path / "right").mkdir()
    for jar in right:
        shutil.copy(jar, tmp_path / "right")
    checksums.check(tmp_path / "right", checksums.pinned(artifacts.SPARK.directory.name))


def test_a_file_that_is_missing_or_that_nobody_pinned_is_refused(tmp_path: Path) -> None:
    (tmp_path / "stranger.jar").write_bytes(b"hello")
    with pytest.raises(NewnormalError) as refused:
        checksums.check(tmp_path, {"wanted.jar": "0" * 128})
    assert refused.value.code == "DOWNLOAD_ALTERED"
    assert "wanted.jar is missing" in refused.value.what
    assert "stranger.jar has SHA-512 9b71d224bd62f378" in refused.value.what
    assert not (tmp_path / "stranger.jar").exists()


def test_every_artifact_that_is_named_is_pinned() -> None:
    for some in (*artifacts.ALL, artifacts.S3A):
        pinned = checksums.pinned(some.directory.name)
        assert {f"{a.name}-{a.version}.{a.type}" for a in some.artifacts} <= pinned.keys()
        assert all(re.fullmatch("[0-9a-f]{128}", digest) for digest in pinned.values())


def test_an_artifact_that_is_no_jar_names_its_type() -> None:
    xml = ivy.Artifact("org.example", "thing", "1", type="zip").xml()
    assert '<artifact name="thing" type="zip" ext="zip"/>' in xml
    assert 'transitive="false"' in xml


def test_the_connector_of_a_store_is_fetched_for_its_addresses_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(artifacts, "retrieve", lambda *_: pytest.fail("Ivy was started"))
    assert artifacts.store_jars("/state") == artifacts.store_jars("hdfs://name-node:8020/state") == []
    artifacts.S3A.directory.mkdir(parents=True)
    (artifacts.S3A.directory / "hadoop-aws.jar").touch()
    assert [jar.name for jar in artifacts.store_jars(HadoopPath("s3a://bucket/state"))] == ["hadoop-aws.jar"]


@pytest.mark.servers
def test_the_sets_are_complete() -> None:
    assert len(artifacts.spark_jars()) == 5
    bounded, whole = (Path(each.removesuffix("/*")) for each in artifacts.kafka_classpath().split(":"))
    assert [jar.name for jar in bounded.glob("*.jar")] == ["kafka-clients-4.1.0.jar"]
    assert len(list(whole.glob("*.jar"))) > 40
    assert [jar.name for jar in whole.glob("lz4*.jar")] == ["lz4-java-1.11.1.jar"], "the older one is left out"
    assert [jar.name for jar in whole.glob("commons-beanutils*.jar")] == ["commons-beanutils-1.11.0.jar"]
    assert os.access(artifacts.elasticsearch_home() / "bin" / "elasticsearch", os.X_OK)


@pytest.mark.servers
@pytest.mark.parametrize("codec", ["lz4", "zstd", "snappy", "gzip"])
def test_the_broker_reads_what_is_compressed(endpoints: Endpoints, codec: str) -> None:
    """It decompresses each batch, to check it."""
    topic, values = f"compressed-{codec}", [b"a line of text, " * 100 + str(n).encode() for n in range(500)]
    ensure_topics(endpoints.bootstrap, {topic: {}}, 1, 1)
    producer = Producer({"bootstrap.servers": endpoints.bootstrap, "compression.type": codec, "linger.ms": 100})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    assert [message.value() for message in content(endpoints.bootstrap, topic)] == values
