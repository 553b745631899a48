"""Savepoints as commands see them: their catalogue, what is refused, and what their state holds."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import polars as pl
import pytest

from engine.spark import checkpoint_files
from engine.spark.checkpoint_files import OtherFormatError
from engine.spark.checkpoint_layout import STATE_FORMAT
from engine.spec.errors import NewnormalError
from pipelines.cli.guard import guarded
from pipelines.cli.main import app
from pipelines.contracts.settings import Settings, load
from pipelines.jobs.detectors.job import detector
from pipelines.runtime.program import CHAIN
from pipelines.savepoints.catalogue import Catalogue
from pipelines.savepoints.inspection import of_series, shard_view
from pipelines.savepoints.restoring import Plan, forked
from pipelines.savepoints.savepoint import SavedJob, Savepoint
from pipelines.savepoints.series_words import in_words
from pipelines.versions.plan import planned
from pipelines.versions.version import Version
from tests.engine.test_checkpoint_copies import checkpoint
from tests.fixtures import states
from tests.pipelines.test_rescaling import HOSTS

JOBS = ("extractor", "detector", "sink")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of a state directory with checkpoints of three jobs."""
    made = load(state_dir=tmp_path, namespace="sp.")
    for job in JOBS:
        folder = checkpoint(made.folder("checkpoints") / job, batch=8, snapshot=3)
        (folder / "layout.json").write_text(json.dumps({"shards": 2, "format": STATE_FORMAT}))
        (folder / "settings.json").write_text(json.dumps({"window.size": "10s", "window.every": "10s"}))
    return made


def code(error: pytest.ExceptionInfo[NewnormalError]) -> str:
    return error.value.code


def test_a_savepoint_is_listed_with_what_it_holds_until_it_is_deleted(settings: Settings) -> None:
    catalogue = Catalogue(settings)
    made = catalogue.create("friday", ["normalizer", *JOBS], 1_700_000_000_000)
    assert list(made.jobs) == list(JOBS), "the normalizer has no checkpoint"
    assert (made.jobs["detector"].batch, made.jobs["detector"].shards) == (8, 2)
    assert made.jobs["detector"].offsets == {"t": {"0": 80}}
    assert catalogue.all() == [made] == [catalogue.get("friday")]
    with pytest.raises(NewnormalError) as error:
        catalogue.create("friday", JOBS, 1)
    assert code(error) == "SAVEPOINT_EXISTS"
    catalogue.delete(made)
    assert catalogue.all() == []
    assert (settings.folder("checkpoints") / "extractor" / "state" / "0" / "0" / "5.changelog").exists()
    with pytest.raises(NewnormalError) as error:
        catalogue.get("friday")
    assert code(error) == "SAVEPOINT_UNKNOWN"


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".hidden"])
def test_a_name_that_would_leave_the_folder_is_refused(settings: Settings, name: str) -> None:
    with pytest.raises(NewnormalError) as error:
        Catalogue(settings).create(name, JOBS, 1)
    assert code(error) == "SAVEPOINT_NAME"


def test_what_cannot_be_restored_is_refused_before_anything_is_changed(settings: Settings) -> None:
    catalogue = Catalogue(settings)
    made = catalogue.create("friday", JOBS, 1)

    def refused(plan: Plan) -> str:
        with pytest.raises(NewnormalError) as error:
            plan.check()
        return code(error)

    jobs = made.chosen(None, CHAIN.names)
    Plan(catalogue, made, jobs, settings, 4).check()
    assert refused(Plan(catalogue, made, jobs, settings, 3)) == "SAVEPOINT_SHARDS"
    longer = load(state_dir=settings.state_dir, namespace="sp.", **{"window.size": "20s"})
    assert refused(Plan(catalogue, made, jobs, longer, 2)) == "SETTINGS_FIXED"
    old = made.jobs["detector"].model_copy(update={"state_format": STATE_FORMAT - 1})
    older = made.model_copy(update={"jobs": made.jobs | {"detector": old}})
    assert refused(Plan(catalogue, older, jobs, settings, 2)) == "SAVEPOINT_FORMAT"
    with pytest.raises(NewnormalError) as error:
        made.chosen(["normaliser"], CHAIN.names)
    assert code(error) == "JOB_UNKNOWN"


