"""The login at the embedded Elasticsearch, really started: who does not know the password is refused everything."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deploy.compose import passwords
from deploy.embedded import login, services, start_plan, state_file
from deploy.embedded.elasticsearch import runtime_dir
from deploy.embedded.endpoints import Endpoints
from deploy.progress import silent
from engine.address import client_options
from engine.spec.errors import NewnormalError
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.settings import Settings, load

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@pytest.fixture
def clean(settings: Settings) -> Iterator[Settings]:
    """Settings whose servers are stopped and whose data outside the state directory are removed at the end."""
    yield settings
    services.down(settings)
    shutil.rmtree(runtime_dir(settings.state / "elasticsearch"), ignore_errors=True)


def asked(url: str, path: str, method: str = "GET", **headers: str) -> int:
    """The status with which a server answers, without a login of ours."""
    request = urllib.request.Request(f"{url!s}{path}", method=method, headers=headers)
    try:
        with DIRECT.open(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def start(settings: Settings) -> str:
    """Starts Elasticsearch alone; returns its address, with the login."""
    return services.up(settings, kafka=False, say=silent).endpoints.elasticsearch_url


@pytest.mark.servers
def test_no_web_page_and_no_stranger_is_let_in(endpoints: Endpoints) -> None:
    """What a page of any site can send to 127.0.0.1, also by a name of its own that leads there."""
    whole = urlsplit(endpoints.elasticsearch_url)
    url, index = f"http://{whole.hostname}:{whole.port}", f"kept-{uuid.uuid4().hex[:8]}"
    wrong = base64.b64encode(b"elastic:changeme").decode()
    with elasticsearch_client(endpoints.elasticsearch_url) as client:
        client.index(index=index, id="1", document={"a": "document"}, refresh=True)
        for headers in (
            {},
            {"Host": "evil.example"},
            {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
            {"Authorization": f"Basic {wrong}"},
        ):
            for method, path in (("GET", "/_cluster/health"), ("POST", f"/{index}/_close"), ("DELETE", f"/{index}")):
                assert asked(url, path, method, **headers) == 401, (method, path, headers)
        assert client.get(index=index, id="1")["_source"] == {"a": "document"}
        client.indices.delete(index=index)


@pytest.mark.servers
@pytest.mark.slow
def test_data_of_a_server_without_a_login_are_served_by_one_with_it_and_commands_find_the_password(
    clean: Settings,
) -> None:
    """The first start is that of an older version, which had no login."""
    open_to_all = load(state_dir=clean.state, **{"embedded.elasticsearch_login": False})
    url = start(open_to_all)
    assert client_options(url) == {} and not (clean.state / login.FILE).exists()
    with elasticsearch_client(url) as client:
        client.index(index="kept", id="1", document={"a": "document"}, refresh=True)
    assert asked(url, "/kept/_search", Origin="http://evil.example") == 200, "what a web page could do"
    passwords.generate(clean.state / "passwords")
    assert not passwords.tell(clean.state / "passwords", str(url)), "without logins, Kibana's account has no password"
    services.down(open_to_all)

    url = start(clean)
    assert asked(url, "/kept/_search") == 401
    with elasticsearch_client(url) as client:
        assert client.get(index="kept", id="1")["_source"] == {"a": "document"}
    command = [sys.executable, "-m", "pipelines.cli.main", "doctor", "--json", "--state-dir", str(clean.state)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False).stdout
    codes = {finding["code"] for finding in json.loads(shown)["findings"]}
    assert "ELASTICSEARCH_YELLOW" in codes, "of the index that was made without a number of replicas"
    assert not codes & {"ELASTICSEARCH_REFUSED", "ELASTICSEARCH_UNREACHABLE"}


def test_a_generated_password_is_new_for_each_state_directory_stays_and_is_read_by_its_owner_alone(
    tmp_path: Path,
) -> None:
    files = [start_plan.password_file(load(state_dir=tmp_path / name)) for name in ("a", "b", "a")]
    words = [login.password(file) for file in files]
    assert words[0] != words[1] and words[0] == words[2] and min(map(len, words)) >= 32
    assert stat.S_IMODE(Path(files[0]).stat().st_mode) == 0o600
    assert words[0] not in login.users(words[0]), "Elasticsearch's file holds a hash"


def test_a_link_that_somebody_put_in_the_place_of_the_file_is_not_written_through(tmp_path: Path) -> None:
    victim, file = tmp_path / "victim", tmp_path / "state" / login.FILE
    file.parent.mkdir()
    file.symlink_to(victim)
    login.generate(file)
    assert not victim.exists()


def test_a_chosen_password_is_used_and_one_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    chosen = tmp_path / "word"
    settings = load(state_dir=tmp_path, **{"embedded.elasticsearch_password_file": str(chosen)})
    with pytest.raises(NewnormalError, match="LOGIN_FILE"):
        start_plan.password_file(settings)
    chosen.write_text("a word of mine\n")
    assert login.password(start_plan.password_file(settings)) == "a word of mine"
    assert not (tmp_path / login.FILE).exists()


def test_servers_that_an_older_version_has_started_are_asked_without_a_password() -> None:
    old = state_file.Running(1, 0.0, None, (state_file.Server("elasticsearch", "http://127.0.0.1:9200", 1, 0.0),))
    assert client_options(old.endpoints.elasticsearch_url) == {}


def test_the_password_stands_neither_in_what_status_shows_nor_in_the_file_of_the_servers(tmp_path: Path) -> None:
    file = start_plan.password_file(load(state_dir=tmp_path))
    server = state_file.Server("elasticsearch", "http://127.0.0.1:9200", 1, 0.0, 0, file)
    state_file.write(tmp_path, state_file.Running(1, 0.0, None, (server,)))
    assert login.password(file) not in (tmp_path / "services.json").read_text()
    found = state_file.read_last(tmp_path)
    assert found is not None
    address = found.endpoints.elasticsearch_url
    assert (str(address), client_options(address)["basic_auth"]) == (
        "http://127.0.0.1:9200",
        ("elastic", login.password(file)),
    )


@pytest.mark.servers
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "CONNECT"])
def test_kafka_closes_the_connection_of_a_browser(endpoints: Endpoints, method: str) -> None:
    """A page chooses the body only: the first bytes are a request line, for Kafka a length beyond its limit."""
    host, port = endpoints.bootstrap.split(":")
    body = b"\x00\x00\x00\x0c\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff\x00\x00"  # a request of Kafka's, as text/plain
    head = f"{method} / HTTP/1.1\r\nHost: {endpoints.bootstrap}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, int(port)), 10) as browser:
        browser.sendall(head.encode() + body)
        with suppress(ConnectionResetError):
            assert browser.recv(100) == b"", "Kafka answers nothing"
