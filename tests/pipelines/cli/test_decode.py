"""`newnormal decode` says of each message of a file what it becomes, and counts them."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from pipelines.cli.guard import guarded
from pipelines.cli.main import app
from tests.pipelines.formats.examples import GOOD


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = guarded(app, ["decode", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_each_message_is_shown_with_its_format_and_what_it_becomes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "messages.txt"
    file.write_bytes(b"cpu,host=a usage=1.5 1795220820013\n\n" + GOOD["rsyslog"][0] + b"\nhello\ncpu usage=1\n")
    code, out, _ = run(capsys, str(file))
    assert code == 1
    assert f"{file}:1 influx: 1 samples\n  2026-11-21T00:27:00.013Z  a  cpu.usage  1.5  gauge\n" in out
    assert f"{file}:2 rsyslog: 1 log lines\n  2026-11-21T00:28:54.500Z  a  sshd  warning  no\n" in out
    assert f"{file}:3 unknown format: refused\n  FORMAT_UNKNOWN: " in out
    assert f"{file}:4 influx: refused\n  MACHINE_UNKNOWN: " in out
    assert "4 messages: 1 samples of 1 series of 1 machines, 1 log lines, 2 messages refused" in out


def test_a_file_of_prometheus_text_is_one_message_and_json_has_the_names_of_the_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "node.prom"
    file.write_text('# TYPE n counter\nn{host="a"} 5 1795220820013\nload{host="a"} 0.5 1795220820013\n')
    code, out, _ = run(capsys, str(file), "--json")
    shown = orjson.loads(out)
    assert (code, shown["format"], shown["refused"]) == (0, "prometheus", [])
    assert [(row["host.name"], row["metric"], row["kind"]) for row in shown["samples"]] == [
        ("a", "n", "counter"),
        ("a", "load", "gauge"),
    ]


def test_json_over_several_lines_and_protobuf_are_one_message_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pretty, binary = tmp_path / "a.json", tmp_path / "b.bin"
    pretty.write_bytes(orjson.dumps(orjson.loads(GOOD["telegraf"][0]), option=orjson.OPT_INDENT_2))
    binary.write_bytes(GOOD["otlp"][0])
    code, out, _ = run(capsys, str(pretty), str(binary), "--json")
    first, second = map(orjson.loads, out.splitlines())
    assert (code, first["format"], second["format"]) == (0, "telegraf", "otlp")
    assert (len(first["samples"]), len(second["samples"])) == (1, 2)


def test_a_time_that_the_job_would_refuse_is_refused_here_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "late.txt"
    file.write_text("cpu,host=a usage=1 -5\n")
    code, out, _ = run(capsys, str(file))
    assert code == 1
    assert "TIME_TOO_EARLY" in out


def test_a_named_format_holds_for_all_messages_and_an_unknown_name_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "messages.txt"
    file.write_bytes(GOOD["telegraf-logs"][0] + b"\n")
    _, out, _ = run(capsys, str(file), "--format", "telegraf-logs")
    assert "sshd  error  no" in out
    code, _, err = run(capsys, str(file), "--format", "nothing")
    assert code == 2
    assert "FORMAT_NAME_UNKNOWN: nothing" in err
    code, _, err = run(capsys, str(tmp_path / "absent"))
    assert code == 2
    assert "FILE_UNUSABLE" in err