@pytest.mark.parametrize(
    ("answer", "ends", "left"), [("n\n", 1, True), ("\n", 1, True), ("", 1, True), ("y\n", 0, False)]
)
def test_a_savepoint_is_only_deleted_if_the_answer_is_yes(
    settings: Settings,
    answer: str,
    ends: int,
    left: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = Catalogue(settings).create("friday", JOBS, 1)
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    where = ["--state-dir", str(settings.state), "--namespace", settings.namespace]
    assert guarded(app, ["savepoint", "delete", "friday", *where]) == ends
    shown = capsys.readouterr()
    assert ("nothing was changed" in shown.out, "UNEXPECTED" in shown.err) == (left, False)
    assert Catalogue(settings).all() == [made] * left


def test_files_that_spark_did_not_write_are_left_to_spark(settings: Settings) -> None:
    """The changelogs of this checkpoint are empty files."""
    with pytest.raises(OtherFormatError):
        checkpoint_files.states(settings.folder("checkpoints") / "detector", 2)


def test_a_checkpoint_before_its_first_micro_batch_has_no_state(tmp_path: Path) -> None:
    (tmp_path / "commits").mkdir()
    assert checkpoint_files.states(tmp_path, 2) == [{}, {}]


@pytest.mark.parametrize("batch", [13, 2])
def test_the_command_says_how_much_is_read_again_also_of_a_checkpoint_that_was_restored_before(
    batch: int, settings: Settings
) -> None:
    """Micro-batches of a restored checkpoint begin at 0; offsets go on."""
    catalogue = Catalogue(settings)
    made = catalogue.create("friday", JOBS, 1)
    folder = settings.folder("checkpoints") / "detector"
    shutil.rmtree(folder)
    checkpoint(folder, batch=batch, snapshot=1)
    planned_offsets = folder / "offsets" / str(batch)
    planned_offsets.write_text(planned_offsets.read_text().replace(f":{batch * 10}", ":130"))
    assert Plan(catalogue, made, JOBS, settings, 2).again() == {"detector": 50}


def test_a_fork_begins_with_the_detectors_and_not_before(settings: Settings) -> None:
    catalogue = Catalogue(settings)
    made = catalogue.create("friday", JOBS, 1)
    both = made.model_copy(update={"jobs": made.jobs | {"log_detector": made.jobs["detector"]}})

    def fork(job: str, savepoint: object = both) -> Plan:
        version = planned("v2", Version.first(), job, None, None, {}, 1)
        return forked(catalogue, savepoint, version, settings.of(version.names), None)  # type: ignore[arg-type]

    plan = fork("detector")
    assert set(plan.jobs) == {"detector", "log_detector"}
    assert plan.checkpoints == settings.folder("checkpoints").with_name("sp@v2")
    for job, savepoint in (("extractor", both), ("detector", made)):
        with pytest.raises(NewnormalError) as error:
            fork(job, savepoint)
        assert code(error) == "SAVEPOINT_CHAIN"


def test_the_state_shows_keys_watermarks_and_the_rows_of_one_series() -> None:
    job = detector(load(**{"detector.emit": "all"}))
    shards = states.read(states.FOLDER / f"state-{STATE_FORMAT}.arrow")[states.METRICS]
    views = [shard_view(job, number, shard.values) for number, shard in enumerate(shards)]
    assert sum(view.keys for view in views) == len(HOSTS)
    assert len({view.watermark for view in views}) == 1
    assert [view.bytes for view in views] == [sum(map(len, shard.values.values())) for shard in shards]
    found = [each for shard in shards for each in of_series(job, shard.values, {"entity": "h3", "metric": "cpu"})]
    told = in_words("detector", found)
    assert len(told) <= 3, "an operator reads lines, not tables"
    assert "cpu has " in told[0]
    assert "windows learned" in told[0]
    tables = dict(found)
    assert len(found) == len(tables), "a series is in one shard"
    assert tables["detector models series"].select("entity", "metric").rows() == [("h3", "cpu")]
    assert all(table["entity"].cast(pl.String).unique().to_list() == ["h3"] for table in tables.values())


def test_what_is_not_known_of_a_series_is_left_out_in_words() -> None:
    """A state that an earlier release wrote has null where it did not have a column."""
    schema = {"metric": pl.String, "seen": pl.Float64, "time": pl.Int64, "said.at": pl.Int64, "said.score": pl.Float64}
    models = pl.DataFrame([("cpu", 7.0, None, None, None), ("cpu", 8.0, 60_000, None, None)], schema, orient="row")
    found = [("shard 0 models", models), ("shard 0 open", pl.DataFrame({"last_time": [None]}, {"last_time": pl.Int64}))]
    assert in_words("detector", found) == ["detector: cpu has 8 windows learned"]
    schema = {"n.last_time": pl.Int64, "n.last": pl.Float64}
    open_ = pl.DataFrame([(None, None), (60_000, None)], schema, orient="row")
    assert in_words("extractor", [("shard 0 open", open_)]) == [
        "extractor: 1 windows are open or kept for late records; the newest value is of 1970-01-01T00:01:00.000Z"
    ]
    assert in_words("extractor", [("shard 0 open", open_.head(1))]) == [
        "extractor: 1 windows are open or kept for late records"
    ]
    assert in_words("extractor", [("shard 0 open", open_.clear())])


def test_a_restoration_says_whether_samples_will_be_counted_twice(tmp_path: Path) -> None:
    settings = load(state_dir=tmp_path)
    saved = SavedJob(batch=3, offsets={})
    names = ("normalizer", "log_normalizer", "extractor", "archive", "detector", "sink")
    savepoint = Savepoint(name="s", version="v1", created=1, program="1", settings={}, jobs=dict.fromkeys(names, saved))
    for name in names:
        checkpoint(settings.folder("checkpoints") / name, batch=8, snapshot=3)

    def doubled(*jobs: str) -> str:
        return Plan(Catalogue(settings), savepoint, jobs, settings, 1).doubled()

    told = doubled(*names)
    assert told.startswith(
        "normalizer, log_normalizer will write logs, telemetry again, and extractor, archive count it"
    )
    assert doubled("extractor", "detector", "sink") == doubled("normalizer", "sink") == ""


def test_a_restoration_of_all_jobs_leaves_those_where_they_are_whose_samples_would_count_twice(tmp_path: Path) -> None:
    settings = load(state_dir=tmp_path)
    names = ("normalizer", "log_normalizer", "extractor", "detector")
    jobs = dict.fromkeys(names, SavedJob(batch=3, offsets={"t": {"0": 30}}, shards=2))
    savepoint = Savepoint(name="s", version="v1", created=1, program="1", settings={}, jobs=jobs)
    for name, batch in (("normalizer", 8), ("log_normalizer", 3), ("extractor", 8)):
        checkpoint(settings.folder("checkpoints") / name, batch=batch, snapshot=3)

    def plan(shards: int) -> Plan:
        return Plan(Catalogue(settings), savepoint, names, settings, shards)

    assert plan(2).staying() == ("normalizer",), "the other one has written nothing since then"
    assert plan(4).staying() == (), "all jobs of a start have the same number of shards"
    shutil.rmtree(settings.folder("checkpoints") / "log_normalizer")
    assert plan(2).staying() == ("normalizer",), "a checkpoint that is gone has to be made"
    assert plan(2).doubled().startswith("normalizer, log_normalizer will write logs, telemetry again, and extractor")
