"""Text of others on the terminal: shown as it is, by whichever command; it is no markup and steers no terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import orjson
import polars as pl
import pytest
import structlog
import typer
from rich.console import Console
from typer.testing import CliRunner

from dashboards.live_view import render
from dashboards.status import JobStatus, PipelineStatus
from deploy.embedded.state_file import Running, Server
from engine.explain.plan import Plan
from engine.spec.errors import NewnormalError
from pipelines.cli import label, log_output, rows, rule, services, status, tail, topology
from pipelines.cli.guard import guarded
from pipelines.cli.main import app
from pipelines.contracts.records import Label, Placement, Rule
from pipelines.contracts.settings import load
from pipelines.notify.figures import ChannelFigures
from pipelines.notify.status import NotifierStatus
from pipelines.runtime.processes import JobProcess

HOSTILE = "[error] \x1b[2J\x07\r\u202e\x9b31m\nFORGED [/usr/sbin/cron] [red]x"
SHOWN = (
    "[error]",
    "[/usr/sbin/cron]",
    "[red]x",
    r"\u001b[2J",
    r"\u0007",
    r"\u000d",
    r"\u202e",
    r"\u009b",
    r"\u000aFORGED",
)
T0 = 1_790_000_000_000


def _sql() -> None:
    rows.frame(pl.DataFrame({HOSTILE: [HOSTILE]}), HOSTILE)


def _sql_json() -> None:
    print(rows.line({"entity": HOSTILE}))


def _rules() -> None:
    report = Rule(id=HOSTILE, time=T0, entity=HOSTILE, metric=HOSTILE, report=True, note=HOSTILE)
    rule.show([report])


def _rule_told() -> None:
    rule.confirm(Rule(id=HOSTILE, time=T0, entity=HOSTILE, report=True))


def _labels() -> None:
    label.show([Label(entity=HOSTILE, metric=HOSTILE, start=T0, time=T0, verdict="true", note=HOSTILE)])


def _topology() -> None:
    topology.show([Placement(entity=HOSTILE, parent=HOSTILE, depends_on=[HOSTILE], time=T0)])


def _topology_told() -> None:
    topology.tell([Placement(entity=HOSTILE, parent=HOSTILE, depends_on=[HOSTILE], time=T0)])


def _label_told() -> None:
    label.confirm(Label(entity=HOSTILE, metric=HOSTILE, start=T0, time=T0, verdict="true", note=HOSTILE))


def _tail_of_records() -> None:
    message = orjson.dumps({"entity": HOSTILE, "note": HOSTILE, HOSTILE: 1})
    print(*tail._shown([message], tail.RecordFilter("some.topic", (), "*", "")), sep="\n")


def _tail_of_anything() -> None:
    print(*tail._shown([HOSTILE.encode()], tail.RecordFilter("some.topic", (), "*", "")), sep="\n")


def _status() -> None:
    job = {"name": HOSTILE, "last_error": HOSTILE}
    answers = [status.Answer(JobProcess(1, 0.0, HOSTILE, (HOSTILE,)), [job], [HOSTILE])]
    channel = ChannelFigures(HOSTILE, failing_since=0, reason=HOSTILE)
    telling = NotifierStatus(1, 0.0, HOSTILE, (channel,))
    status._show(load(), (Server(HOSTILE, HOSTILE, 1, 0.0),), answers, telling)


def _services() -> None:
    services._show(Running(1, 0.0, None, (Server(HOSTILE, HOSTILE, 0, 0.0),)), Path(HOSTILE))


def _live() -> None:
    novelty = {"@timestamp": T0, "host.name": HOSTILE, "metric": HOSTILE, "kind": HOSTILE, "record_score": 1.0}
    novelty |= {"event.ingested": T0}
    found = PipelineStatus(T0, (JobStatus(HOSTILE),), (novelty,), problems=(HOSTILE,))
    Console(width=1000).print(render(found, HOSTILE, T0, 1000))


def _plan() -> None:
    plan = Plan("job", ((HOSTILE, ((HOSTILE, HOSTILE),)),), ({"shard": 0},), ((HOSTILE, 0.5),))
    Console().print(plan)
    print(plan)


def _log() -> None:
    log_output.configure()
    try:
        structlog.get_logger().error(HOSTILE, machine=HOSTILE)
    finally:
        structlog.reset_defaults()


def _error() -> None:
    faulty = typer.Typer()

    @faulty.command()
    def fails() -> None:
        raise NewnormalError("SERIES_EMPTY", repr(HOSTILE), HOSTILE.replace("\n", r"\u000a"), HOSTILE.replace("\n", ""))

    guarded(faulty, [])


PLACES: dict[str, Callable[[], None]] = {
    "sql": _sql,
    "sql --json": _sql_json,
    "rule list": _rules,
    "rule add": _rule_told,
    "label list": _labels,
    "label add": _label_told,
    "topology list": _topology,
    "topology place": _topology_told,
    "tail": _tail_of_records,
    "tail of what is no record": _tail_of_anything,
    "status": _status,
    "services status": _services,
    "run": _live,
    "explain-job": _plan,
    "log": _log,
    "an error": _error,
}


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_hostile_text_is_shown_as_it_is(
    place: str, terminal: bool, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
    PLACES[place]()
    captured = capfd.readouterr()
    check(captured.out + captured.err)


def check(text: str) -> None:
    """The text is there with its markup, and what steers a terminal is not, but for the colours of the command."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert not [char for char in plain if not char.isprintable() and char != "\n"], plain
    assert not [line for line in plain.splitlines() if line.strip().startswith("FORGED")], "it made a line of its own"
    words = " ".join(plain.replace('\\"', '"').split())
    for part in SHOWN:
        assert part in words or part.replace(r"\u000d", r"\r").replace(r"\u000a", r"\n") in words, (part, plain)


def test_a_narrow_terminal_loses_nothing_of_it(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    _sql()
    check(capfd.readouterr().out)


def test_json_is_the_text_itself(capfd: pytest.CaptureFixture[str]) -> None:
    _sql_json()
    out = capfd.readouterr().out
    assert json.loads(out) == {"entity": HOSTILE}
    assert out[:-1].isprintable()


def test_files_with_hostile_names_and_fields_are_scored_and_told(tmp_path: Path) -> None:
    name = HOSTILE.replace("/", "")
    file = tmp_path / f"{name}.csv"
    cell = HOSTILE.replace('"', "")
    file.write_text(f'time,host,"{cell}"\n1,"{cell}",1\n2,"{cell}","{cell}"\n', newline="")
    done = CliRunner(env={"COLUMNS": "1000"}).invoke(app, ["score", str(file), "--out", str(tmp_path / "[red]out.csv")])
    assert done.exit_code == 3, done.output
    check(done.output)
