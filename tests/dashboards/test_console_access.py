"""Who may use a console that others reach: who knows its token, or whom a trusted proxy names. Asked over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from dashboards.console import Access, Store, create_app
from engine.spec.errors import NewnormalError
from pipelines.contracts.access_token import access_token, console_headers
from pipelines.contracts.settings import load
from pipelines.serving.server import WebServer, serve

TOKEN = "a-token_of/32+characters=which~is"
OURS = {"X-Newnormal": "console", "Sec-Fetch-Site": "same-origin"}
CLOSED = ["/api/status", "/api/incidents", "/api/versions", "/api/heat", "/metrics", "/nowhere", "/page", "//page/a"]
OPEN_CODE = ["/page/console.css", "/page/login.js"]


@pytest.fixture(scope="module")
def console() -> Iterator[WebServer]:
    """A console with a token, on the wire."""
    server = serve(create_app(Store("http://127.0.0.1:9"), access=Access("0.0.0.0", TOKEN)), port=0)
    yield server
    server.stop()


@pytest.mark.parametrize("path", CLOSED)
@pytest.mark.parametrize(
    "headers",
    [
        {}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}, {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer"}, {"Cookie": f"newnormal_console={TOKEN}"}, {"Cookie": "newnormal_console="},
        {"X-Forwarded-User": "eve"}, {"Authorization": f"Bearer {TOKEN}x"},
    ],
    ids=str,
)  # fmt: skip
def test_without_the_token_nothing_is_told(console: WebServer, path: str, headers: dict[str, str]) -> None:
    reply = httpx.get(console.url + path, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (401, "LOGIN_REQUIRED")
    assert reply.headers["www-authenticate"] == "Bearer"


def test_a_program_sends_the_token_with_each_request(console: WebServer) -> None:
    for kind in ("Bearer", "bearer"):
        headers = {"Authorization": f"{kind} {TOKEN}"}
        assert httpx.get(f"{console.url}/api/status", headers=headers).status_code == 200
    assert httpx.get(f"{console.url}/metrics", headers=headers).status_code == 200


def test_a_browser_is_asked_for_the_token_once(console: WebServer) -> None:
    with httpx.Client(base_url=console.url) as browser:
        page = browser.get("/")
        assert (page.status_code, 'id="token"' in page.text) == (401, True)
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert [browser.get(path).status_code for path in OPEN_CODE] == [200, 200]
        wrong = browser.post("/login", json={"token": "wrong"}, headers=OURS)
        assert (wrong.status_code, wrong.json()["code"], "set-cookie" in wrong.headers) == (401, "TOKEN_WRONG", False)
        right = browser.post("/login", json={"token": TOKEN}, headers=OURS)
        assert right.status_code == 200
        cookie = right.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert TOKEN not in right.headers["set-cookie"]
        assert 'id="incidents"' in browser.get("/").text
        assert browser.get("/api/status").status_code == 200


@pytest.mark.parametrize(
    "headers", [{}, OURS | {"Origin": "http://evil.example"}, OURS | {"Sec-Fetch-Site": "cross-site"}]
)
def test_a_page_of_another_site_cannot_log_a_browser_in(console: WebServer, headers: dict[str, str]) -> None:
    reply = httpx.post(f"{console.url}/login", json={"token": TOKEN}, headers=headers)
    assert (reply.status_code, reply.json()["code"], "set-cookie" in reply.headers) == (403, "ACTION_REFUSED", False)


def test_a_cookie_ends_with_its_token() -> None:
    old, new = (
        TestClient(create_app(Store("http://127.0.0.1:9"), access=Access("127.0.0.1", token)), "http://localhost")
        for token in (TOKEN, TOKEN[::-1])
    )
    cookies = old.post("/login", json={"token": TOKEN}, headers=OURS).cookies
    new.cookies.update(cookies)
    assert old.get("/api/status").status_code == 200
    assert new.get("/api/status").status_code == 401


def test_two_consoles_of_one_machine_do_not_log_each_other_out(console: WebServer) -> None:
    other = serve(create_app(Store("http://127.0.0.1:9"), access=Access("0.0.0.0", TOKEN[::-1])), port=0)
    try:
        with httpx.Client(headers=OURS) as browser:  # it keeps cookies by machine, whatever the port
            for url, token in ((console.url, TOKEN), (other.url, TOKEN[::-1])):
                assert browser.post(f"{url}/login", json={"token": token}).status_code == 200
            assert [browser.get(f"{url}/api/status").status_code for url in (console.url, other.url)] == [200, 200]
    finally:
        other.stop()


def test_a_port_that_is_none_is_refused_and_breaks_nothing(console: WebServer) -> None:
    headers = {"Host": "localhost:99999", "Cookie": "newnormal_console=x"}
    assert httpx.get(f"{console.url}/api/status", headers=headers).status_code in (400, 401)


def test_the_name_check_comes_before_the_token(console: WebServer) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}
    reply = httpx.get(f"{console.url}/api/status", headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (400, "HOST_REFUSED")


def test_who_knows_the_token_can_say_something_and_names_himself() -> None:
    said: list[Any] = []

    class Written:
        def acknowledge(self, *given: Any) -> None:
            said.append(given)

    access = Access("0.0.0.0", TOKEN, "X-Forwarded-User")
    app = create_app(Store("http://127.0.0.1:9"), actions=Written(), access=access)  # type: ignore[arg-type]
    client = TestClient(app, "http://localhost", headers=OURS | {"Authorization": f"Bearer {TOKEN}"})
    body = {"incident": "ab12", "by": "ann"}
    headers = {"X-Forwarded-User": "eve"}  # the peer is no proxy, so its header says nothing
    assert client.post("/api/acknowledgement", json=body, headers=headers).status_code == 200
    assert said == [("ab12", True, "ann", "")]


@pytest.mark.parametrize(
    ("proxies", "forwarded", "status"),
    [(["127.0.0.1"], "192.0.2.7", 200), (["10.1.0.5"], "10.1.0.5", 401)],
    ids=["a proxy that says for whom it asks", "somebody who pretends to come from a proxy"],
)
def test_who_is_connected_decides_and_not_what_a_header_says(proxies: list[str], forwarded: str, status: int) -> None:
    access = Access("0.0.0.0", "", "X-Forwarded-User", proxies)
    server = serve(create_app(Store("http://127.0.0.1:9"), access=access), port=0)
    try:
        headers = {"X-Forwarded-For": forwarded, "X-Forwarded-User": "ann"}
        assert httpx.get(f"{server.url}/api/status", headers=headers).status_code == status
    finally:
        server.stop()


def test_the_cookie_of_a_browser_that_speaks_https_to_a_proxy_goes_over_https_only(console: WebServer) -> None:
    host = console.url.removeprefix("http://")
    for scheme, secure in (("https", True), ("http", False)):
        headers = OURS | {"Origin": f"{scheme}://{host}"}
        reply = httpx.post(f"{console.url}/login", json={"token": TOKEN}, headers=headers)
        assert (reply.status_code, "secure" in reply.headers["set-cookie"].lower()) == (200, secure)


@pytest.mark.parametrize(
    ("peer", "status"), [("10.1.2.3", 200), ("10.2.0.1", 401), ("::1", 200), ("127.0.0.1", 401), ("a-name", 401)]
)
def test_the_header_is_believed_from_the_proxies_only(peer: str, status: int) -> None:
    access = Access("0.0.0.0", "", "X-Forwarded-User", ["10.1.0.0/16", "::1"])
    app = create_app(Store("http://127.0.0.1:9"), access=access)
    client = TestClient(app, "http://localhost", client=(peer, 4_711))
    assert client.get("/api/status", headers={"X-Forwarded-User": "ann"}).status_code == status
    assert client.get("/api/status", headers={"X-Forwarded-User": " "}).status_code == 401
    assert client.get("/api/status").status_code == 401


def test_a_console_that_others_reach_answers_nobody_without_a_token_or_a_proxy() -> None:
    client = TestClient(create_app(Store("http://127.0.0.1:9"), listening="0.0.0.0"), "http://localhost")
    reply = client.get("/api/status")
    assert (reply.status_code, "console.token_file" in reply.json()["detail"]) == (401, True)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "box.example"])
def test_such_a_console_is_not_even_started(host: str) -> None:
    with pytest.raises(NewnormalError) as caught:
        load(**{"console.host": host})
    assert (caught.value.code, "console.token_file" in caught.value.accepted) == ("SETTING_INVALID", True)
    for way in ({"console.token": TOKEN}, {"console.token_file": "f"}, {"console.user_header": "X-User"}):
        assert load(**{"console.host": host} | way).console.host == host


def test_the_token_comes_from_a_file_and_no_message_shows_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    console = load(**{"console.token_file": str(file)}).console
    assert access_token(console) == TOKEN
    assert console_headers(console) == {"Authorization": f"Bearer {TOKEN}"}
    assert TOKEN not in repr(load(**{"console.token": TOKEN}))
    assert access_token(load().console) == ""
    for content in ("", "short", "two lines of it\nand one more which is long"):
        file.write_text(content)
        with pytest.raises(NewnormalError) as caught:
            access_token(console)
        assert caught.value.code == "CONSOLE_TOKEN"
        assert content == "" or content not in str(caught.value)
    with pytest.raises(NewnormalError, match="No such file"):
        access_token(load(**{"console.token_file": str(tmp_path / "none")}).console)
    with pytest.raises(NewnormalError) as caught:
        load(**{"console.token": TOKEN, "console.token_file": str(file)})
    assert TOKEN not in str(caught.value)
