"""How long Kafka keeps messages: chosen when a topic is created, and changed on topics that exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from pipelines.contracts import topics
from pipelines.contracts.settings import load
from pipelines.runtime.program import CHAIN

pytestmark = pytest.mark.servers


@retry(retry=retry_if_exception_type(AssertionError), stop=stop_after_delay(10), wait=wait_fixed(0.1), reraise=True)
def is_kept(endpoints: Endpoints, topic: str, days: int) -> None:
    """Brokers learn of a change a moment after the controller has accepted it."""
    asked = ConfigResource(ResourceType.TOPIC, topic)
    client = AdminClient({"bootstrap.servers": endpoints.bootstrap})
    (answer,) = client.describe_configs([asked]).values()
    assert answer.result(30)["retention.ms"].value == str(days * 86_400_000)


def test_a_chosen_retention_is_that_of_new_and_of_existing_topics_and_the_default_changes_none(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    space = {"namespace": "kept.", "state_dir": tmp_path}
    made = {"kept.telemetry": {"retention.ms": "86400000"}, "kept.rules": {"cleanup.policy": "compact"}}
    ensure_topics(endpoints.bootstrap, made, 4)

    CHAIN.prepare(endpoints.settings(load(**space)))
    is_kept(endpoints, "kept.telemetry", 1)
    is_kept(endpoints, "kept.features", 7)

    CHAIN.prepare(endpoints.settings(load(**space, **{"kafka.retention": "6d", "retention.late": "1d"})))
    is_kept(endpoints, "kept.telemetry", 6)
    is_kept(endpoints, "kept.features", 6)
    is_kept(endpoints, "kept.features.late", 1)
    assert topics.config("rules") == topics.config("rules", 1)
