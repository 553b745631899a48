"""The audit of the pinned packages tells findings, their absence, and an unreachable database apart."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.security.audit import LOCK, audit
from tests.security.serving import served


@contextmanager
def database(advisories: dict[str, dict[str, Any]], asked: dict[str, str]) -> Iterator[str]:
    """Answers as OSV does; takes what it was asked about into ``asked``: version by name."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert question["package"]["ecosystem"] == "PyPI"
            name = question["package"]["name"]
            asked[name] = question["version"]
            content = json.dumps({"vulns": [advisories[name]]} if name in advisories else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as address:
        yield f"http://{address}/v1/query"


def advisory(name: str) -> dict[str, Any]:
    """An advisory in the form of OSV (https://ossf.github.io/osv-schema)."""
    spans = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "9.9"}]}]
    package = {"name": name, "ecosystem": "PyPI"}
    return {
        "id": "PYSEC-2099-1", "summary": "it leaks", "details": "it leaks", "aliases": ["CVE-2099-1"],
        "modified": "2099-01-01T00:00:00Z", "published": "2099-01-01T00:00:00Z",
        "affected": [{"package": package, "ranges": spans}],
    }  # fmt: skip


def test_each_pinned_package_is_asked_about_and_a_finding_is_named_with_its_cure() -> None:
    asked: dict[str, str] = {}
    with database({"numpy": advisory("numpy")}, asked) as url:
        code, said = audit(LOCK, url)
    pinned = dict(line.split("==") for line in LOCK.read_text().splitlines())
    assert asked == pinned
    assert code == 1
    assert f"{len(pinned)} packages asked about, 1 with known vulnerabilities" in said
    assert f"numpy {pinned['numpy']}: PYSEC-2099-1, mended in 9.9" in said


def test_without_findings_the_exit_code_is_0(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("numpy==2.0.0\n")
    with database({}, {}) as url:
        assert audit(lock, url) == (0, "1 packages asked about, 0 with known vulnerabilities")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_database_that_cannot_be_reached_is_said_and_fails_nothing(tmp_path: Path, scheme: str) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("numpy==2.0.0\n")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    code, said = audit(lock, f"{scheme}://127.0.0.1:{port}/v1/query")
    assert (code, said.startswith("NOT AUDITED: ")) == (0, True)
