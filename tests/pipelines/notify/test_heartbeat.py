"""The sign of life for a dead man's switch, on a real HTTP server: it comes while all is well, and only then."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import structlog

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from pipelines.notify.heartbeat import Heartbeat, heartbeat_url
from tests.pipelines.notify.receivers import until


class Switch:
    """A dead man's switch: it counts what it is asked for, and answers with a status."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.status = 200
        switch = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                switch.asked.append(self.path)
                self.send_response(switch.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/ping/very-secret"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()


@pytest.fixture
def switch() -> Iterator[Switch]:
    made = Switch()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_signs_of_life_come_regularly_while_all_is_well_and_stay_away_otherwise(switch: Switch, tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"{switch.url}\n")
    given = {"notify.heartbeat_url_file": str(tmp_path / "url"), "notify.heartbeat_every": "20ms"}
    trouble, looked = [""], threading.Event()

    def now() -> str:
        looked.set()
        return trouble[0]

    with structlog.testing.capture_logs() as told:
        heartbeat = Heartbeat(load(**given).notify, now)
        heartbeat.start()
        until(lambda: len(switch.asked) >= 3)
        trouble[0] = "incidents cannot be read"
        until(lambda: any(each["event"] == "no sign of life is sent: incidents cannot be read" for each in told))
        before = len(switch.asked)
        for _ in range(3):
            looked.clear()
            until(looked.is_set)
        assert len(switch.asked) == before
        trouble[0] = ""
        until(lambda: len(switch.asked) > before)
        switch.status = 503
        until(lambda: any("status 503" in each["event"] for each in told))
        switch.status = 204
        until(lambda: told[-1]["event"] == "signs of life are sent again")
        heartbeat.stop()
        heartbeat.join(10)
    assert set(switch.asked) == {"/ping/very-secret"}
    assert len(told) <= 4, "the log says what has changed, not each attempt"
    assert "very-secret" not in str(told), "the URL may be a secret"


def test_a_switch_that_is_not_there_is_told_without_its_url_and_asked_again() -> None:
    with socket.socket() as held, structlog.testing.capture_logs() as told:
        held.bind(("127.0.0.1", 0))  # it listens to nobody, and no other process gets its port meanwhile
        url = f"http://127.0.0.1:{held.getsockname()[1]}/ping/very-secret"
        given = load(**{"notify.heartbeat_url": url, "notify.heartbeat_every": "20ms"}).notify
        assert "very-secret" not in repr(given)
        heartbeat = Heartbeat(given, lambda: "")
        heartbeat.start()
        until(lambda: bool(told))
        heartbeat.stop()
        heartbeat.join(10)
    assert [each["event"] for each in told] == ["a sign of life was not taken: ConnectError"]


def test_what_is_no_url_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("not a URL")
    with pytest.raises(NewnormalError, match="NOTIFY_SECRET"):
        heartbeat_url(load(**{"notify.heartbeat_url_file": str(tmp_path / "url")}).notify)
    with pytest.raises(NewnormalError, match="SETTING_INVALID"):
        load(**{"notify.heartbeat_url": "ftp://example.org"})
    assert heartbeat_url(load().notify) is None
