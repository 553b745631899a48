"""When the JVMs optimize is a setting; steady work and `newnormal demo` want different ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark import SparkConf

from deploy.embedded.endpoints import Endpoints
from engine.spark import session
from pipelines.cli import demo
from pipelines.contracts.settings import Settings, load
from pipelines.runtime import starting


def spark_options(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options with which the JVM of a pipeline's Spark would be started."""
    asked: list[SparkConf] = []

    def launched(conf: SparkConf, _: Mapping[str, Any]) -> None:
        asked.append(conf)
        raise RuntimeError("started nothing")

    monkeypatch.setattr(session, "launch_gateway", launched)
    monkeypatch.setattr(session.SparkContext, "_gateway", None)
    with pytest.raises(RuntimeError, match="started nothing"):
        starting.start_spark(settings).session(1)
    return (asked[0].get("spark.driver.extraJavaOptions") or "").replace('"', "").split()


def test_the_jvm_of_a_pipeline_optimizes_as_usual_or_never(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = spark_options(load(state_dir=tmp_path), monkeypatch)
    never = spark_options(load(state_dir=tmp_path, **{"engine.jvm_optimizes": "never"}), monkeypatch)
    assert "-XX:TieredStopAtLevel=1" in never
    assert not [option for option in usual if "Tier" in option]


def test_the_jvm_of_a_small_pipeline_gives_back_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("ARENA_MAX", "MMAP_THRESHOLD_", "TRIM_THRESHOLD_")
    for name in (*(f"MALLOC_{name}" for name in names), "ARROW_DEFAULT_MEMORY_POOL"):
        monkeypatch.setenv(name, "")  # what the call sets is gone after the test
        monkeypatch.delenv(name)
    usual = spark_options(load(state_dir=tmp_path), monkeypatch)
    assert "MALLOC_ARENA_MAX" not in os.environ
    small = spark_options(load(state_dir=tmp_path, **{"engine.memory": "small"}), monkeypatch)
    collectors = [{option for option in options if "Use" in option and "GC" in option} for options in (usual, small)]
    assert collectors == [{"-XX:+UseParallelGC"}, {"-XX:+UseSerialGC"}], "a JVM takes one, and refuses two"
    assert os.environ["MALLOC_ARENA_MAX"] == "1"


@pytest.mark.parametrize(("given", "wanted"), [({}, "never"), ({"NEWNORMAL_ENGINE__JVM_OPTIMIZES": "usual"}, "usual")])
def test_the_demo_never_does_unless_it_was_asked_to(
    given: dict[str, str], wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    found: list[Settings] = []

    def starts(settings: Settings) -> None:
        found.append(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(starting, "starting_spark", starts)
    with pytest.raises(KeyboardInterrupt):
        demo.demo(state_dir=tmp_path)
    assert found[0].engine.jvm_optimizes == wanted


@pytest.mark.servers
def test_embedded_servers_do_as_the_settings_say(endpoints: Endpoints) -> None:
    assert endpoints.bootstrap
    lines = [each.cmdline() for each in psutil.Process().children(recursive=True) if each.name() == "java"]
    servers = [line for line in lines if line[-2] == "kafka.Kafka" or line[-1].endswith("bootstrap.Elasticsearch")]
    assert len(servers) >= 2
    assert all("-XX:TieredStopAtLevel=1" in line for line in servers), "tests/conftest.py asks for it"
