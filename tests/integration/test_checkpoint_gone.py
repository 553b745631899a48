"""What `newnormal run` does when the checkpoint of a job is gone and its output is not."""

from __future__ import annotations

import signal

import pytest

from engine.kafka.exactly_once import TransactionalWriter
from engine.runtime.messages import Outgoing
from pipelines.contracts import topics
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.timeout(180)]


def test_the_start_is_refused_with_what_to_do_and_begins_again_only_when_told_to(pipeline: Pipeline) -> None:
    settings = pipeline.settings
    bootstrap, features = settings.kafka.bootstrap or "", settings.topic(topics.FEATURES)
    writer = TransactionalWriter(bootstrap, settings.topic("extractor"), settings.topic(topics.LEDGER), "lost")
    writer.write(0, [Outgoing.of(features, 0, [b"a feature"])])
    writer.close()

    pipeline.start("extractor")
    assert pipeline.process is not None
    assert pipeline.process.wait(90) == 2
    said = " ".join(pipeline.log.read_text().split())
    assert "CHECKPOINT_MISSING: extractor has written to" in said
    assert "--write-again" in said
    assert "Traceback" not in said
    assert [message.value() for message in pipeline.read(topics.FEATURES)] == [b"a feature"]

    pipeline.start("extractor", "--write-again")
    pipeline.wait("the start", lambda: "output is written a second time" in pipeline.log.read_text(), 90)
    pipeline.process.send_signal(signal.SIGKILL)
    pipeline.process.wait(30)
