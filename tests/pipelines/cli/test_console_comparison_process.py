"""The process that compares versions for the console does not outlive the console, however that ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

CONSOLE = """
import sys
from pipelines.cli.console_versions import ConsoleVersions
from pipelines.contracts.settings import load
given = {"state_dir": sys.argv[1], "kafka.bootstrap": sys.argv[2]}
ConsoleVersions(lambda: load(**given), given).compared("v1", "v2")
"""
"""A console in which the comparison of two versions has begun."""

LONG = 120.0


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and never says anything, so that who asks it waits."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(LONG)
        yield server


@pytest.mark.timeout(400)
def test_a_comparison_ends_with_the_console_that_was_killed(silent: socket.socket, tmp_path: Path) -> None:
    """It does so at once: one that goes on until Kafka has not answered for long cannot tell that, and says so."""
    address, said = f"127.0.0.1:{silent.getsockname()[1]}", tmp_path / "said"
    command = [sys.executable, "-c", CONSOLE, str(tmp_path), address]
    with said.open("wb") as output:
        console = subprocess.Popen(command, stderr=output)
    try:
        connected, _ = silent.accept()  # the comparison asks Kafka for the versions, and waits
        known = psutil.Process(console.pid).children(recursive=True)
        comparisons = [each for each in known if "spawn_main" in " ".join(each.cmdline())]
        assert len(comparisons) == 1
        os.kill(console.pid, signal.SIGKILL)
        console.wait(LONG)
        _, alive = psutil.wait_procs(comparisons, LONG)
        assert not alive
        assert "Traceback" not in said.read_text()
        connected.close()
    finally:
        console.kill()
