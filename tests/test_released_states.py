"""The state of each released format is opened, and the jobs go on with it as if it were their own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine.spark.checkpoint_layout import STATE_FORMAT
from engine.state.segments import DictSegments, unpack
from engine.testing import Run
from engine.testing.driven import Driven
from engine.testing.encoding import fed_columns
from pipelines.contracts.settings import load
from pipelines.jobs.detectors.job import detector, log_detector
from pipelines.jobs.templates.job import templates
from pipelines.jobs.templates.mining import SEVERITY, TEMPLATE
from tests.engine.test_rescaling import OPERATORS, WINDOWS
from tests.fixtures import states
from tests.pipelines.detectors.test_operator import T0
from tests.pipelines.site import lines
from tests.pipelines.test_rescaling import HOSTS, Moving, counted_logs, kinds, logs_batch, metrics, tables
from tests.transcripts.operators import reader as operators
from tests.transcripts.test_transcripts import by_window, panes

FILES = sorted(states.FOLDER.glob("state-*.arrow"))
KEPT: dict[Path, dict[str, list[DictSegments]]] = {file: states.read(file) for file in FILES}
TRANSCRIPTS = [(file, case) for file in FILES for case in KEPT[file] if case not in states.JOBS]


def _copy(file: Path, case: str) -> list[DictSegments]:
    """The stored state; a run changes it."""
    copies = [DictSegments() for _ in KEPT[file][case]]
    for copy, state in zip(copies, KEPT[file][case], strict=True):
        copy.values = dict(state.values)
    return copies


def test_there_is_a_file_of_the_present_format_with_every_kind_of_operator() -> None:
    """After a change of the format: ``python -m tests.fixtures.states``, and the older files stay."""
    present = states.FOLDER / f"state-{STATE_FORMAT}.arrow"
    assert present in FILES
    missing = {*states.cases(), *states.JOBS} - KEPT[present].keys()
    assert not missing, "a new operator: its state is not in the file yet"


@pytest.mark.parametrize(("file", "case"), TRANSCRIPTS, ids=lambda value: getattr(value, "stem", value))
def test_an_operator_goes_on_with_state_of_a_released_format(file: Path, case: str) -> None:
    scenario = OPERATORS.get(case) or WINDOWS[case]
    batches = [batch.entries for batch in scenario.stream.batches]
    half = len(batches) // 2
    driven = Driven(fed_columns(scenario.job), states.SHARDS, _copy(file, case), offset=10_000)
    got = Run(written=driven.run(batches[half:]).written)
    if isinstance(scenario, operators.Scenario):
        assert scenario.fired(got) == scenario.firings[half:]
        return
    merges = scenario.job.processor.window.merges  # type: ignore[attr-defined]
    for written, wanted in zip(got.written, scenario.firings[half:], strict=True):
        assert by_window(panes(written.rows), merges) == by_window(wanted, merges)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_detector_goes_on_with_models_of_a_released_format(file: Path) -> None:
    moving = Moving(detector(load(**{"detector.emit": "all"})), states.SHARDS)
    moving.driven = Driven(moving.job, states.SHARDS, _copy(file, states.METRICS))
    for number, entries in enumerate(list(metrics())[states.METRIC_BATCHES :], states.METRIC_BATCHES):
        moving.take(tables(entries, number * 1000))
    found = {(row["host.name"], (row["window_start"] - T0) // 10_000): row["kind"] for row in moving.rows}
    plain = [host for host in HOSTS if host not in ("h0", "h1", "h2", "h5")]  # no rule, label or silence
    assert {found[host, 125] for host in plain} == {"anomaly"}
    assert {found[host, n] for host in HOSTS for n in (130, 140, 150) if host != "h5"} == {"normal"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_miner_of_templates_goes_on_with_templates_of_a_released_format(file: Path) -> None:
    """All lines are counted as before; a line that the stored state knows keeps the template that it has there."""
    frame, moving = lines(20), Moving(templates(load()), states.SHARDS)
    for number in range(states.LOG_BATCHES):
        moving.take(logs_batch(frame, number))
    before, stored = len(moving.rows), _copy(file, states.LOGS)
    moving.driven = Driven(moving.job, states.SHARDS, _copy(file, states.LOGS))
    whole = Moving(templates(load()), states.SHARDS)
    for number in range(10):
        whole.take(logs_batch(frame, number))
    for number in range(states.LOG_BATCHES, 10):
        moving.take(logs_batch(frame, number))
    assert len(moving.rows) > before > 0
    assert _counted(moving.rows, TEMPLATE) == _counted(whole.rows, TEMPLATE)
    assert _counted(moving.rows, SEVERITY) == _counted(whole.rows, SEVERITY)
    tables = [unpack(value) for state in stored for key, value in state.values.items() if key.endswith("templates")]
    known = {name for each in tables for name in each["templates"]["id"]}
    after = {row["metric"].removeprefix(TEMPLATE) for row in moving.rows[before:] if row["template"] is not None}
    assert after & known
    assert len(after - known) <= len(after) // 4, "most lines of the same programs are of known templates"


def _counted(rows: list[dict[str, Any]], prefix: str) -> Counter[tuple[str, int]]:
    total: Counter[tuple[str, int]] = Counter()
    for row in rows:
        total[row["entity"], row["window_end"]] += row["count"] if row["metric"].startswith(prefix) else 0
    return total


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_detector_of_logs_goes_on_with_models_of_a_released_format(file: Path) -> None:
    batches, job = counted_logs(), log_detector(load(**{"detector.emit": "all"}))
    moving, whole = Moving(job, states.SHARDS), Moving(job, states.SHARDS)
    moving.driven = Driven(job, states.SHARDS, _copy(file, states.COUNTS))
    moving.take(batches[2])
    for batch in batches[:2]:
        whole.take(batch)
    before = len(whole.rows)
    whole.take(batches[2])
    whole.rows = whole.rows[before:]
    assert len(whole.rows) > 50
    assert kinds(moving) == kinds(whole)
