"""A job whose checkpoint does not know of its output is not started, unless that is wanted: on a real Kafka."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from uuid import uuid4

import pytest

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from engine.kafka.content import values
from engine.kafka.continuation import check
from engine.kafka.exactly_once import TransactionalWriter
from engine.runtime.messages import Outgoing
from engine.spec.errors import NewnormalError

pytestmark = pytest.mark.servers


class Pipeline:
    """A job's output topic, ledger and checkpoint, of the shapes that Kafka and Spark give them."""

    def __init__(self, bootstrap: str, checkpoints: Path) -> None:
        self.bootstrap, self.checkpoints = bootstrap, checkpoints
        self.namespace = f"c{uuid4().hex[:8]}."
        self.ledger, self.output = self.namespace + "ledger", self.namespace + "out"
        ensure_topics(bootstrap, {self.ledger: {}, self.output: {}}, partitions=2)

    def checkpoint(self, identity: str, batches: int) -> None:
        """A checkpoint that has planned so many micro-batches."""
        offsets = self.checkpoints / "job" / "offsets"
        offsets.mkdir(parents=True, exist_ok=True)
        (offsets.parent / "metadata").write_text(json.dumps({"id": identity}))
        for number in range(batches):
            (offsets / str(number)).write_text("v1")
            (offsets / f".{number}.crc").write_text("")

    def write(self, identity: str, *batches: int) -> None:
        """Writes micro-batches, each the number of its batch."""
        writer = TransactionalWriter(self.bootstrap, f"{self.namespace}job", self.ledger, identity)
        for number in batches:
            writer.write(number, [Outgoing.of(self.output, number % 2, [str(number).encode()])])
        writer.close()

    def check(self, write_again: bool = False) -> None:
        outputs = {"job": [self.output]}
        check(self.bootstrap, self.namespace, self.ledger, self.checkpoints, outputs, write_again)

    def content(self) -> list[str]:
        return sorted(value.decode() for value in values(self.bootstrap, self.output))


@pytest.fixture
def pipeline(endpoints: Endpoints, tmp_path: Path) -> Pipeline:
    return Pipeline(endpoints.bootstrap, tmp_path)


def test_a_first_start_and_one_that_goes_on_are_not_refused(pipeline: Pipeline) -> None:
    pipeline.check()
    pipeline.checkpoint("a", batches=3)
    pipeline.write("a", 0, 1)
    pipeline.check()
    pipeline.write("a", 2)  # written, and not yet done for Spark, which repeats it
    pipeline.check()


def test_a_start_without_the_checkpoint_of_what_was_written_is_refused(pipeline: Pipeline) -> None:
    pipeline.checkpoint("a", batches=2)
    pipeline.write("a", 0, 1)
    shutil.rmtree(pipeline.checkpoints / "job")
    with pytest.raises(NewnormalError) as refused:
        pipeline.check()
    assert refused.value.code == "CHECKPOINT_MISSING"
    assert f"job has written to {pipeline.output} from checkpoint a, which is not there" in str(refused.value)
    assert "--write-again" in refused.value.accepted
    assert refused.value.now == "nothing was started"
    pipeline.checkpoint("a", batches=2)
    pipeline.check()


def test_who_asks_for_it_gets_the_output_a_second_time(pipeline: Pipeline) -> None:
    pipeline.write("a", 0, 1)
    pipeline.check(write_again=True)
    pipeline.checkpoint("b", batches=2)
    pipeline.write("b", 0, 1)
    assert pipeline.content() == ["0", "0", "1", "1"]
    pipeline.check()


def test_a_new_checkpoint_may_begin_where_the_output_is_empty_or_of_another_namespace(pipeline: Pipeline) -> None:
    pipeline.write("a", 0)
    other = Pipeline(pipeline.bootstrap, pipeline.checkpoints)
    other.check()
    outputs = {"job": [other.output]}
    check(pipeline.bootstrap, pipeline.namespace, pipeline.ledger, pipeline.checkpoints, outputs)


def test_a_checkpoint_that_is_older_than_the_output_is_refused(pipeline: Pipeline) -> None:
    """Its next micro-batches would take the numbers of others, and be skipped as if they had been written."""
    pipeline.checkpoint("a", batches=2)
    pipeline.write("a", 0, 1, 2, 3)
    with pytest.raises(NewnormalError, match="job has written micro-batch 3, its checkpoint ends with 1") as refused:
        pipeline.check()
    assert refused.value.code == "CHECKPOINT_BEHIND"
    pipeline.write("a", 2)
    assert pipeline.content() == ["0", "1", "2", "3"]


def test_who_asks_for_it_goes_on_from_an_older_checkpoint_and_nothing_is_skipped(pipeline: Pipeline) -> None:
    pipeline.checkpoint("a", batches=2)
    pipeline.write("a", 0, 1, 2, 3)
    pipeline.check(write_again=True)
    pipeline.write("a", 1, 2, 3, 4)
    assert pipeline.content() == ["0", "1", "2", "2", "3", "3", "4"]
