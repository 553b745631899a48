"""Commands that only read: they start no servers, and show every topic in one form, in 80 columns."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import psutil
import pytest

from datagen.kafka_writer import KafkaWriter
from deploy.embedded import state_file
from deploy.embedded.endpoints import Endpoints
from deploy.embedded.services import running
from engine.formats import columnar
from engine.formats.heartbeat import HEARTBEAT
from engine.kafka.admin import ensure_topics
from pipelines.cli import rows
from pipelines.contracts import topics
from pipelines.contracts.records import Novelty, Rule
from pipelines.contracts.settings import load

Run = Callable[..., tuple[int, str, str]]
T0 = 1_700_000_000_000

LOOKING = {
    "tail": ["tail", "novelties"],
    "sql": ["sql", "SELECT * FROM novelties"],
    "sql --live": ["sql", "--live", "SELECT count(*) FROM tumble(novelties, window_end, '1m') GROUP BY window_end"],
    "rule list": ["rule", "list"],
    "rule remove": ["rule", "remove", "x"],
    "rule add": ["rule", "add", "x", "--skip-result"],
    "label list": ["label", "list"],
    "label add": ["label", "add", "true", "db-1"],
    "topology list": ["topology", "list"],
    "topology place": ["topology", "place", "vm-1", "--on", "host-1"],
    "evaluate": ["evaluate"],
    "compare": ["compare", "v1", "v2"],
    "deadletter": ["deadletter", "list"],
    "incidents list": ["incidents", "list"],
    "incidents acknowledge": ["incidents", "acknowledge", "x"],
    "notify run": ["notify", "run"],
    "console": ["console"],
    "view": ["view"],
}  # fmt: skip


@pytest.mark.parametrize("command", LOOKING)
def test_where_no_server_runs_the_command_says_so_and_starts_none(command: str, run: Run, tmp_path: Path) -> None:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    code, _, said = run(*LOOKING[command], "--state-dir", str(tmp_path / "mine"))
    assert code == 2
    assert "SERVERS_ABSENT" in said
    assert "newnormal run" in said
    assert "newnormal services up" in said
    assert str(tmp_path / "mine") in " ".join(said.split()).replace("/ ", "/")
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before
    assert not (tmp_path / "mine").exists()


def test_servers_of_the_state_directory_are_found_and_a_named_one_goes_first() -> None:
    settings = load()
    (settings.state).mkdir(parents=True)
    mine = psutil.Process()
    servers = (
        state_file.Server("kafka", "127.0.0.1:1234", mine.pid, mine.create_time()),
        state_file.Server("elasticsearch", "http://127.0.0.1:1235", mine.pid, mine.create_time()),
    )
    state_file.write(settings.state, state_file.Running(os.getpid(), mine.create_time(), None, servers))
    found = running(settings)
    assert (found.kafka.bootstrap, found.elasticsearch.url) == ("127.0.0.1:1234", "http://127.0.0.1:1235")


def test_a_table_that_does_not_fit_shows_its_rows_one_below_the_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    values = {f"column_{n}": f"value number {n}" for n in "abcdefghijkl"}
    rows.frame(pl.DataFrame([values, values]))
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert all(shown.count(value) == 2 for value in values.values())
    rows.frame(pl.DataFrame([{"entity": "[red]a\x1b[2J", "window_end": T0, "value": 1.23456789}]))
    shown = capsys.readouterr().out
    assert "[red]a\\u001b[2J" in shown
    assert "2023-11-14T22:13:20.000Z" in shown
    assert "1.234568" in shown


def novelty(entity: str, kind: str, score: float, end: int) -> bytes:
    fields = {"entity": entity, "metric": "cpu", "window_start": end - 10_000, "window_end": end, "kind": kind}
    return Novelty(**fields, record_score=score, probability=0.5, evidence={"point": 1.5}).to_json()


@pytest.fixture
def site(endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Endpoints:
    """Topics with a few records of each form, addresses in the environment."""
    space = f"look{abs(hash(request.node.name)) % 10**6}."
    monkeypatch.setenv("NEWNORMAL_NAMESPACE", space)
    monkeypatch.setenv("NEWNORMAL_KAFKA__BOOTSTRAP", endpoints.bootstrap)
    wanted = {space + name: config for name, config in topics.configs().items()}
    ensure_topics(endpoints.bootstrap, wanted, 1)
    features = pl.DataFrame(
        {
            "entity": ["db-1", "web-1"], "metric": "cpu", "window_start": T0, "window_end": T0 + 10_000, "count": 3,
            "kind": "gauge", **dict.fromkeys(("mean", "std", "min", "max", "last", "p50", "p95", "p99"), 1.0),
            "revision": 0,
        }
    )  # fmt: skip
    packed = columnar.encode(features.to_arrow())
    verdicts = [
        novelty("db-1", "normal", 3.0, T0), novelty("db-1", "anomaly", 91.0, T0 + 10_000), HEARTBEAT,
        novelty("web-1", "anomaly", 60.0, T0 + 20_000), b"no json \x1b[2J",
    ]  # fmt: skip
    raw = [orjson.dumps({"@timestamp": T0, "host.name": "db-1", "metric": "cpu", "value": 2.5})]
    truth = [orjson.dumps({"id": "x", "entity": "db-1", "start": T0, "class": "anomaly"})]
    with KafkaWriter(endpoints.bootstrap) as writer:
        for topic, values in (
            (topics.NOVELTIES, verdicts), (topics.FEATURES, [packed]), (topics.RAW_JSON, raw),
            (topics.GROUNDTRUTH, truth),
        ):  # fmt: skip
            writer.write(space + topic, values, ["k"] * len(values))
    return endpoints


def lines(run: Run, *arguments: str) -> list[dict[str, Any]]:
    code, out, said = run("tail", *arguments)
    assert code == 0, said
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.servers
@pytest.mark.timeout(300)
def test_every_topic_is_shown_with_the_same_names_and_times(run: Run, site: Endpoints) -> None:
    normal, anomaly, other, broken = lines(run, "novelties", "--limit", "4")
    assert (normal["entity"], normal["window_end"]) == ("db-1", "2023-11-14T22:13:20.000Z")
    assert anomaly["evidence"] == {"point": 1.5}
    assert (other["kind"], other["record_score"]) == ("anomaly", 60.0)
    assert broken["unreadable"] == "no json \x1b[2J"
    assert broken["reason"]
    (first, _) = lines(run, "features", "--limit", "2")
    assert (first["entity"], first["window_end"]) == ("db-1", "2023-11-14T22:13:30.000Z")
    (raw,) = lines(run, "telemetry.json", "--limit", "1")
    assert raw == {"time": "2023-11-14T22:13:20.000Z", "entity": "db-1", "metric": "cpu", "value": 2.5}
    (truth,) = lines(run, "groundtruth", "--limit", "1")
    assert (truth["entity"], truth["start"]) == ("db-1", "2023-11-14T22:13:20.000Z")
    assert "\x1b" not in run("tail", "novelties", "--limit", "4")[1], "hostile text steers no terminal"


@pytest.mark.servers
@pytest.mark.timeout(300)
def test_tail_shows_only_what_is_asked_for(run: Run, site: Endpoints) -> None:
    def ends(*arguments: str) -> list[str]:
        return [row["entity"] for row in lines(run, "novelties", "--from-beginning", *arguments)]

    assert ends("--kind", "anomaly", "--limit", "2") == ["db-1", "web-1"]
    assert ends("--kind", "anomaly", "--kind", "normal", "--limit", "3") == ["db-1", "db-1", "web-1"]
    assert ends("--entity", "w*", "--limit", "1") == ["web-1"]
    assert ends("--where", "record_score > 50 AND entity = 'db-1'", "--limit", "1") == ["db-1"]
    assert ends("--where", f"window_end > {T0 + 15_000}", "--limit", "1") == ["web-1"]
    code, _, said = run("tail", "novelties", "--where", "score > 50")
    assert code == 2
    assert "SQL_INVALID" in said
    assert "record_score" in said


@pytest.mark.servers
@pytest.mark.timeout(300)
def test_tail_says_that_it_waits_for_more_records_than_there_are(site: Endpoints) -> None:
    command = [sys.executable, "-m", "pipelines.cli.main", "tail", "groundtruth", "--limit", "100"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, shells have it ignored
    try:
        started = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, before)
    with started as tail:
        assert tail.stderr is not None
        assert tail.stderr.readline() == "1 of 100 so far; waiting for more, Ctrl-C ends it\n"
        tail.send_signal(signal.SIGINT)
        assert tail.communicate(timeout=60)[0].count("\n") == 1
        assert tail.returncode == 130


@pytest.mark.servers
@pytest.mark.timeout(300)
def test_rules_and_labels_are_listed_in_80_columns_and_as_json(run: Run, site: Endpoints) -> None:
    added = run(
        "rule", "add", "maintenance-of-the-databases", "--entity", "db-*", "--metric", "disk.used_percent",
        "--above", "95", "--from", "2026-11-21T10:00:00Z", "--until", "2026-11-21T12:00:00Z",
        "--skip-result", "--skip-learning",
        "--at", "2026-11-21T09:00:00Z", "--note", "[red]planned, see the calendar of the operators\x1b[2J",
    )  # fmt: skip
    assert added[0] == 0, added[2]
    said = ("--from", "2026-11-21T10:00:00Z", "--at", "2026-11-21T10:05:00Z")
    assert run("label", "add", "false_alarm", "db-1", "cpu", *said)[0] == 0
    shown = run("rule", "list")[1]
    assert max(map(len, shown.splitlines())) <= 80
    for text in ("maintenance-of", "disk.used_percent", "2026-11-21T10:00:00.000Z", "skip_learning", "[red]planned"):
        assert text in shown
    assert "\x1b" not in shown
    (rule,) = map(json.loads, run("rule", "list", "--json")[1].splitlines())
    assert (rule["id"], rule["entity"], rule["start"]) == (
        "maintenance-of-the-databases", "db-*", "2026-11-21T10:00:00.000Z",
    )  # fmt: skip
    shown = run("label", "list")[1]
    assert max(map(len, shown.splitlines())) <= 80
    (label,) = map(json.loads, run("label", "list", "--json")[1].splitlines())
    assert (label["entity"], label["metric"], label["verdict"]) == ("db-1", "cpu", "false_alarm")
    assert (label["start"], label["time"]) == ("2026-11-21T10:00:00.000Z", "2026-11-21T10:05:00.000Z")
    assert set(rule) <= set(Rule.model_fields)
