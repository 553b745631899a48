"""The wheel that pipx and uv install, and the units of systemd."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import deploy
from pipelines.cli.commands import COMMANDS
from pipelines.contracts.settings import Settings

ROOT = Path(deploy.__file__).parents[1]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
PACKAGES = ("engine", "models", "pipelines", "deploy", "dashboards", "datagen")


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout: git tells which files belong to it")
def test_the_wheel_has_every_file_and_works_without_the_checkout(tmp_path: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", *PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True)
    source, wheels = tmp_path / "source", tmp_path / "wheels"
    for name in [*tracked.stdout.split(), "pyproject.toml", "README.md", "LICENSE"]:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(source)], check=True)
    (wheel,) = wheels.glob("newnormal-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        missing = {name for name in tracked.stdout.split() if not name.startswith("deploy/systemd/")} - held
        assert not missing
        archive.extractall(tmp_path / "installed")
    environment = os.environ | {
        "PYTHONPATH": str(tmp_path / "installed"),
        "NEWNORMAL_STATE_DIR": str(tmp_path / "state"),
    }

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "pipelines.cli.main", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True).stdout

    where = [sys.executable, "-c", "import pipelines; print(pipelines.__file__)"]
    found = subprocess.run(where, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True).stdout
    assert found.startswith(str(tmp_path / "installed"))
    assert re.match(r"newnormal \d+\.\d+", run("--version"))
    (tmp_path / "message.txt").write_text("cpu,host=a usage_idle=91.5 1700000000000000000\n")
    assert "usage_idle" in run("decode", "message.txt")
    run("dashboards", "export", "--out", str(tmp_path / "objects"))
    assert list((tmp_path / "objects").rglob("*.ndjson"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_a_command_that_exists_with_settings_that_exist(unit: Path) -> None:
    text = unit.read_text()
    (command,) = re.findall(r"^ExecStart=/opt/newnormal/bin/newnormal (\w+)$", text, re.MULTILINE)
    assert command in COMMANDS
    for name in re.findall(r"NEWNORMAL_(\w+)=", text):
        section, _, field = name.lower().partition("__")
        model = Settings.model_fields[section]
        assert not field or field in model.annotation.model_fields  # type: ignore[union-attr]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_a_unit(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/newnormal/bin/newnormal", shutil.which("true") or "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    assert not done.stderr.strip()
    assert done.returncode == 0


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_what_a_unit_may_do_and_show_is_little(unit: Path) -> None:
    """Of 0 to 10, in which systemd rates the exposure of a unit, at most 3 is what `docs/security.md` promises."""
    command = ["systemd-analyze", "security", "--offline=true", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rated = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert rated, done.stderr
    assert float(rated[1]) <= 3
    assert re.findall(r"^(?:UMask|StateDirectoryMode)=(\d+)$", unit.read_text(), re.MULTILINE) == ["0700", "0077"]
