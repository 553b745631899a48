"""Doctor finds what is wrong with the machine and the installation; each finding is provoked."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pipelines.contracts.settings import Settings, load
from pipelines.doctor.context import Context
from pipelines.doctor.environment import interpreters, room
from pipelines.runtime.processes import JobProcess


def test_an_old_python_is_found_and_the_present_one_is_not() -> None:
    (finding,) = interpreters.python((3, 10, 4))
    assert (finding.code, "3.10.4" in finding.what) == ("PYTHON_TOO_OLD", True)
    assert interpreters.python() == []


def test_a_folder_without_a_complete_java_is_no_java(tmp_path: Path) -> None:
    trimmed = tmp_path / "bin" / "java"
    trimmed.parent.mkdir()
    trimmed.write_text("#!/bin/sh\necho java.base@21.0.1\n")
    trimmed.chmod(0o755)
    (finding,) = interpreters.java_home([tmp_path])
    assert finding.code == "JAVA_MISSING"
    trimmed.write_text("#!/bin/sh\necho java.base@21.0.1\necho jdk.incubator.vector@21.0.1\n")
    assert interpreters.java_home([tmp_path]) == []


def installed(site: Path, name: str, *files: str) -> None:
    """A package as pip leaves it in a folder of packages."""
    info = site / f"{name.replace('-', '_')}-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n")
    (info / "RECORD").write_text("".join(f"{file},sha256=x,1\n" for file in files))


def test_a_package_that_puts_its_files_in_the_place_of_urllib3_is_named(tmp_path: Path) -> None:
    installed(tmp_path, "urllib3", "urllib3/__init__.py")
    installed(tmp_path, "other", "other/urllib3/__init__.py")
    assert interpreters.replaced([str(tmp_path)]) == []
    installed(tmp_path, "urllib3-future", "urllib3_future/__init__.py", "urllib3/__init__.py")
    (finding,) = interpreters.replaced([str(tmp_path)])
    assert finding.code == "PACKAGE_REPLACED"
    assert finding.what.startswith("urllib3-future 2.0 ")
    assert finding.where == str(tmp_path / "urllib3")


def test_a_disk_with_less_than_what_is_needed_is_full_and_one_with_little_more_is_low(settings: Settings) -> None:
    free = shutil.disk_usage(settings.state.parent).free
    (full,) = room.disk(Context(settings), least=2 * free, spare=2 * free)
    (low,) = room.disk(Context(settings), least=free // 2, spare=2 * free)
    assert (full.code, low.code, full.where) == ("DISK_FULL", "DISK_LOW", str(settings.state))
    assert room.disk(Context(settings), least=free // 4, spare=free // 2) == []
    assert not settings.state.exists(), "looking creates nothing"


def test_heaps_that_do_not_fit_into_the_memory_are_found(tmp_path: Path) -> None:
    (finding,) = room.memory(Context(load(state_dir=tmp_path, **{"engine.driver_memory": "1024g"})))
    assert (finding.code, "engine.driver_memory" in finding.where) == ("MEMORY_SHORT", True)
    elsewhere = {"kafka.bootstrap": "k:1", "elasticsearch.url": "http://e:1", "engine.driver_memory": "512m"}
    (small,) = room.memory(Context(load(state_dir=tmp_path, **elsewhere | {"engine.driver_memory": "1023g"})))
    assert small.where == "engine.driver_memory", "servers elsewhere need no memory here"


def test_a_low_limit_of_open_files_is_found() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_024, hard))
    try:
        (finding,) = room.open_files(Context(load()))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (finding.code, finding.where) == ("OPEN_FILES_FEW", "ulimit -n")
    assert "1,024" in finding.what


MANY = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
some = [open("/dev/null") for _ in range(55)]
print("open", flush=True)
input()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say how many files a process may open")
def test_a_running_process_that_has_nearly_all_its_files_open_is_named() -> None:
    process = subprocess.Popen([sys.executable, "-c", MANY], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin and process.stdout
    try:
        assert process.stdout.readline() == b"open\n"
        running = JobProcess(process.pid, psutil.Process(process.pid).create_time(), "http://x", ("sink",))
        found = [each for each in room.open_files(Context(load(), (running,))) if each.where != "ulimit -n"]
    finally:
        process.communicate(b"\n")
    (finding,) = found
    assert (finding.code, finding.where) == ("OPEN_FILES_FEW", f"process {process.pid} (sink)")
    assert "64 are allowed" in finding.what
