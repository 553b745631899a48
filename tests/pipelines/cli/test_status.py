"""`newnormal status` finds what runs for a state directory and says whether it is well."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from dashboards.console import Store, create_app
from engine.runtime.shard import Stats
from engine.spark.query import BatchReport
from pipelines.contracts.settings import load
from pipelines.notify.figures import ChannelFigures
from pipelines.notify.status import StatusFile
from pipelines.runtime.processes import announced, job_processes
from pipelines.runtime.status import StatusCollector
from pipelines.serving.server import serve

Run = Callable[..., tuple[int, str, str]]


def test_where_nothing_runs_it_says_so_and_ends_with_3(run: Run) -> None:
    code, out, _ = run("status")
    assert code == 3
    assert "no job runs" in out
    code, out, _ = run("status", "--json")
    assert (code, json.loads(out)["processes"]) == (3, [])


def test_it_shows_each_job_with_rate_lag_watermark_and_last_error_and_why_it_is_not_well(run: Run) -> None:
    board = StatusCollector(["extractor", "sink"], live_from=0, delay_ms=0)
    stats = Stats(records_in=300, records_out=1, late=2, dead=3, watermark=5_000, state_bytes=100, shard=0)
    board.batch(BatchReport("extractor", 1, (stats,), 0.5))
    board.failed("sink", "Elasticsearch was gone\x1b[2J")
    nobody = Store("http://127.0.0.1:1")
    server = serve(create_app(nobody, lambda: board.status({"extractor": 12, "sink": None}, ()).to_dict()), port=0)
    try:
        with announced(load(), server.url, ["extractor", "sink"]):
            code, out, _ = run("status")
            told = json.loads(run("status", "--json")[1])
            elsewhere = run("status", "--namespace", "other.")
    finally:
        server.stop()
        nobody.close()
    assert code == 1, "Elasticsearch does not answer"
    assert "ELASTICSEARCH_UNREACHABLE" in out
    assert "sink: last error: Elasticsearch was gone\\u001b[2J" in out
    row = next(line for line in out.splitlines() if line.lstrip().startswith("extractor")).split()
    assert row[2:5] == ["12", "1970-01-01", "00:00:05"]
    assert "unknown" in next(line for line in out.splitlines() if line.lstrip().startswith("sink  "))
    assert max(map(len, out.splitlines()[2:5])) <= 80
    (process,) = told["processes"]
    assert [job["name"] for job in process["jobs"]] == ["extractor", "sink"]
    assert process["jobs"][0]["lag"] == 12
    assert process["jobs"][1]["last_error"].startswith("Elasticsearch was gone")
    assert told["status"] == "unwell"
    assert elsewhere[0] == 3, "the jobs of another namespace are not these"


def test_it_shows_who_is_told_of_incidents_and_who_is_not(run: Run) -> None:
    long_ago = int(time.time() * 1000) - 3_600_000
    night = ChannelFigures("night", 3, 7, 1, 2, 4, long_ago, long_ago, "it answered 503\x1b[2J")
    file = StatusFile(load(), "http://127.0.0.1:8900/metrics")
    file.write([night, ChannelFigures("mail", sent=5)])
    code, out, _ = run("status")
    lines = [line.strip() for line in out.splitlines()]
    assert code == 3, "no job runs"
    assert f"notifications by process {os.getpid()}, metrics at http://127.0.0.1:8900/metrics" in lines
    assert "night: 3 sent, 7 failed, 1 given up, 2 waiting for 1 h, 4 suppressed" in lines
    assert "not well: night has taken no message for 1 h: it answered 503\\u001b[2J" in lines
    assert "mail: 5 sent, 0 failed, 0 waiting, 0 suppressed" in lines
    told = json.loads(run("status", "--json")[1])["notifications"]
    assert [(each["name"], each["waiting"], each["failing_since"]) for each in told["channels"]] == [
        ("night", 2, long_ago), ("mail", 0, None),
    ]  # fmt: skip
    file.remove()
    assert json.loads(run("status", "--json")[1])["notifications"] is None


def test_a_process_that_starts_is_not_well_yet(run: Run) -> None:
    store = Store("http://127.0.0.1:1")
    server = serve(create_app(store), port=0)
    try:
        with announced(load(), server.url, ["sink"]):
            code, out, _ = run("status")
    finally:
        server.stop()
        store.close()
    assert code == 1
    assert "starting" in out


def test_a_process_whose_console_hangs_or_is_gone_is_not_well(run: Run) -> None:
    with announced(load(), "http://127.0.0.1:1", ["sink"]):
        code, out, _ = run("status")
    assert code == 1
    assert "does not answer" in out


def test_what_a_process_left_that_died_is_not_believed(tmp_path: Path) -> None:
    settings = load()
    folder = settings.folder("processes")
    folder.mkdir(parents=True)
    (folder / "4194303.json").write_text('{"pid": 4194303, "started": 1.0, "url": "http://x", "jobs": []}')
    (folder / "12.json").write_text("{")
    with announced(settings, "http://me", ["sink"]):
        assert [process.url for process in job_processes(settings)] == ["http://me"]
    assert job_processes(settings) == []
    assert list(folder.iterdir()) == []


def test_the_version_is_that_of_the_package(run: Run) -> None:
    code, out, _ = run("--version")
    assert (code, out) == (0, f"newnormal {metadata.version('newnormal')}\n")


LOGS = """
import structlog
from pipelines.cli import log_output
log_output.configure()
log = structlog.get_logger()
log.debug("quiet"), log.info("usual", job="sink"), log.warning("odd", job="sink")
"""


def logged(**environ: str) -> list[str]:
    """What a process with these settings logs."""
    done = subprocess.run(
        [sys.executable, "-c", LOGS], env=os.environ | environ, capture_output=True, text=True, check=True
    )
    return done.stderr.splitlines()


def test_logs_are_lines_from_info_on_with_the_time_in_utc() -> None:
    usual, odd = logged()
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \[info +\] usual +job=sink", usual)
    assert "[warning  ] odd" in odd


def test_logs_are_json_from_the_level_that_the_settings_name() -> None:
    (line,) = logged(NEWNORMAL_LOG__FORMAT="json", NEWNORMAL_LOG__LEVEL="warning")
    told = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", told.pop("timestamp"))
    assert told == {"event": "odd", "level": "warning", "job": "sink"}


def test_an_error_is_a_json_line_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWNORMAL_LOG__FORMAT", "json")
    code, out, said = run("tail", "novelties")
    assert (code, out) == (2, "")
    told = json.loads(said)
    assert (told["code"], told["level"]) == ("SERVERS_ABSENT", "error")
    assert "newnormal run" in told["accepted"]
