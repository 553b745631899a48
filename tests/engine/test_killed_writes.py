"""A process that is killed while it replaces a file of a checkpoint that lies in a file system of Hadoop's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.spark import hadoop_path
from engine.spark.checkpoint_copy import copied
from engine.spark.checkpoint_layout import check_layout, shards_of
from engine.spark.hadoop_path import HadoopPath

pytestmark = pytest.mark.spark


class KilledError(BaseException):
    """The process ends here: nothing that would tidy up is run but for what catches everything."""


@pytest.fixture
def checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HadoopPath]:
    """The folder through Hadoop's ViewFs: its own code, over files of this machine."""
    host = tmp_path.name.replace("_", "-")  # Hadoop keeps a file system for each host
    link = f"spark.hadoop.fs.viewfs.mounttable.{host}.link./state"
    monkeypatch.setattr(hadoop_path, "_options", {link: f"file://{tmp_path}"})
    yield HadoopPath(f"viewfs://{host}/state")
    hadoop_path._configured.cache_clear()


def killed_at(step: int, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """Has the process end ahead of its next change of a file but ``step``.

    Args:
        step: How many changes are made before.
        monkeypatch: Puts the code back afterwards.
        whole: Whether a file is replaced at once, as in HDFS; otherwise its deletion is a change of its own.
    """
    left = [step]

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def made(*args: Any, **named: Any) -> Any:
            if not left[0]:
                raise KilledError
            left[0] -= 1
            return change(*args, **named)

        return made

    def in_two(self: HadoopPath, target: HadoopPath) -> HadoopPath:
        target.unlink(missing_ok=True)
        return self.rename(target)

    monkeypatch.setattr(HadoopPath, "write_bytes", counted(HadoopPath.write_bytes))
    monkeypatch.setattr(HadoopPath, "unlink", counted(HadoopPath.unlink))
    monkeypatch.setattr(HadoopPath, "rename", counted(HadoopPath.rename))
    monkeypatch.setattr(HadoopPath, "replace", counted(HadoopPath.replace) if whole else in_two)


@pytest.mark.parametrize("whole", [True, False])
def test_a_start_that_is_killed_anywhere_leaves_the_layout_of_before_or_the_new_one(
    whole: bool, checkpoints: HadoopPath, tmp_path: Path
) -> None:
    """The boundary: between the deletion of the former file and the renaming of the new one there is no layout.json."""
    cases = set()
    for step in range(6):
        job = f"job{step}"
        check_layout(checkpoints, [job], 2, "shards")
        with pytest.MonkeyPatch.context() as patched:
            killed_at(step, patched, whole)
            try:
                check_layout(checkpoints, [job], 3, "shards")  # not begun, so the number may change
            except KilledError:
                ended = False
            else:
                ended = True
        (tmp_path / job / "metadata").write_text("{}")
        there = (tmp_path / job / "layout.json").exists()
        shards = shards_of(checkpoints / job)
        assert shards in ((3,) if ended else (2, 3))
        check_layout(checkpoints, [job], shards, "shards")
        copied(checkpoints / job, tmp_path / f"copy{step}")
        assert (tmp_path / f"copy{step}" / "layout.json").exists()
        cases.add((there, ended))
    assert (True, True) in cases and (True, False) in cases
    assert ((False, False) in cases) == (not whole)


def test_a_file_is_replaced_by_hadoop_itself_and_nothing_stays_beside(checkpoints: HadoopPath, tmp_path: Path) -> None:
    for shards in (2, 3):
        check_layout(checkpoints, ["o"], shards, "shards")
    assert '"shards": 3' in (tmp_path / "o" / "layout.json").read_text()
    assert [file.name for file in (tmp_path / "o").iterdir() if not file.name.endswith(".crc")] == ["layout.json"]
