"""Who may ask a state view that others reach: who knows its token. Asked over HTTP, of views on a real Kafka."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

from deploy.embedded.endpoints import Endpoints
from engine.columns.partitioning import crc32
from engine.spec.errors import NewnormalError
from pipelines.cli.state_view import AskedView
from pipelines.contracts.access_token import access_token
from pipelines.contracts.settings import Settings, load
from pipelines.query.view.app import create_app
from pipelines.query.view.client import ViewClient
from pipelines.query.view.part import Part
from pipelines.serving.server import WebServer, address, listening
from tests.pipelines.query.view_topics import PARTITIONS, Own, produce, state, with_topics

TOKEN = "a-token_of/32+characters=which~is"


@pytest.fixture
def mine(endpoints: Endpoints, tmp_path: Path) -> Settings:
    return with_topics(endpoints, tmp_path)


@pytest.mark.servers
def test_only_who_shows_the_token_is_answered_also_by_the_part_that_has_the_machine(mine: Settings) -> None:
    hosts = [f"h{n}" for n in range(6)]
    produce(mine, [state(host, "cpu") for host in hosts])
    views = [Own(mine, Part(n, 2)) for n in (1, 2)]
    listeners = [listening("127.0.0.1", 0, "view") for _ in views]
    urls = [address(each) for each in listeners]
    servers = []
    for view, listener in zip(views, listeners, strict=True):
        view.read_all()
        servers.append(WebServer(create_app(view, peers=urls, token=TOKEN, reached="0.0.0.0"), listener))
    try:
        for path in ("/counts", "/health", "/openapi.json", "/state/h0/cpu", "/nowhere"):
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}, {"Cookie": TOKEN}):
                reply = httpx.get(urls[0] + path, headers=headers)
                assert (reply.status_code, reply.json()["code"]) == (401, "VIEW_TOKEN_REQUIRED")
                assert reply.headers["www-authenticate"] == "Bearer"
        known = ViewClient(urls[:1], TOKEN)
        assert {crc32(host) % PARTITIONS % 2 for host in hosts} == {0, 1}, "both parts have some"
        for host in hosts:
            assert known.one("/state", entity=host, metric="cpu")["state"]["host.name"] == host
        with pytest.raises(NewnormalError) as caught:
            ViewClient(urls).every("/counts")
        assert caught.value.code == "VIEW_TOKEN_REQUIRED"
        port = int(urls[0].rpartition(":")[2])
        asked = AskedView(load(**{"view.port": port, "view.token": TOKEN})).series(hosts[0], "cpu")
        assert asked["state"]["host.name"] == hosts[0], "the console shows the token by itself"
    finally:
        for view, server in zip(views, servers, strict=True):
            server.stop()
            view.follower.close()


@pytest.mark.servers
def test_a_view_that_others_reach_answers_nobody_without_a_token(mine: Settings) -> None:
    view = Own(mine)
    client = TestClient(create_app(view, reached="192.0.2.7"), base_url="http://localhost")
    assert client.get("/counts", headers={"Authorization": "Bearer "}).status_code == 401
    view.follower.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "box.example"])
def test_such_a_view_is_not_even_started(host: str) -> None:
    with pytest.raises(NewnormalError) as caught:
        load(**{"view.host": host})
    assert (caught.value.code, "view.token_file" in caught.value.accepted) == ("SETTING_INVALID", True)
    for way in ({"view.token": TOKEN}, {"view.token_file": "f"}, {"view.published": "127.0.0.1"}):
        assert load(**{"view.host": host} | way).view.host == host
    with pytest.raises(NewnormalError, match=r"view\.published"):
        load(**{"view.published": host})


def test_the_token_comes_from_a_file_and_no_message_shows_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert access_token(load(**{"view.token_file": str(file)}).view) == TOKEN
    assert TOKEN not in repr(load(**{"view.token": TOKEN}))
    file.write_text("short")
    with pytest.raises(NewnormalError) as caught:
        access_token(load(**{"view.token_file": str(file)}).view)
    assert (caught.value.code, "short" in str(caught.value)) == ("VIEW_TOKEN", False)
    with pytest.raises(NewnormalError) as caught:
        load(**{"view.token": TOKEN, "view.token_file": str(file)})
    assert TOKEN not in str(caught.value)
