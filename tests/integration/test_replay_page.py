"""The commands of docs/replay.md, run as a user would run them, in order; with the pictures of the page on request.

``NEWNORMAL_SCREENSHOTS=docs`` writes the pictures of the page anew, from what the commands showed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

DOCS = Path(__file__).parents[2] / "docs"
CHROMIUM = Path("/usr/bin/chromium")


def blocks(page: str = "replay.md") -> list[str]:
    """The blocks of shell commands on a page."""
    return re.findall(r"^```sh\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


class Shell:
    """Runs blocks of commands in one folder, with a state directory of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, bin_ = folder, Path(sys.executable).parent
        (folder / "bin").mkdir()
        command = folder / "bin" / "newnormal"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m pipelines.cli.main "$@"\n')
        command.chmod(0o755)
        self.environment = os.environ | {
            "PATH": f"{folder / 'bin'}:{bin_}:{os.environ['PATH']}",
            "PYTHONPATH": str(DOCS.parent),
            "NEWNORMAL_STATE_DIR": str(folder / "state"),
            "NEWNORMAL_CONSOLE__PORT": "0",
            "COLUMNS": "132",
            "FORCE_COLOR": "1",
        }

    def run(self, block: str) -> str:
        """Runs a block, which must end well; returns what it wrote to standard output."""
        done = subprocess.run(
            ["bash", "-eu", "-c", block], cwd=self.folder, env=self.environment, capture_output=True, text=True,
            timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout


def _picture(text: str, title: str, file: Path) -> None:
    """Writes what a command showed as a picture of a terminal."""
    console = Console(record=True, width=132, file=Path(os.devnull).open("w"))  # noqa: SIM115
    console.print(Text.from_ansi(text.rstrip()))
    file.write_text(console.export_svg(title=title))


def _photograph(page: Path, file: Path) -> None:
    """Writes the first screen of a page as a picture."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1100, "height": 1000})
        tab.goto(page.as_uri())
        tab.screenshot(path=file)
        browser.close()


def test_the_story_of_the_page_holds_as_it_is_told(tmp_path: Path) -> None:
    begin, whatif, compare, promote, back = blocks()
    shell = Shell(tmp_path)
    try:
        shell.run(begin)
        assert whatif.endswith("newnormal versions\n")
        shell.run(whatif.removesuffix("newnormal versions\n"))
        shown = shell.run("newnormal versions")
        rows = {
            line.split()[0]: line
            for line in re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
            if line[:2] in ("v1", "v2")
        }
        assert re.search(r"v1 +yes ", rows["v1"])
        assert re.search(r"v2 +v1 +detector to sink .* ended", rows["v2"])
        assert re.search(r"detector\.threshold =\s+30\.0", shown)
        found = re.sub(r"\x1b\[[0-9;]*m", "", shell.run(compare))
        alarms = re.search(r"anomaly +│ +(\d+) +│ +(\d+)", found)
        assert alarms
        first = re.search(r"v1:\s\d+\sincidents?\b[^│]*messages?;\sv2:\s\d+\sincidents?\b", found)
        assert first
        assert first.start() < alarms.start(), "they come first"
        assert "The settings differ: detector.threshold is 50.0 in v1 and 30.0 in v2." in " ".join(found.split())
        assert 0 < int(alarms[1]) < int(alarms[2]), "a lower threshold gives more alarms"
        report = (tmp_path / "report.html").read_text()
        assert "data:image/" in report
        assert "http://" not in report.replace("http://www.w3.org", "")
        if folder := os.environ.get("NEWNORMAL_SCREENSHOTS"):
            _picture(shown, "newnormal versions", Path(folder) / "replay-versions.svg")
            _photograph(tmp_path / "report.html", Path(folder) / "replay-report.png")
        assert _shown(shell) == {"v1"}
        shell.run(promote)
        assert _shown(shell) == {"v2"}
        head, *tail = back.splitlines()
        shell.run(head)
        assert _shown(shell) == {"v1"}
        shell.run("\n".join(tail[:-1]))
        assert "v2" not in shell.run("newnormal versions")
        assert not list((tmp_path / "state" / "checkpoints").glob("default@v2/*"))
    finally:
        shell.run("newnormal services down")
        shutil.rmtree(tmp_path / "state", ignore_errors=True)


def _shown(shell: Shell) -> set[str]:
    """The versions of the documents that readers of the alias find."""
    status = shell.run("newnormal services status --json")
    (address,) = re.findall(r'"(http://[^"]+)"', status)
    password = (shell.folder / "state" / "elasticsearch.password").read_text().strip()
    client = Elasticsearch(address, basic_auth=("elastic", password))
    names = client.search(index="novelties", size=0, aggs={"i": {"terms": {"field": "_index"}}})
    client.close()
    return {"v2" if "-v2-" in each["key"] else "v1" for each in names["aggregations"]["i"]["buckets"]}
