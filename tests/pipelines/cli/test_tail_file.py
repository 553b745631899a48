"""`newnormal tail-file` writes the lines of files as records of their machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipelines.cli.main import app
from pipelines.formats.rules import Rules
from pipelines.formats.tailed import TailedLines


def test_lines_of_all_kinds_are_written_once_though_it_is_started_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEWNORMAL_STATE_DIR", str(tmp_path / "state"))
    log = tmp_path / "shop.log"
    log.write_text("2026-11-26T09:07:30.5Z ERROR no entry\n  at x\nNov 26 09:07:30 web-1 sshd[7]: error: no\nhi\n")
    command = ["tail-file", str(log), "--machine", "edge", "--from-start", "--duration", "400ms", "--every", "100ms"]
    for run, expected in (("first", 3), ("second", 0)):
        done = CliRunner().invoke(app, [*command, "--to", str(tmp_path / run)])
        assert done.exit_code == 0, done.output
        lines = [json.loads(line) for line in (tmp_path / run / "logs.json").read_text().splitlines()]
        assert len(lines) == expected
        if run == "first":
            assert [(line["host.name"], line["process.name"], line["message"]) for line in lines] == [
                *(("edge", "shop", "no entry\n  at x"), ("web-1", "sshd", "error: no"), ("edge", "shop", "hi"))
            ]
            assert (lines[0]["@timestamp"], lines[0]["log.syslog.severity.code"]) == (1_795_684_050_500, 3)


@pytest.mark.parametrize(
    ("line", "severity", "text"),
    [
        (b"2026-11-26 09:07:30,123 WARN org.x.Foo: hello", 4, "org.x.Foo: hello"),
        (b"[2026-11-26T09:07:30Z] starting", 6, "starting"),
        (b"2026-11-26T09:07:30Z INFO main: x", 6, "main: x"),
        (b"CRITICAL no disk", 2, "no disk"),
        (b"Errors: none", 6, "Errors: none"),
        (b'{"level":"error","msg":"x","time":"2026-11-26T09:07:30Z"}', 3, "x"),
        (b"Nov 26 09:07:30 edge shop[7]: one\n two", 6, "one\n two"),
        (b"\xff", 6, "\ufffd"),
    ],
)
def test_a_line_of_any_application_is_used(line: bytes, severity: int, text: str) -> None:
    frame, left = TailedLines("edge", Rules()).read("/var/log/shop.log", [line], 1_795_770_900_000)
    assert frame.select("entity", "program", "severity", "message").rows() == [("edge", "shop", severity, text)]
    assert left == 0
