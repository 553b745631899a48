"""What a click of an operator writes to a real Kafka: the records that docs/rules.md and docs/incidents.md describe."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from datagen.kafka_writer import KafkaWriter
from deploy.embedded.endpoints import Endpoints
from engine.kafka import content
from engine.kafka.admin import ensure_topics
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings, load
from pipelines.query.operator import Operator
from tests.pipelines.incidents.cases import MINUTE, Feed, news

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]

NOW = 1_800_000_000_000


@pytest.fixture
def settings(endpoints: Endpoints) -> Settings:
    space = f"op{uuid.uuid4().hex[:8]}."
    return load(namespace=space, **{"kafka.bootstrap": endpoints.bootstrap})


def written(settings: Settings, topic: str) -> list[dict[str, Any]]:
    """All records of a topic, in the order of their times, as Kafka keeps an order only within a partition."""
    found = [json.loads(value) for value in content.values(settings.kafka.bootstrap or "", settings.topic(topic))]
    return sorted(found, key=lambda record: record.get("@timestamp", 0))


def at(settings: Settings, now: int) -> Operator:
    return Operator(lambda: settings, lambda: now)


def test_a_label_is_about_the_onset_and_takes_effect_now(settings: Settings) -> None:
    assert at(settings, NOW).label("db-1", "cpu", NOW - 60_000, "false_alarm", "backup") == NOW
    (label,) = written(settings, topics.LABELS)
    named = {"host.name": "db-1", "metric": "cpu", "verdict": "false_alarm", "note": "backup"}
    assert {key: label[key] for key in named} == named
    assert (label["event.start"], label["event.created"]) == (NOW - 60_000, NOW)


def test_a_label_of_an_incident_is_one_of_each_of_its_series_and_all_that_was_said_can_be_read_again(
    settings: Settings,
) -> None:
    operator = at(settings, NOW)
    each = [("db-1", "cpu", NOW - 60_000), ("db-2", "_machine", NOW - 50_000)]
    assert operator.labels(each, "expected_change", "a release") == NOW
    rule, _ = operator.maintain("db-1", 30, "upgrade")
    found = operator.in_force()
    labels = [(one["host.name"], one["metric"], one["event.start"], one["verdict"]) for one in found["labels"]]
    assert labels == [(*one, "expected_change") for one in each]
    assert [(one["id"], one["event.end"]) for one in found["rules"]] == [(rule, NOW + 1_800_000)]
    assert found["placements"] == []


def test_a_maintenance_silences_one_machine_from_now_on_and_its_end_withdraws_it(settings: Settings) -> None:
    name, end = at(settings, NOW).maintain("db-*[1]", 30, "upgrade")
    assert end == NOW + 30 * 60_000
    assert at(settings, NOW + 60_000).maintain("db-*[1]", 0, "") == (name, NOW + 60_000)
    begun, over = written(settings, topics.RULES)
    assert (begun["id"], over["id"]) == (name, name)
    assert begun["host.name"] == "db-?[1]", "a star in a machine's name is no glob over other machines"
    assert (begun["skip_result"], begun["skip_learning"], begun["note"]) == (True, True, "upgrade")
    assert begun["store"], "that the rule acts can be seen, whatever detector.emit is"
    assert (begun["event.start"], begun["event.end"]) == (NOW, NOW + 1_800_000)
    assert (over["active"], over["@timestamp"]) == (False, NOW + 60_000)


@pytest.mark.parametrize("past", [False, True])
def test_a_maintenance_that_is_not_in_force_cannot_be_ended(settings: Settings, past: bool) -> None:
    if past:
        at(settings, NOW - 31 * 60_000).maintain("db-1", 30, "")
    with pytest.raises(NewnormalError) as refused:
        at(settings, NOW).maintain("db-1", 0, "")
    assert refused.value.code == "RULE_UNKNOWN"


def test_maintenances_of_two_machines_do_not_end_each_other_however_long_their_names_are(settings: Settings) -> None:
    names = ["w" * 511 + end for end in "ab"]
    ids = [at(settings, NOW).maintain(name, 30, "")[0] for name in names]
    assert ids[0] != ids[1]
    assert max(map(len, ids)) <= 256


def test_an_incident_is_acknowledged_by_its_operator_and_released(settings: Settings) -> None:
    feed = Feed()
    feed.send([news("db-1", "cpu", 0)], MINUTE)
    incident = feed.standing[0]
    name = settings.topic(topics.INCIDENTS)
    ensure_topics(settings.kafka.bootstrap or "", {name: topics.config(topics.INCIDENTS)}, 1)
    with KafkaWriter(settings.kafka.bootstrap or "") as writer:
        writer.write(name, [incident.to_json()], [incident.id])
    at(settings, NOW).acknowledge(incident.id, True, "ann", "looking")
    at(settings, NOW + 1).acknowledge(incident.id, False, "ann", "")
    taken, given_back = written(settings, topics.ACKNOWLEDGEMENTS)
    assert (taken["event.id"], taken["user.name"], taken["note"]) == (incident.id, "ann", "looking")
    assert [each["active"] for each in (taken, given_back)] == [True, False]
    assert at(settings, NOW).in_force()["acknowledgements"] == [taken, given_back]


def test_what_the_detector_would_refuse_is_not_written(settings: Settings) -> None:
    with pytest.raises(NewnormalError) as refused:
        at(settings, NOW).label("db-1", "cpu", NOW, "maybe", "")
    assert refused.value.code == "LABEL_INVALID"
    with pytest.raises(NewnormalError) as unknown:
        written(settings, topics.LABELS)
    assert unknown.value.code == "TOPIC_UNKNOWN"


def test_a_rule_is_in_force_from_now_on_for_as_long_as_was_said_until_it_is_withdrawn(settings: Settings) -> None:
    fields = {"id": "nights", "entity": "lab-*", "metric": "net.*", "times": "02:00-03:00", "skip_result": True}
    assert at(settings, NOW).rule(fields, {"below": "20G", "above": None}, 60) == NOW
    (rule,) = written(settings, topics.RULES)
    said = {"id": "nights", "host.name": "lab-*", "metric": "net.*", "times": "02:00-03:00", "below": 20e9}
    assert {name: rule[name] for name in said} == said
    assert (rule["@timestamp"], rule["event.end"], rule["skip_result"]) == (NOW, NOW + 60 * 60_000, True)
    assert at(settings, NOW + 1).withdraw("nights") == NOW + 1
    assert at(settings, NOW + 2).in_force()["rules"] == []
    with pytest.raises(NewnormalError) as refused:
        at(settings, NOW + 3).withdraw("nights")
    assert refused.value.code == "RULE_UNKNOWN"


@pytest.mark.parametrize(
    ("fields", "limits"),
    [
        ({"times": "night"}, {}), ({"entity": ""}, {}), ({"skip_result": False}, {}), ({"timezone": "Mars"}, {}),
        ({}, {"above": "5 ms"}), ({}, {"above": "2", "below": "1"}),
    ],
)  # fmt: skip
def test_a_rule_that_is_none_is_refused_before_anything_is_written(
    settings: Settings, fields: dict[str, Any], limits: dict[str, str]
) -> None:
    with pytest.raises(NewnormalError) as refused:
        at(settings, NOW).rule({"id": "r", "skip_result": True, **fields}, limits, None)
    assert refused.value.code == "RULE_INVALID"
