"""A pipeline on servers of its own, which may be abused."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.embedded import services
from deploy.embedded.elasticsearch import runtime_dir
from engine.kafka.admin import ensure_topics
from pipelines.contracts import topics
from pipelines.contracts.settings import load
from tests.chaos.faults import Servers
from tests.integration.conftest import Pipeline


@pytest.fixture(autouse=True)
def brief_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """JVMs of minutes compile once and simply, which takes less than it gains."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")


@pytest.fixture
def abused(tmp_path: Path) -> Iterator[tuple[Pipeline, Servers]]:
    """A pipeline, not started, and the servers that it will use."""
    state = tmp_path / "state"
    settings = load(state_dir=state)
    servers = Servers(settings)
    servers.up()
    try:
        found = services.status(settings)
        assert found is not None
        settings = found.endpoints.settings(settings)
        environment = os.environ | {"NEWNORMAL_STATE_DIR": str(state), "NEWNORMAL_CONSOLE__PORT": "0"}
        environment["NEWNORMAL_DETECTOR__EMIT"] = "all"  # the verifier wants a verdict on each window
        wanted = {settings.topic(n): c for n, c in topics.configs().items()}
        ensure_topics(found.endpoints.bootstrap, wanted, settings.kafka.partitions)
        pipeline = Pipeline(settings, tmp_path / "driver.log", environment)
        yield pipeline, servers
        pipeline.stop()
    finally:
        servers.down()
        shutil.rmtree(runtime_dir(state / "elasticsearch"), ignore_errors=True)
