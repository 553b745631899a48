"""What is missing is said before anything starts, with what is needed and what can be done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import java
from deploy.embedded.preflight import available_memory, check_disk, check_memory
from engine.spec.errors import NewnormalError


def test_servers_that_do_not_fit_into_memory_are_refused_with_the_settings_to_change() -> None:
    with pytest.raises(NewnormalError) as refused:
        check_memory({"kafka": "512m", "elasticsearch": "1g"}, available=1 << 30)
    assert refused.value.code == "MEMORY_SHORT"
    assert "1024 MB of memory are free" in refused.value.what
    assert "embedded.elasticsearch_heap = 1g" in refused.value.where


def test_servers_that_fit_are_accepted() -> None:
    check_memory({"kafka": "512m", "elasticsearch": "768m"}, available=4 << 30)


def test_a_containers_limit_counts_when_it_is_lower_than_the_machines(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("104857600\n")
    (tmp_path / "memory.current").write_text("52428800\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 10485760\n")
    assert available_memory(tmp_path) == 60 << 20


def test_a_container_without_a_limit_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory(tmp_path) > 60 << 20


def test_a_full_disk_is_refused_also_for_a_directory_that_does_not_exist_yet(tmp_path: Path) -> None:
    with pytest.raises(NewnormalError, match="DISK_FULL") as refused:
        check_disk([tmp_path / "a" / "b"], minimum=1 << 60)
    assert str(tmp_path) in refused.value.where


def _java(home: Path, modules: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\nprintf '{modules}'\n")
    program.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("modules", "will_do"),
    [
        ("java.base@17.0.15\\njdk.incubator.vector@17.0.15\\n", True),
        ("java.base@21\\njdk.incubator.vector@21\\n", True),
        ("java.base@11.0.2\\njdk.incubator.vector@11.0.2\\n", False),
        ("java.base@17.0.15\\n", False),
        ("", False),
    ],
    ids=["17", "21", "too old", "trimmed", "no modules at all"],
)
def test_only_a_complete_and_recent_java_will_do(tmp_path: Path, modules: str, will_do: bool) -> None:
    home = _java(tmp_path / "jdk", modules)
    assert java.find(homes=[tmp_path / "nothing here", home]) == (home if will_do else None)


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    named, on_path = _java(tmp_path / "named", ""), _java(tmp_path / "on_path", "")
    found = list(java.candidates({"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}))
    assert found[:2] == [named, on_path.resolve()]


def test_a_missing_java_is_explained_and_nothing_is_installed(tmp_path: Path) -> None:
    """A machine without Java, on which each command that could bring one leaves a trace."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("apt-get", "curl", "wget"):
        (programs / name).write_text(f"#!/bin/sh\n: > {tmp_path}/called-{name}\n")
        (programs / name).chmod(0o755)
    hide = "import deploy.java as java; from pathlib import Path; java._SYSTEM_HOMES = (Path('/nothing'),); java.main()"
    environ = {"PATH": str(programs), "PYTHONPATH": os.pathsep.join(sys.path)}
    environ |= {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    ran = subprocess.run([sys.executable, "-c", hide], env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "JAVA_MISSING: no Java 17 or newer" in ran.stderr
    assert "`make setup`" in ran.stderr
    assert "apt-get install openjdk-17-jre-headless" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not list(tmp_path.glob("called-*"))
    assert not (tmp_path / "cache").exists()
