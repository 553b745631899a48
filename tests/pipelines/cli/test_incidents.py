"""`newnormal incidents` over a real topic: what people see, what programs get, and what acknowledging writes."""

from __future__ import annotations

import json
import time
import uuid

import orjson
import pytest

from datagen.kafka_writer import KafkaWriter
from deploy.embedded.endpoints import Endpoints
from engine.kafka import content
from engine.kafka.admin import ensure_topics
from engine.spec.duration import iso
from pipelines.contracts import topics
from pipelines.contracts.records import Incident
from tests.pipelines.cli.conftest import Run
from tests.pipelines.incidents.cases import MINUTE, Feed, news

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]


def opened() -> Incident:
    """An incident as the job writes it."""
    feed = Feed()
    line = news("db-1", "logs", 0, template="release <*> was started", example="release [red]2.4\x1b[2J was started")
    feed.send([news("db-1", "cpu", 0), news("db-1", "[red]mem\x1b[2J", 0), line], MINUTE)
    return feed.standing[0]


@pytest.fixture
def namespace(endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch) -> str:
    """Topics with revisions of three incidents, one of which is over."""
    space = f"inc{uuid.uuid4().hex[:8]}."
    monkeypatch.setenv("NEWNORMAL_NAMESPACE", space)
    monkeypatch.setenv("NEWNORMAL_KAFKA__BOOTSTRAP", endpoints.bootstrap)
    ensure_topics(endpoints.bootstrap, {space + topics.INCIDENTS: topics.config(topics.INCIDENTS)}, 2)
    first = opened()
    later = first.model_copy(update={"id": "ab12", "opened": first.opened + MINUTE, "message": "the later one"})
    over = {"status": "resolved", "end": first.opened + 2, "revision": 1, "message": "the one that is over"}
    ended = first.model_copy(update={"id": "ab34", **over})
    written = [first, ended, ended.model_copy(update={"status": "open", "end": None, "revision": 0}), later]
    with KafkaWriter(endpoints.bootstrap) as writer:
        values = [b"\0heartbeat", b"no json", *(each.to_json() for each in written)]
        writer.write(space + topics.INCIDENTS, values, ["k"] * len(values))
    return space


def test_the_last_revision_of_each_incident_is_listed_the_last_opened_first(namespace: str, run: Run) -> None:
    found = [json.loads(line) for line in run("incidents", "list", "--as", "v1", "--json")[1].splitlines()]
    assert [each["id"] for each in found] == ["ab12", opened().id]
    every = [json.loads(line) for line in run("incidents", "list", "--all", "--as", "v1", "--json")[1].splitlines()]
    assert {each["id"]: each["status"] for each in every} == {"ab12": "open", opened().id: "open", "ab34": "resolved"}
    for machine, ids in (("db-1", ["ab12", opened().id]), ("db-2", []), ("", ["ab12", opened().id])):
        of_it = run("incidents", "list", "--machine", machine, "--as", "v1", "--json")[1].splitlines()
        assert [json.loads(line)["id"] for line in of_it] == ids
    shown = run("incidents", "list", "--as", "v1")[1]
    assert "the later one" in shown and "the one that is over" not in shown
    assert max(map(len, shown.splitlines()[:6])) <= 80


def test_one_is_shown_by_the_beginning_of_its_id_with_hostile_names_made_harmless(namespace: str, run: Run) -> None:
    code, shown, _ = run("incidents", "show", opened().id[:6], "--as", "v1")
    assert code == 0
    assert f"incident {opened().id}" in shown and "where it may have begun" in shown
    assert "[red]mem\\u001b[2J" in shown and "\x1b" not in shown
    assert "what changed in the logs" in shown and "release [red]2.4\\u001b[2J was started" in shown
    code, _, said = run("incidents", "show", "ab", "--as", "v1")
    assert code == 2
    assert "INCIDENT_UNKNOWN" in said and "ab12, ab34" in said


def test_what_is_over_for_now_has_a_length_and_the_first_revision_the_time_at_which_it_was_written(
    namespace: str, run: Run, endpoints: Endpoints
) -> None:
    first, before = opened(), int(time.time() * 1000)
    rows = [
        {"entity": "db-1", "metric": name, "kind": "anomaly", "since": first.start, "reported": first.opened}
        | {"end": end, "record_score": 60, "change": "3 × the usual"}
        for name, end in (("cpu", first.start + 90_000), ("mem", first.start + 150_000))
    ]
    begun = first.model_copy(update={"id": "ef56"})
    calm = Incident.model_validate(
        begun.model_dump()
        | {"open_series": 0, "series": rows, "revision": first.revision + 9, "updated": first.opened + 3 * MINUTE}
    )
    with KafkaWriter(endpoints.bootstrap) as writer:
        writer.write(namespace + topics.INCIDENTS, [begun.to_json(), calm.to_json()], ["k"] * 2)
    after = int(time.time() * 1000)
    shown = " ".join(run("incidents", "show", "ef56", "--as", "v1")[1].split())
    assert f"{iso(first.start)} to {iso(first.start + 150_000)}: lasted 2 min 30 s" in shown
    assert f"is resolved at {iso(first.start + 150_000 + 5 * MINUTE)} if nothing comes" in shown
    assert f"its first novel window ended at {iso(first.opened)}" in shown
    written = shown.partition("first written at ")[2][:24]
    assert iso(before) <= written <= iso(after)
    assert "and lasts" in run("incidents", "show", opened().id, "--as", "v1")[1], "two of its series are novel now"
    over = run("incidents", "show", "ab34", "--as", "v1")[1]
    assert "first written" not in over and "resolved at" not in over


def test_what_acknowledge_and_release_write_is_taken_by_the_incidents_job(
    namespace: str, run: Run, endpoints: Endpoints
) -> None:
    mine, before = opened().id, int(time.time() * 1000)
    code, said, _ = run("incidents", "acknowledge", mine[:6], "--by", "ann", "--note", "on it", "--as", "v1")
    assert (code, said) == (0, f"incident {mine} is acknowledged by ann\n")
    assert run("incidents", "release", mine, "--by", "ann", "--as", "v1")[0] == 0
    first, second = content.content(endpoints.bootstrap, namespace + topics.ACKNOWLEDGEMENTS)
    assert first.key() == second.key() == mine.encode()
    given = orjson.loads(first.value())
    assert given["@timestamp"] >= before
    feed = Feed()
    line = news("db-1", "logs", 0, template="release <*> was started", example="release [red]2.4\x1b[2J was started")
    feed.send([news("db-1", "cpu", 0), news("db-1", "[red]mem\x1b[2J", 0), line], MINUTE)
    seen = []
    for message in (first, second):
        feed._take([feed._row(message.value() or b"", topics.ACKNOWLEDGEMENTS, 0)])
        seen.append((feed.standing[0].status, feed.standing[0].acknowledged_by, feed.standing[0].note))
    assert seen == [("acknowledged", "ann", "on it"), ("open", None, None)]


@pytest.mark.parametrize("name", ["ab34", "zz"])
def test_an_incident_that_is_over_or_unknown_is_not_acknowledged(
    namespace: str, run: Run, endpoints: Endpoints, name: str
) -> None:
    code, _, said = run("incidents", "acknowledge", name, "--as", "v1")
    assert code == 2
    assert ("INCIDENT_OVER" if name == "ab34" else "INCIDENT_UNKNOWN") in said
