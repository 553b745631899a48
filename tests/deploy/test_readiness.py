"""An embedded node is ready when it answers itself: a stranger on its port, which came first, is not taken for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from deploy.embedded.elasticsearch import Elasticsearch, runtime_dir
from deploy.embedded.ports import HOST


@pytest.fixture
def answers() -> Iterator[dict[str, object]]:
    """What a server on a port of its own, ``port``, says by the beginning of the path."""
    said: dict[str, object] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(next(answer for path, answer in said.items() if self.path.startswith(path))).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said["port"] = server.server_port
        yield said
        server.shutdown()


@pytest.mark.parametrize(
    ("ours", "status", "ready"), [(True, "green", True), (True, "red", False), (False, "green", False)]
)
def test_a_node_is_ready_when_it_is_ours_and_can_be_read_and_written(
    tmp_path: Path, answers: dict[str, object], ours: bool, status: str, ready: bool
) -> None:
    def node(folder: str) -> Elasticsearch:
        return Elasticsearch("java", "home", str(tmp_path / folder), "64m")

    mine = node("mine")
    name = mine.node_name if ours else node("another's").node_name
    answers |= {"/_nodes/_local": {"nodes": {"x": {"name": name}}}, "/_cluster/health": {"status": status}}
    assert mine.is_ready({"port": int(str(answers["port"]))}) == ready
    assert runtime_dir(tmp_path / "mine") != runtime_dir(tmp_path / "another's")
