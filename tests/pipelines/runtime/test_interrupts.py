"""Ctrl-C and SIGTERM: the first is raised once, so that what follows it can end in order; the second ends at once."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from pipelines.runtime.interrupts import Interrupts
with Interrupts() as interrupts:
    interrupts.defer()
    print("runs", flush=True)
    try:
        interrupts.wait(60)
    except KeyboardInterrupt:
        print("stops", flush=True)
    {after}
print("ended", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_work_after_the_first_signal_is_done_to_its_end(number: int) -> None:
    assert _run("interrupts.wait(0.01); interrupts.check()", number) == (0, ["runs", "stops", "ended"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_the_process_at_once(number: int) -> None:
    assert _run("interrupts.wait(60)", number, number) == (130, ["runs", "stops"])


def _run(after: str, *signals: int) -> tuple[int, list[str]]:
    """Sends a signal after each line that a program says; returns its exit code, and what it said."""
    said = []
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(after=after)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        assert program.stdout is not None
        for line in program.stdout:
            said.append(line.strip())
            if len(said) <= len(signals):
                program.send_signal(signals[len(said) - 1])
        return program.wait(30), said
