"""Checkpoints in a real HDFS: a job goes on over kill -9, and its state is saved and divided anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hdfs import hdfs
from tests.integration import checkpoint_scenario
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs(tmp_path_factory.mktemp("hdfs")) as address:
        yield address


@pytest.mark.long
def test_a_job_goes_on_over_kill_9_and_from_a_savepoint_in_other_shards(
    pipeline: Pipeline, store: str, tmp_path: Path
) -> None:
    checkpoint_scenario.goes_on(pipeline, store, tmp_path)


def test_a_store_that_does_not_answer_stops_the_start_with_its_name(pipeline: Pipeline) -> None:
    pipeline.environment["NEWNORMAL_SPARK__CHECKPOINTS"] = "hdfs://127.0.0.1:1/newnormal"
    said = pipeline.refused("run", "extractor")
    assert "CHECKPOINT_UNREACHABLE" in said and "hdfs://127.0.0.1:1/newnormal" in said and "Traceback" not in said
