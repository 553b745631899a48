"""A view of topics that jobs of one's own write: the last row of each key, also after a restart."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from deploy.embedded.endpoints import Endpoints
from engine.formats.heartbeat import HEARTBEAT
from engine.kafka.admin import ensure_topics
from pipelines.cli.main import app
from pipelines.contracts.settings import Settings, load
from pipelines.query.view.follower import Follower
from pipelines.query.view.rows import JobTopics, Rows
from pipelines.query.view.rows_app import create_rows_app
from tests.pipelines.query.view_topics import until

pytestmark = pytest.mark.servers


class View:
    """A view in this process."""

    def __init__(self, settings: Settings, folder: Path, topics: list[str]) -> None:
        self.follower = Follower(settings, folder=folder, content=JobTopics(topics))
        self.rows = Rows(self.follower.database)
        self.http = TestClient(create_rows_app(self.rows, topics), base_url="http://localhost")

    def get(self, path: str, status: int = 200, **query: Any) -> dict[str, Any]:
        until(lambda: self.follower.step(0.05) == 0 and self.rows.age()["messages_behind"] == 0)
        answer = self.http.get(path, params=query)
        assert answer.status_code == status
        return dict(answer.json())


@pytest.fixture
def settings(endpoints: Endpoints, tmp_path: Path) -> Settings:
    return load(**{"kafka.bootstrap": endpoints.bootstrap, "state_dir": tmp_path})


@pytest.fixture
def topic(endpoints: Endpoints) -> str:
    name = f"rows-{uuid.uuid4().hex[:8]}"
    ensure_topics(endpoints.bootstrap, {name: {}}, 3, 1)
    return name


@contextmanager
def viewed(settings: Settings, folder: Path, *topics: str) -> Iterator[View]:
    view = View(settings, folder, [*topics])
    try:
        yield view
    finally:
        view.follower.close()


def write(settings: Settings, topic: str, *messages: tuple[str, bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap, "enable.idempotence": True})
    for key, value in messages:
        producer.produce(topic, value, key)
    assert producer.flush(30) == 0


def counts(topic: str, *numbers: int) -> list[tuple[str, bytes]]:
    return [(f"c/{n % 7}", orjson.dumps({"campaign": f"c/{n % 7}", "n": n})) for n in numbers]


def test_the_last_row_of_each_key_is_answered_also_by_a_view_that_starts_again(
    settings: Settings, topic: str, tmp_path: Path
) -> None:
    with viewed(settings, tmp_path / "view", topic) as view:
        write(
            settings, topic, *counts(topic, *range(20)), ("c/3", None), (HEARTBEAT.decode(), HEARTBEAT), ("c/0", b"[")
        )
        found = view.get(f"/rows/{topic}")["rows"]
        assert {row["campaign"]: row["n"] for row in found} == {f"c/{n % 7}": n for n in range(13, 20) if n % 7 != 3}
        assert view.get(f"/rows/{topic}/c%2F5")["row"]["n"] == 19
        assert view.get("/row", topic=topic, key="c/5")["row"]["n"] == 19
        assert view.get(f"/rows/{topic}/c%2F3", 404)["code"] == "VIEW_ROW_UNKNOWN"
        assert view.get("/health")["refused"] == 1
        pages, after = [], ""
        while after is not None:
            page = view.get(f"/rows/{topic}", prefix="c/", limit=4, after=after)
            pages.append([row["campaign"] for row in page["rows"]])
            after = page["next"]
        assert pages == [["c/0", "c/1", "c/2", "c/4"], ["c/5", "c/6"]]
    write(settings, topic, *counts(topic, 26))
    with viewed(settings, tmp_path / "view", topic) as view:
        assert view.get(f"/rows/{topic}/c%2F5")["row"]["n"] == 26
        assert view.get("/health")["messages"] == 1


def test_keys_of_two_topics_are_apart(settings: Settings, topic: str, endpoints: Endpoints, tmp_path: Path) -> None:
    other = f"{topic}-2"
    ensure_topics(endpoints.bootstrap, {other: {}}, 1, 1)
    write(settings, topic, ("k", b'{"n": 1}'))
    write(settings, other, ("k", b'{"n": 2}'))
    with viewed(settings, tmp_path / "view", topic, other) as view:
        assert [view.get(f"/rows/{name}/k")["row"]["n"] for name in (topic, other)] == [1, 2]
        assert len(view.get(f"/rows/{topic}")["rows"]) == 1


def test_options_of_the_detector_s_view_are_refused_beside_a_topic(settings: Settings, topic: str) -> None:
    given = ["--topic", topic, "--part", "1/2", "--kafka", str(settings.kafka.bootstrap)]
    refused = CliRunner().invoke(app, ["view", *given])
    assert refused.exit_code != 0
    assert isinstance(refused.exception, Exception)
    assert "USAGE_INVALID" in str(refused.exception) + refused.output
