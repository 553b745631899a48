"""The downloaded jars: there after the set-up, whole or not at all, and never downloaded twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deploy import artifacts, ivy
from engine.errors import NewnormalError


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


def test_an_artifact_that_is_no_jar_names_its_type() -> None:
    xml = ivy.Artifact("org.example", "thing", "1", type="zip").xml()
    assert '<artifact name="thing" type="zip" ext="zip"/>' in xml
    assert 'transitive="false"' in xml


@pytest.mark.servers
def test_the_sets_are_complete() -> None:
    assert len(artifacts.spark_jars()) == 5
    assert len(list(Path(artifacts.kafka_classpath().removesuffix("/*")).glob("*.jar"))) > 40
    assert os.access(artifacts.elasticsearch_home() / "bin" / "elasticsearch", os.X_OK)
