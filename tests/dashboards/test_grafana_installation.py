"""`newnormal dashboards install|check --grafana`, against a server that answers as Grafana's documentation says."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dashboards.grafana.models import dashboards, data_sources
from dashboards.grafana.server import Grafana
from dashboards.panels import Site
from engine.spec.errors import NewnormalError
from pipelines.cli.guard import guarded
from pipelines.cli.main import app

OVERVIEW = "[novelties] Overview"
BEARER = "Bearer glsa_secret"


@dataclass
class Held:
    """What the server holds: folders and data sources by uid, dashboards with their folder by uid, and its writes."""

    version: str = "11.4.0"
    folders: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)
    boards: dict[str, Any] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    editor: bool = True
    elsewhere: str = ""
    url: str = ""

    def board(self, title: str) -> dict[str, Any]:
        return next(each for each in self.boards.values() if each["dashboard"]["title"] == title)


class Handler(BaseHTTPRequestHandler):
    held: Held

    def do_GET(self) -> None:
        *_, kind, uid = self.path.split("/")
        if self.held.elsewhere:
            self._redirect(self.held.elsewhere)
        elif self.path == "/api/health":
            self._send(200, {"database": "ok", "version": self.held.version})
        elif self.headers.get("Authorization") != BEARER:
            self._send(401, {"message": "Unauthorized"})
        else:
            where = {"folders": self.held.folders, "uid": self.held.boards}[kind]
            where = self.held.sources if "/datasources/" in self.path else where
            self._send(200, where[uid]) if uid in where else self._send(404, {"message": "not found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != BEARER or not self.held.editor:
            self._send(403, {"message": "You'll need additional permissions"})
        elif self.path == "/api/folders":
            self.held.folders[body["uid"]] = body
            self._send(200, body)
        elif self.path == "/api/datasources":
            self.held.sources[body["uid"]] = body
            self._send(200, {"message": "Datasource added"})
        else:
            self._save(body)

    def _save(self, body: dict[str, Any]) -> None:
        model = body["dashboard"]
        before = self.held.boards.get(model["uid"])
        if body["folderUid"] not in self.held.folders:
            self._send(400, {"message": "folder not found"})
        elif before and not body["overwrite"]:
            self._send(412, {"message": "The dashboard has been changed by someone else"})
        else:
            version = before["dashboard"]["version"] + 1 if before else 1
            model |= {"id": 7, "version": version, "liveNow": False}  # with a default that the server adds
            self.held.boards[model["uid"]] = {"dashboard": model, "meta": {"folderUid": body["folderUid"]}}
            self.held.messages.append(body["message"])
            self._send(200, {"uid": model["uid"], "status": "success", "version": version})

    def _send(self, status: int, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _redirect(self, url: str) -> None:
        self.send_response(301)
        self.send_header("Location", url)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Says nothing: the test's output is not the server's log."""


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Held]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAFANA_CREDENTIALS", BEARER.removeprefix("Bearer "))
    monkeypatch.setenv("COLUMNS", "200")
    held = Held()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Mine", (Handler,), {"held": held}))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    held.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield held
    server.shutdown()
    server.server_close()


def run(held: Held, what: str, *more: str) -> int:
    return guarded(app, ["dashboards", what, "--grafana", held.url, *more])


def test_a_second_installation_changes_nothing_and_everything_it_names_is_there(held: Held) -> None:
    assert run(held, "check") == 1 and not held.boards and not held.folders
    assert run(held, "install", "--source", "http://search:9200", "--folder", "ops") == 0
    assert run(held, "check") == 0
    writes = len(held.messages)
    assert run(held, "install", "--folder", "ops") == 0 and len(held.messages) == writes
    assert len(held.boards) == 10 and {each["meta"]["folderUid"] for each in held.boards.values()} == {"ops"}
    assert {each["url"] for each in held.sources.values()} == {"http://search:9200"}
    used = {panel["datasource"]["uid"] for each in held.boards.values() for panel in each["dashboard"]["panels"]}
    assert used == held.sources.keys() | {"${source}"}  # the Prometheus that the reader chooses
    assert set(held.messages) == {"newnormal 0.1.0"}


