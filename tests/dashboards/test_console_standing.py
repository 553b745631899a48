"""What the console says of rules, labels and places on the machines of an incident."""

from __future__ import annotations

from typing import Any

from dashboards.console.standing import Remembered
from engine.spec.errors import NewnormalError

START, END, NOW = 10_000_000, 10_600_000, 11_000_000
INCIDENT = {"event.id": "i", "event.start": START, "machines": [{"entity": "vm-1"}, {"entity": "host-1"}]}


class Topics:
    """The topics as they are read."""

    def __init__(self, **found: list[dict[str, Any]]) -> None:
        self.found, self.read = {"rules": [], "labels": [], "placements": []} | found, 0

    def in_force(self) -> dict[str, list[dict[str, Any]]]:
        self.read += 1
        if "broken" in self.found:
            raise NewnormalError("KAFKA_UNREACHABLE", "no broker answers", "127.0.0.1:9")
        return self.found


def around(incident: dict[str, Any] = INCIDENT, **found: list[dict[str, Any]]) -> dict[str, Any]:
    return Remembered(Topics(**found)).around(incident, NOW)  # type: ignore[arg-type]


def rule(name: str, glob: str, time: int, **more: Any) -> dict[str, Any]:
    return {"id": name, "host.name": glob, "@timestamp": time, **more}


def test_rules_that_match_one_of_its_machines_while_it_goes_on_are_in_force() -> None:
    rules = [
        rule("its vms", "vm-*", START - 1), rule("another", "db-*", START - 1), rule("all", "*", START - 1),
        rule("ended before", "vm-1", 1, **{"event.end": START}),
        rule("ends in it", "vm-1", 1, **{"event.end": START + 1}),
        rule("given later", "vm-1", NOW + 1), rule("begins later", "vm-1", 1, **{"event.start": NOW + 1}),
    ]  # fmt: skip
    assert [each["id"] for each in around(rules=rules)["rules"]] == ["its vms", "all", "ends in it"]
    over = INCIDENT | {"event.end": END}
    assert around(over, rules=[rule("after its end", "vm-1", END + 1)])["rules"] == []


def test_labels_on_its_machines_come_with_the_newest_first() -> None:
    labels = [
        {"host.name": name, "metric": "cpu", "event.created": at}
        for name, at in (("vm-1", 1), ("db-1", 3), ("host-1", 2))
    ]
    assert [each["host.name"] for each in around(labels=labels)["labels"]] == ["host-1", "vm-1"]


def test_a_move_within_half_an_hour_before_the_onset_is_what_changed_and_a_place_is_known_without_a_move() -> None:
    moved = {"host.name": "vm-1", "parent": "host-1", "moved_from": "host-2"}
    placed = {"host.name": "host-1", "parent": "rack-1", "@timestamp": START}
    found = around(placements=[moved | {"@timestamp": START - 1_800_000}, placed])
    assert [each["host.name"] for each in found["moves"]] == ["vm-1"]
    assert found["parents"] == {"vm-1": "host-1", "host-1": "rack-1"}
    assert around(placements=[moved | {"@timestamp": START - 1_800_001}])["moves"] == []
    said_later = moved | {"@timestamp": END + 1, "moved": START - 1_800_000}
    assert [each["host.name"] for each in around(placements=[said_later])["moves"]] == ["vm-1"]


def test_of_what_a_machine_calls_those_are_named_that_the_incident_has_too() -> None:
    placed = {"host.name": "vm-1", "depends_on": ["host-1", "elsewhere"], "@timestamp": START}
    found = around(placements=[placed, {"host.name": "host-1", "depends_on": ["elsewhere"], "@timestamp": START}])
    assert found["needs"] == {"vm-1": ["host-1"]} and found["parents"] == {}


def test_a_workload_that_calls_another_stands_for_the_replicas_of_both() -> None:
    web, cart = "shop/web-6f7d8c9b5-q4w5z", "shop/cart-7d4b9c6f5-x2x7p"
    incident = INCIDENT | {"machines": [{"entity": name} for name in (web, cart, "db-a")]}
    placements = [
        {"host.name": "shop/web", "depends_on": ["shop/cart", "shop/web"], "@timestamp": START},
        {"host.name": cart, "depends_on": ["shop/store"], "@timestamp": START},
        {"host.name": "db-a", "workload": "shop/store", "@timestamp": START},
    ]
    assert around(incident, placements=placements)["needs"] == {web: [cart], cart: ["db-a"]}


def test_what_was_said_of_the_incident_and_told_of_it_is_its_own() -> None:
    said = [{"event.id": name, "@timestamp": START, "active": True, "user.name": "ann"} for name in ("i", "other")]
    told = [
        {"at": START, "channel": "night", "title": "t", "incidents": names} for names in (["other"], ["other", "i"])
    ]
    found = around(acknowledgements=said, told=told)
    assert found["acknowledged"] == said[:1]
    assert found["told"] == told[1:]
    assert around(broken=[])["told"] == []


def test_topics_are_read_once_for_several_questions_and_a_broker_that_does_not_answer_is_the_reason() -> None:
    topics = Topics()
    remembered = Remembered(topics)  # type: ignore[arg-type]
    assert [remembered.around(INCIDENT, NOW)["missing"] for _ in range(3)] == ["", "", ""]
    assert topics.read == 1
    remembered.forget()  # an operator has just said something
    assert remembered.labels() == ([], "")
    assert topics.read == 2
    assert around(broken=[])["missing"] == "KAFKA_UNREACHABLE"
    assert Remembered(None).around(INCIDENT, NOW)["missing"] == "this console reads no topics"
