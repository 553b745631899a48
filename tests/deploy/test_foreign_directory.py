"""Started by root, Elasticsearch's files lie where all users may write: what others put there is never followed."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.embedded.elasticsearch import NOBODY, Elasticsearch, runtime_dir
from engine.spec.errors import NewnormalError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a directory that others could have made")


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """Where root's Elasticsearch keeps the files of the state directory ``tmp_path``; nothing is there yet."""
    place = runtime_dir(tmp_path / "elasticsearch")
    yield place
    if place.is_symlink():
        place.unlink()
    elif place.exists():
        shutil.rmtree(place)


def launch(tmp_path: Path) -> None:
    """Prepares a node without starting it."""
    home, java = tmp_path / "home", tmp_path / "java"
    for directory in (home / "config", home / "lib", java / "lib"):
        directory.mkdir(parents=True, exist_ok=True)
    (home / "config" / "jvm.options").write_text("-Xshare:auto\n")
    Elasticsearch(str(java), str(home), str(tmp_path / "elasticsearch"), "64m").launch({"port": 9200})


@as_root
@pytest.mark.parametrize("linked", [True, False], ids=["at the first start", "at a later start"])
def test_a_link_in_its_place_is_refused_and_what_it_points_to_stays_as_it_was(
    tmp_path: Path, base: Path, linked: bool
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    (victim / "secret").write_text("mine")
    base.symlink_to(victim)
    if not linked:
        (tmp_path / "elasticsearch").symlink_to(base)
    with pytest.raises(NewnormalError) as refused:
        launch(tmp_path)
    assert refused.value.code == "DIRECTORY_FOREIGN"
    assert stat.S_IMODE(victim.stat().st_mode) == 0o700
    assert [file.name for file in victim.iterdir()] == ["secret"]


@as_root
@pytest.mark.parametrize("kind", ["directory", "file", "dangling link"])
def test_what_belongs_to_somebody_else_is_refused_and_not_deleted(tmp_path: Path, base: Path, kind: str) -> None:
    if kind == "directory":
        base.mkdir(mode=0o777)
        os.chown(base, 12345, 12345)
    elif kind == "file":
        base.write_text("")
    else:
        base.symlink_to(tmp_path / "nothing")
    try:
        with pytest.raises(NewnormalError) as refused:
            launch(tmp_path)
        assert refused.value.code == "DIRECTORY_FOREIGN"
        assert base.lstat().st_uid == (12345 if kind == "directory" else 0)
        assert kind == "dangling link" or base.exists()
    finally:
        if kind == "file":
            base.unlink(missing_ok=True)


@as_root
def test_a_link_that_nobody_left_among_the_settings_is_not_written_through(tmp_path: Path, base: Path) -> None:
    launch(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("root's own")
    options = base / "config" / "jvm.options"
    options.unlink()
    options.symlink_to(victim)
    os.chown(options, NOBODY, NOBODY, follow_symlinks=False)
    launch(tmp_path)
    assert victim.read_text() == "root's own"
    assert victim.stat().st_uid == 0
    assert not options.is_symlink()


@as_root
def test_data_survive_a_second_start_and_are_deleted_with_the_state_directory(tmp_path: Path, base: Path) -> None:
    launch(tmp_path)
    (base / "data" / "node").write_text("kept")
    launch(tmp_path)
    assert (tmp_path / "elasticsearch" / "data" / "node").read_text() == "kept"
    (tmp_path / "elasticsearch").unlink()
    launch(tmp_path)
    assert not (base / "data" / "node").exists()