def test_a_new_data_source_asks_with_the_account_in_a_file_and_one_that_is_there_keeps_its_own(held: Held) -> None:
    Path("account").write_text("elastic:a:word\n")
    assert run(held, "install", "--source-credentials", "account") == 0
    for each in held.sources.values():
        assert (each["basicAuth"], each["basicAuthUser"]) == (True, "elastic")
        assert each["secureJsonData"] == {"basicAuthPassword": "a:word"}
    Path("account").write_text("other:word\n")
    assert run(held, "install", "--source-credentials", "account") == 0
    assert {each["basicAuthUser"] for each in held.sources.values()} == {"elastic"}
    Path("account").write_text("no password\n")
    held.sources.clear()
    assert run(held, "install", "--source-credentials", "account") == 2


def test_what_a_user_changed_or_moved_stays(held: Held, capsys: pytest.CaptureFixture[str]) -> None:
    run(held, "install", "--versions", "v1")
    next(iter(held.sources.values()))["basicAuth"] = True
    held.board(OVERVIEW)["dashboard"]["refresh"] = "1m"
    held.folders["elsewhere"] = {"uid": "elsewhere"}
    held.board("[novelties] Version comparison")["meta"]["folderUid"] = "elsewhere"
    capsys.readouterr()
    assert run(held, "check") == 1
    said = capsys.readouterr().out
    assert "changed by somebody: stays" in said and "would be replaced" in said
    run(held, "install")
    assert held.board(OVERVIEW)["dashboard"]["refresh"] == "1m"
    assert held.board("[novelties] Version comparison")["meta"]["folderUid"] == "elsewhere"
    assert next(iter(held.sources.values()))["basicAuth"] is True
    run(held, "install", "--replace")
    assert held.board(OVERVIEW)["dashboard"]["refresh"] == "10s" and run(held, "check") == 0


@pytest.mark.parametrize(
    ("change", "more", "code"),
    [
        ({"version": "9.5.2"}, [], "DASHBOARD_SERVER_VERSION"),
        ({"version": ""}, [], "DASHBOARD_SERVER_REFUSED"),
        ({"elsewhere": "https://127.0.0.1:1/"}, [], "DASHBOARD_SERVER_REFUSED"),
        ({"editor": False}, [], "DASHBOARD_SERVER_FORBIDDEN"),
        ({}, ["--credentials", "wrong"], "DASHBOARD_SERVER_FORBIDDEN"),
        ({}, ["--kibana", "http://127.0.0.1:1"], "USAGE_INVALID"),
    ],
)
def test_what_does_not_work_is_said(
    held: Held, change: dict[str, Any], more: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("wrong").write_text("somebody:else\n")
    for name, value in change.items():
        setattr(held, name, value)
    assert run(held, "install", *more) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{code}: ") and "glsa_secret" not in said and not held.boards


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "grafana", "http://["])
def test_an_address_without_a_grafana_is_said(url: str, held: Held, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(app, ["dashboards", "install", "--grafana", url]) == 2
    assert capsys.readouterr().err.startswith("DASHBOARD_SERVER_UNREACHABLE: ")


def test_neither_a_proxy_nor_a_login_of_the_environment_is_used(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    Path("netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", "netrc")
    assert run(held, "install") == 0


def test_an_address_of_ipv6_and_with_a_path_is_asked_as_it_is_written() -> None:
    with pytest.raises(NewnormalError, match=r"/ops/api/health"):
        Grafana("http://[::1]:1/ops/", {}).check()


def test_names_of_what_is_shown_fit_together() -> None:
    """Grafana shows an empty panel, and says nothing, if a data source, a variable or a dashboard is not there."""
    site = Site("plant.novelties")
    boards, sources = dashboards(site), {each["uid"] for each in data_sources(site, "")}
    known = {each["uid"] for each in boards}
    assert len(known | sources) == len(boards) + len(sources) and all(len(uid) <= 40 for uid in known | sources)
    for board in boards:
        names = {each["name"] for each in board["templating"]["list"]}
        for panel in board["panels"]:
            known_sources = sources | {f"${{{name}}}" for name in names}
            assert panel["targets"]
            for target in panel["targets"]:
                assert target["datasource"]["uid"] in known_sources
                assert set(re.findall(r"\$(?!__)(\w+)", target.get("query", "") + target.get("expr", ""))) <= names
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24 and place["h"] > 0
        text = json.dumps(board)
        assert {part.split("?")[0] for part in text.split('"/d/')[1:]} <= known
