"""The state view on a real Kafka: its answers, hostile names, several parts, and a process that is killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from fastapi.testclient import TestClient

from deploy.embedded.endpoints import Endpoints
from engine.columns.partitioning import crc32
from engine.formats import columnar
from engine.kafka.admin import ensure_topics
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Features
from pipelines.contracts.settings import Settings
from pipelines.query.view.answers import Answers
from pipelines.query.view.app import create_app
from pipelines.query.view.detector_topics import TOPICS
from pipelines.query.view.follower import Follower
from pipelines.query.view.part import Part
from tests.pipelines.query.view_topics import PARTITIONS, STEP, T0, Own, produce, state, until, with_topics

pytestmark = pytest.mark.servers
HOSTILE = ["a/b", "../..", 'é"\\<script>', "nul\0nul\0\1", "100%00", " ", "日本", "a?b=c&d#e", "a/b%2Fc"]


@pytest.fixture
def mine(endpoints: Endpoints, tmp_path: Path) -> Settings:
    return with_topics(endpoints, tmp_path)


def windows(settings: Settings, entity: str, numbers: range) -> None:
    """Features of the metric cpu, a message a window: the mean is the number of the window."""
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap})
    for n in numbers:
        row = {"entity": entity, "metric": "cpu", "kind": "gauge", "count": 1, "revision": 0}
        row |= {"window_start": T0 + n * STEP, "window_end": T0 + (n + 1) * STEP}
        row |= dict.fromkeys(("mean", "std", "min", "max", "last", "p50", "p95", "p99"), float(n))
        table = pa.Table.from_pylist([row], schema=Features.arrow_schema())
        message = columnar.encode(table, T0 + (n + 1) * STEP)
        producer.produce(settings.topic(topics.FEATURES), message, partition=crc32(entity) % PARTITIONS)
    producer.flush()


@pytest.fixture
def opened(mine: Settings) -> Iterator[Callable[..., Own]]:
    views: list[Own] = []

    def open_(part: Part | None = None, read: bool = True) -> Own:
        views.append(Own(mine, part))
        if read:
            views[-1].read_all()
        return views[-1]

    yield open_
    for view in views:
        view.follower.close()


def client(view: Answers, **more: Any) -> TestClient:
    return TestClient(create_app(view, **more), base_url="http://localhost")


def test_any_name_can_be_asked_for_in_path_and_query_and_is_never_taken_for_another(
    mine: Settings, opened: Callable[..., Own]
) -> None:
    names = [(entity, metric) for entity in HOSTILE for metric in HOSTILE]
    produce(mine, [state(entity, metric, n) for n, (entity, metric) in enumerate(names)])
    http = client(opened())
    for n, (entity, metric) in enumerate(names):
        by_query = http.get("/state", params={"entity": entity, "metric": metric})
        assert by_query.json()["state"] == state(entity, metric, n), (entity, metric)
        if "." not in entity + metric:  # clients resolve .. before they send a path
            by_path = http.get(f"/state/{quote(entity, safe='')}/{quote(metric, safe='')}")
            assert by_path.json()["state"] == state(entity, metric, n), (entity, metric)
    of_one = http.get("/states", params={"entity": "a/b", "limit": 100}).json()
    assert [each["metric"] for each in of_one["states"]] == sorted(HOSTILE, key=lambda name: name.encode())
    assert http.get("/state/a/b/b").status_code == 404
    assert http.get("/state/%ff/x").json()["code"] == "VIEW_QUESTION"
    assert http.get("/state/nobody/cpu").json()["code"] == "VIEW_SERIES_UNKNOWN"
    assert http.get("/counts", headers={"host": "evil.example"}).json()["code"] == "VIEW_HOST_REFUSED"
    refused, answered = http.get("/counts", headers={"host": "evil.example"}), http.get("/counts")
    for each in (refused, answered, http.get("/state/no/such")):
        assert (each.headers["cache-control"], each.headers["x-content-type-options"]) == ("no-store", "nosniff")


def test_pages_the_most_abnormal_and_counts_follow_the_last_state_of_each_series(
    mine: Settings, opened: Callable[..., Own]
) -> None:
    produce(mine, [state(f"web-{n:03}", "cpu") for n in range(50)])
    produce(mine, [state(f"web-{n:03}", "cpu", 1, "anomaly", 50.0 + n) for n in range(20)])
    produce(mine, [state(f"web-{n:03}", "cpu", 2, "normal", 0.0) for n in range(10, 20)])
    view = opened()
    http = client(view)
    assert [each["host.name"] for each in http.get("/top", params={"k": 3}).json()["states"]] == [
        "web-009", "web-008", "web-007",
    ]  # fmt: skip
    counts = http.get("/counts").json()["counts"]
    assert counts == {"series": 50, "abnormal": 10, "open_incidents": 10, "anomaly": 10, "normal": 40}
    pages, after = [], ""
    while after is not None:
        page = http.get("/states", params={"prefix": "web-0", "limit": 7, "after": after}).json()
        pages += [each["host.name"] for each in page["states"]]
        after = page["next"]
    assert pages == [f"web-{n:03}" for n in range(50)]
    produce(mine, [state("web-000", "cpu", 3, "normal", 0.0)])
    view.read_all()
    assert http.get("/counts").json()["counts"]["open_incidents"] == 9


def test_the_last_windows_of_a_quiet_series_are_there_with_the_verdicts_on_them_and_no_more_than_the_setting_says(
    mine: Settings, opened: Callable[..., Own]
) -> None:
    windows(mine, "web-1", range(260))
    verdict = state("web-1", "cpu", 259) | {"typical": 7.0, "message": "long text"}
    producer = Producer({"bootstrap.servers": mine.kafka.bootstrap})
    producer.produce(mine.topic(topics.NOVELTIES), orjson.dumps(verdict), partition=crc32("web-1") % PARTITIONS)
    producer.flush()
    answer = client(opened()).get("/windows", params={"entity": "web-1", "metric": "cpu", "n": 1_000}).json()
    assert [window["mean"] for window in answer["windows"]] == [float(n) for n in range(160, 260)]
    assert (answer["windows"][-1]["typical"], answer["windows"][-1]["kind"]) == (7.0, "normal")
    assert answer["age"]["event_time"] == "2023-11-14T22:56:40.000Z"  # T0 + 260 windows of 10 s
    assert answer["age"]["messages_behind"] == 0


def test_a_part_answers_for_its_machines_and_says_who_has_the_others(
    mine: Settings, opened: Callable[..., Own]
) -> None:
    hosts = [f"h{n}" for n in range(12)]
    produce(mine, [state(host, "cpu") for host in hosts])
    views = [opened(Part(n, 2)) for n in (1, 2)]
    peers = ["http://localhost:1", "http://localhost:2"]
    for host in hosts:
        owner = crc32(host) % PARTITIONS % 2
        assert client(views[owner]).get(f"/state/{host}/cpu").json()["state"]["host.name"] == host
        assert client(views[1 - owner]).get(f"/state/{host}/cpu").status_code == 421
        redirect = client(views[1 - owner], peers=peers).get(f"/windows/{host}/cpu?n=3", follow_redirects=False)
        assert redirect.headers["location"] == f"{peers[owner]}/windows/{host}/cpu?n=3"
    assert sum(view.counts()["series"] for view in views) == len(hosts)


def test_answers_say_when_readers_have_been_given_another_version(mine: Settings, opened: Callable[..., Own]) -> None:
    age = client(opened(), promoted=lambda: "v2").get("/counts").json()["age"]
    assert (age["version"], age["promoted"]) == ("v1", "v2")
    assert "restart" in age["restart"]


def test_messages_that_could_not_be_stored_are_read_again_and_count_as_not_read_until_then(
    mine: Settings, opened: Callable[..., Own], monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(mine, [state("web-1", "cpu", n) for n in range(3)])
    view = opened(read=False)
    with monkeypatch.context() as broken:
        broken.setattr(view.database, "write", lambda *_: (_ for _ in ()).throw(OSError("no space left on device")))
        with pytest.raises(OSError, match="no space"):
            view.read_all()
        assert (view.age()["messages_behind"], view.state("web-1", "cpu")) == (3, None)
    view.read_all()
    assert view.state("web-1", "cpu") == state("web-1", "cpu", 2)
    assert view.counts()["series"] == 1


def test_a_tombstone_removes_a_series_from_answers_counts_and_the_most_abnormal(
    mine: Settings, opened: Callable[..., Own]
) -> None:
    produce(mine, [state("web-1", "cpu", 0, "anomaly", 70.0), state("web-2", "cpu", 0, "anomaly", 60.0)])
    view = opened()
    producer = Producer({"bootstrap.servers": mine.kafka.bootstrap})
    key = orjson.dumps({"entity": "web-1", "metric": "cpu"})
    producer.produce(mine.topic(topics.STATE), None, key=key, partition=crc32("web-1") % PARTITIONS)
    producer.produce(mine.topic(topics.STATE), b'{"kind": "anomaly"}', key=key, partition=crc32("web-1") % PARTITIONS)
    producer.produce(mine.topic(topics.STATE), b"{", key=b"no JSON", partition=0)
    producer.flush()
    view.read_all()
    assert view.state("web-1", "cpu") is None
    assert [each["host.name"] for each in view.top(10)] == ["web-2"]
    assert view.counts() == {"series": 1, "abnormal": 1, "open_incidents": 1, "anomaly": 1}
    assert view.heartbeat().refused == 2, "a message without a score and one without a key are skipped"


def test_of_what_the_detector_has_forgotten_nothing_is_kept(mine: Settings, opened: Callable[..., Own]) -> None:
    machines = ("web-1", "web-10", "web-2")
    produce(mine, [state(name, metric, 1) for name in machines for metric in ("cpu", "_machine")])
    for name in machines:
        windows(mine, name, range(3))
    view = opened()
    stored = {key for key, _ in view.database.scan(b"")}
    producer = Producer({"bootstrap.servers": mine.kafka.bootstrap})
    for metric in ("cpu", "_machine"):
        key = orjson.dumps({"entity": "web-1", "metric": metric})
        producer.produce(mine.topic(topics.STATE), None, key=key, partition=crc32("web-1") % PARTITIONS)
    producer.flush()
    view.read_all()
    assert view.machines(10) == ["web-10", "web-2"]
    assert view.machine("web-1", 10) == []
    assert [len(each["windows"]) for each in view.machine("web-10", 10)] == [0, 3]
    left = {key for key, _ in view.database.scan(b"")}
    assert left < stored
    assert not [key for key in left if b"web-1\0" in key]


def test_what_is_gone_is_neither_abnormal_nor_an_open_incident(mine: Settings, opened: Callable[..., Own]) -> None:
    produce(mine, [state("vm-1", "_machine", 1, "absence", 51.0), state("web-1", "cpu", 1, "anomaly", 60.0)])
    view = opened()
    http = client(view)
    assert [each["host.name"] for each in http.get("/top").json()["states"]] == ["web-1", "vm-1"]
    gone = state("vm-1", "_machine", 2, "absence", 0.0) | {"incident.state": "closed"}
    produce(mine, [gone])
    view.read_all()
    assert [each["host.name"] for each in http.get("/top").json()["states"]] == ["web-1"]
    counts = http.get("/counts").json()["counts"]
    assert counts == {"series": 2, "abnormal": 1, "open_incidents": 1, "anomaly": 1, "gone": 1}
    assert http.get("/state/vm-1/_machine").json()["state"] == gone


def test_a_second_view_of_the_same_part_is_refused(mine: Settings, opened: Callable[..., Own]) -> None:
    opened(read=False)
    with pytest.raises(NewnormalError) as refused:
        Follower(mine)
    assert refused.value.code == "VIEW_UNUSABLE"


@pytest.mark.parametrize("states", [1, 40], ids=["shorter", "longer"])
def test_a_view_whose_topics_were_made_anew_forgets_what_it_has_read(mine: Settings, states: int) -> None:
    produce(mine, [state("old", "cpu", n) for n in range(5)])
    view = Own(mine)
    view.read_all()
    view.follower.close()
    names = [mine.topic(name) for name in TOPICS]
    admin = AdminClient({"bootstrap.servers": mine.kafka.bootstrap})
    for gone in admin.delete_topics(names).values():
        gone.result(30)
    until(lambda: not admin.list_topics(timeout=10).topics.keys() & set(names))
    ensure_topics(mine.kafka.bootstrap or "", {mine.topic(n): topics.config(n) for n in TOPICS}, PARTITIONS, 1)
    produce(mine, [state("new", "cpu", n) for n in range(states)])
    view = Own(mine)
    view.read_all()
    assert [(each["host.name"], each["values"]) for each in view.range("", False, b"", 10)[0]] == [("new", states - 1)]
    view.follower.close()
