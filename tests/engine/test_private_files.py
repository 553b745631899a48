"""Files of ours in places where everybody may write: no link is followed, and nobody else reads them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from deploy.embedded.ports import PortClaims
from engine import private_files
from engine.locks import locked, try_lock
from engine.private_files import own_temporary_folder, private_folder
from engine.spark import checkpoint_lock
from engine.spark.hadoop_path import HadoopPath
from engine.spec.errors import NewnormalError

STORE = HadoopPath("hdfs://name-node:8020/state/default")


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where everybody may write, as /tmp is one."""
    place = tmp_path / "tmp"
    place.mkdir()
    place.chmod(0o1777)
    monkeypatch.setattr("tempfile.tempdir", str(place))
    monkeypatch.setattr(private_files, "_OF_ROOT", place / "none")
    return place


def test_a_lock_is_never_taken_through_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "shadow", tmp_path / "a.lock"
    link.symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        try_lock(link)
    with pytest.raises(OSError, match="symbolic links"), locked(link):
        pass
    assert not target.exists()
    held = try_lock(tmp_path / "b.lock")
    assert held
    assert stat.S_IMODE((tmp_path / "b.lock").stat().st_mode) == 0o600
    held.close()


def test_links_of_another_user_in_tmp_are_not_followed_by_ports_and_checkpoints(shared: Path) -> None:
    victim = shared.parent / "only-root"
    victim.mkdir()
    for name in ("ports", "checkpoints"):
        (shared / f"newnormal-{os.geteuid()}-{name}").symlink_to(victim)
    assert PortClaims().choose({"port": 19092})
    with pytest.raises(NewnormalError, match="DIRECTORY_FOREIGN"):
        checkpoint_lock.take(STORE, "detector")
    assert list(victim.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can make files of another user")
def test_a_folder_of_another_user_is_not_used(shared: Path) -> None:
    squatted = shared / f"newnormal-{os.geteuid()}-checkpoints"
    squatted.mkdir(mode=0o777)
    os.chown(squatted, 65534, 65534)
    with pytest.raises(NewnormalError, match="DIRECTORY_FOREIGN"):
        own_temporary_folder("checkpoints")


def test_one_checkpoint_in_a_store_is_used_by_one_process_of_this_machine(shared: Path) -> None:
    first = checkpoint_lock.take(STORE, "detector")
    assert first
    assert checkpoint_lock.take(STORE, "detector") is None
    assert checkpoint_lock.holder(STORE, "detector").pid == os.getpid()
    first.close()
    assert stat.S_IMODE(next(shared.iterdir()).stat().st_mode) == 0o700


def test_a_state_directory_is_closed_to_others_and_stays_usable(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir(mode=0o755)
    (old / "data").write_text("kept")
    for folder in (old, tmp_path / "new" / "deep"):
        assert private_folder(folder) == folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (old / "data").read_text() == "kept"


def test_a_folder_that_is_there_for_others_is_left_as_it_is(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = shared.parent / "home"
    home.mkdir(mode=0o755)
    monkeypatch.setenv("HOME", str(home))
    for folder, mode in ((shared, 0o1777), (home, 0o755)):
        private_folder(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == mode
