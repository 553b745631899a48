"""What a view says if Kafka does not let it read."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from pipelines.query.view.follower import _take_error
from pipelines.query.view.progress import Progress


@dataclass
class Refused:
    """The message in which librdkafka reports an error of a partition: confluent_kafka lets nobody make one."""

    def topic(self) -> str:
        return "detector.state"

    def partition(self) -> int:
        return 3


def test_a_topic_that_may_not_be_read_is_named_and_the_others_are_read_on() -> None:
    with capture_logs() as said:
        _take_error(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), Refused(), {})
    (line,) = said
    assert (line["log_level"], line["topic"], line["partition"]) == ("warning", "detector.state", 3)
    assert "`newnormal acls`" in line["event"]


def test_a_fatal_error_ends_the_step_and_one_that_passes_is_silent() -> None:
    places = {("detector.state", 3): Progress(0)}
    with capture_logs() as said:
        _take_error(KafkaError(KafkaError._TRANSPORT), Refused(), places)
    assert said == []
    with pytest.raises(KafkaException):
        _take_error(KafkaError(KafkaError._FATAL, "x", True), Refused(), places)
