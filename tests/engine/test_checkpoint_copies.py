"""A checkpoint is copied while Spark adds files to it and removes others."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from engine.spark import checkpoint_copy
from engine.spark.checkpoint_copy import copied, is_complete, relocated
from engine.spec.errors import NewnormalError


def checkpoint(folder: Path, batch: int, snapshot: int) -> Path:
    """A checkpoint of two shards after a micro-batch, with a snapshot and the changes after it."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "metadata").write_text('{"id": "x"}')
    (folder / "layout.json").write_text('{"shards": 2, "format": 5}')
    (folder / "offsets" / str(batch)).write_text(f'v1\n{{}}\n{{"t":{{"0":{batch * 10}}}}}')
    (folder / "commits" / str(batch)).write_text("v1\n{}")
    for shard in ("0", "1"):
        store = folder / "state" / "0" / shard
        (store / "SSTs").mkdir(parents=True, exist_ok=True)
        (store / "SSTs" / "7.sst").write_bytes(b"table")
        with zipfile.ZipFile(store / f"{snapshot}.zip", "w") as archive:
            archive.writestr("metadata", "v1\n" + json.dumps({"sstFiles": [{"dfsSstFileName": "7.sst"}]}))
        for version in range(snapshot + 1, batch + 2):
            (store / f"{version}.changelog").write_bytes(b"changes")
    return folder


def test_a_copy_is_of_the_last_completed_micro_batch_and_shares_its_files(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "job", batch=8, snapshot=3)
    (source / "offsets" / "9").write_text("planned, not completed")
    (source / "state" / "0" / "0" / "10.changelog").write_bytes(b"of a micro-batch that is not completed")
    copy = copied(source, tmp_path / "copy")
    assert (copy.batch, copy.offsets) == (8, {"t": {"0": 80}})
    assert not (tmp_path / "copy" / "offsets" / "9").exists()
    assert not (tmp_path / "copy" / "state" / "0" / "0" / "10.changelog").exists()
    change = Path("state/0/1/5.changelog")
    assert (source / change).stat().st_ino == (tmp_path / "copy" / change).stat().st_ino
    (source / "layout.json").write_text("{}")
    assert json.loads((tmp_path / "copy" / "layout.json").read_text())["shards"] == 2, "this file is written in place"


@pytest.mark.parametrize(
    "gone", ["state/0/1/6.changelog", "state/0/0/3.zip", "state/0/1/SSTs/7.sst", "commits/8", "offsets/8", "metadata"]
)
def test_a_copy_without_one_of_the_files_is_not_complete(tmp_path: Path, gone: str) -> None:
    source = checkpoint(tmp_path / "job", batch=8, snapshot=3)
    assert is_complete(source, 8)
    (source / gone).unlink()
    assert not is_complete(source, 8)


def test_a_copy_that_cleaning_has_spoilt_is_made_again_at_a_newer_micro_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = checkpoint(tmp_path / "job", batch=8, snapshot=3)
    (source / "state/0/0/5.changelog").unlink()
    monkeypatch.setattr(checkpoint_copy.time, "sleep", lambda _: checkpoint(source, batch=9, snapshot=8))
    assert copied(source, tmp_path / "copy").batch == 9


def test_when_files_vanish_in_each_attempt_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = checkpoint(tmp_path / "job", batch=8, snapshot=3)
    (source / "state/0/0/5.changelog").unlink()
    monkeypatch.setattr(checkpoint_copy.time, "sleep", lambda _: None)
    with pytest.raises(NewnormalError) as error:
        copied(source, tmp_path / "copy")
    assert error.value.code == "SAVEPOINT_INCOMPLETE"
    assert not (tmp_path / "copy").exists()


def test_paths_in_the_metadata_of_a_copy_become_its_own(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "job", batch=8, snapshot=3)
    file = source / "state/0/_metadata/v2/0"
    file.parent.mkdir(parents=True)
    file.write_text('v2\n{"stateSchemaFilePaths":["file:/elsewhere/job/state/0/_stateSchema/default/0_a"]}')
    copied(source, tmp_path / "copy")
    relocated(tmp_path / "copy")
    now = (tmp_path / "copy" / "state/0/_metadata/v2/0").read_text()
    assert f'"file:{tmp_path.resolve()}/copy/state/0/_stateSchema/default/0_a"' in now
    assert "file:/elsewhere" in file.read_text()
