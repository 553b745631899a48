"""`newnormal doctor` says what it found, what to do, and by its exit code whether something is broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.contracts.settings import load
from pipelines.doctor.examination import OF_ELASTICSEARCH, OF_KAFKA

Run = Callable[..., tuple[int, str, str]]


def files(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def test_where_nothing_was_ever_started_nothing_is_broken_and_nothing_is_created(run: Run, tmp_path: Path) -> None:
    before = files(tmp_path)
    code, out, _ = run("doctor", "--json")
    told = json.loads(out)
    assert (code, told["status"]) == (0, "findings")
    (absent,) = [each for each in told["findings"] if each["code"] == "SERVERS_ABSENT"]
    assert absent["severity"] == "note"
    assert "newnormal run" in absent["do"]
    assert files(tmp_path) == before


def test_a_server_that_does_not_answer_is_one_finding_each_and_broken(run: Run) -> None:
    away = ("--kafka", "127.0.0.1:1", "--elasticsearch", "http://127.0.0.1:1")
    code, out, _ = run("doctor", "--json", *away)
    told = json.loads(out)
    assert (code, told["status"]) == (1, "broken")
    broken = {each["code"]: each for each in told["findings"] if each["severity"] == "broken"}
    assert broken.keys() == {"KAFKA_UNREACHABLE", "ELASTICSEARCH_UNREACHABLE"}
    assert f"{len(OF_KAFKA)} checks were not made" in broken["KAFKA_UNREACHABLE"]["what"]
    assert f"{len(OF_ELASTICSEARCH)} checks were not made" in broken["ELASTICSEARCH_UNREACHABLE"]["what"]
    code, out, _ = run("doctor", *away)
    assert code == 1
    assert "KAFKA_UNREACHABLE" in out
    assert "2 broken" in out
    assert max(map(len, out.splitlines())) <= 80


def test_wrong_settings_are_findings_and_the_checks_without_them_are_made(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEWNORMAL_WINDOW__SIZE", "10 parsecs")
    monkeypatch.setenv("NEWNORMAL_KAFKA__PARTITIONS", "0")
    code, out, err = run("doctor", "--json")
    (finding,) = [each for each in json.loads(out)["findings"] if each["severity"] == "broken"]
    assert (code, finding["code"], err) == (1, "SETTING_INVALID", "")
    assert "window.size" in finding["what"] and "kafka.partitions" in finding["what"]
    assert "10 parsecs" in run("doctor")[1]


def test_what_the_next_start_would_refuse_is_broken_although_no_server_runs(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = load().folder("checkpoints") / "extractor"
    folder.mkdir(parents=True)
    (folder / "metadata").write_text('{"id": "x"}')
    (folder / "layout.json").write_text('{"shards": 2, "format": 5}')
    (folder / "settings.json").write_text('{"window.size": "1m"}')
    code, out, _ = run("doctor", "--json")
    finding = json.loads(out)["findings"][0]
    assert (code, finding["code"]) == (1, "SETTINGS_FIXED")
    assert "window.size = 10s, but the state of extractor was made with 1m" in finding["what"]
    monkeypatch.setenv("NEWNORMAL_WINDOW__SIZE", "1m")
    assert run("doctor", "--json")[0] == 0
