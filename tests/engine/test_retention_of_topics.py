"""How long Kafka keeps messages: chosen when a topic is created, and changed on topics that exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from pipelines.contracts import topics
from pipelines.contracts.settings import load
from pipelines.runtime.program import CHAIN

pytestmark = pytest.mark.servers


def kept(endpoints: Endpoints, topic: str) -> str:
    asked = ConfigResource(ResourceType.TOPIC, topic)
    (answer,) = AdminClient({"bootstrap.servers": endpoints.bootstrap}).describe_configs([asked]).values()
    return str(answer.result(30)["retention.ms"].value)


def test_a_chosen_retention_is_that_of_new_and_of_existing_topics_and_the_default_changes_none(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    space = {"namespace": "kept.", "state_dir": tmp_path}
    made = {"kept.telemetry": {"retention.ms": "86400000"}, "kept.rules": {"cleanup.policy": "compact"}}
    ensure_topics(endpoints.bootstrap, made, 4)

    CHAIN.prepare(endpoints.settings(load(**space)))
    assert kept(endpoints, "kept.telemetry") == "86400000"
    assert kept(endpoints, "kept.features") == "604800000"

    CHAIN.prepare(endpoints.settings(load(**space, **{"kafka.retention": "6d", "retention.late": "1d"})))
    assert kept(endpoints, "kept.telemetry") == kept(endpoints, "kept.features") == "518400000"
    assert kept(endpoints, "kept.features.late") == "86400000"
    assert topics.config("rules") == topics.config("rules", 1)
