"""Who is answered over HTTP: who has the token, at names of this server, and no page of another host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer
from starlette.testclient import TestClient

from pipelines.contracts.settings import load
from pipelines.questions.serving import PATH, http_app

TOKEN = "a-token-of-this-test-only"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
KNOWN = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    view = load(**{"view.token": TOKEN, "view.hosts": "newnormal.example.org"}).view
    with TestClient(http_app(MCPServer("test"), view), base_url="http://localhost:8897") as started:
        yield started


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 200, ""),
        ({"Origin": "http://localhost:3000"}, 200, ""),
        ({"Origin": "https://newnormal.example.org"}, 200, ""),
        ({"Host": "newnormal.example.org"}, 200, ""),
        ({"Authorization": ""}, 401, "VIEW_TOKEN_REQUIRED"),
        ({"Authorization": "Bearer another"}, 401, "VIEW_TOKEN_REQUIRED"),
        ({"Authorization": f"Basic {TOKEN}"}, 401, "VIEW_TOKEN_REQUIRED"),
        ({"Host": "evil.example"}, 400, "VIEW_HOST_REFUSED"),
        ({"Host": "localhost.evil.example"}, 400, "VIEW_HOST_REFUSED"),
        ({"Host": ""}, 400, "VIEW_HOST_REFUSED"),
        ({"Origin": "http://evil.example"}, 403, "VIEW_HOST_REFUSED"),
        ({"Origin": "null"}, 403, "VIEW_HOST_REFUSED"),
        ({"Origin": "http://["}, 403, "VIEW_HOST_REFUSED"),
        ({"Origin": "http://localhost@evil.example"}, 403, "VIEW_HOST_REFUSED"),
    ],
)
def test_who_is_answered(client: TestClient, headers: dict[str, str], status: int, code: str) -> None:
    answer = client.post(PATH, json=LIST, headers=KNOWN | headers)
    found: dict[str, Any] = answer.json()
    assert (answer.status_code, found.get("code", "")) == (status, code), found
    assert status != 200 or "result" in found or "error" in found


def test_a_body_that_is_too_large_or_no_json_is_refused(client: TestClient) -> None:
    huge = client.post(PATH, content=b'"' + b"x" * 200_000 + b'"', headers=KNOWN | {"Content-Type": "application/json"})
    broken = client.post(PATH, content=b"{", headers=KNOWN | {"Content-Type": "application/json"})
    assert (huge.status_code, broken.status_code) == (413, 400)
    assert "Traceback" not in huge.text + broken.text
