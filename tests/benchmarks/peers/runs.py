"""One run of a program that reads samples and writes statistics of windows: its results, its rate, its CPU time.

All programs are measured alike, from outside: by the broker's clock when their results were appended, and by the CPU
time that the system gave all their processes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import psutil
from confluent_kafka import Consumer, TopicPartition

TOGETHER = 0.3
"""Seconds within which results count as of one instant: a micro-batch closes several windows at once."""
_LOOK = 0.2
_AFTER = 1.0
"""Seconds for which results are read after the last one that is expected: there should be none."""
_STOP_SECONDS = 60.0


@dataclass(frozen=True)
class Program:
    """How a program is started.

    Attributes:
        command: Its command line.
        given: Its standard input.
        environment: Variables besides those of this process.
    """

    command: Sequence[str]
    given: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """What a program wrote.

    Attributes:
        messages: The values of the messages.
        arrived: When the broker appended each, in seconds since 1970.
        clock: CPU seconds of all its processes until some instants, shape (instants, 2): instant, seconds.
    """

    messages: list[bytes]
    arrived: list[float]
    clock: np.ndarray


@dataclass(frozen=True)
class Rate:
    """What a program did between two instants at which windows were complete."""

    records: int
    seconds: float
    cpu_seconds: float

    @property
    def records_per_second(self) -> float:
        """Records a second of wall time."""
        return self.records / self.seconds

    @property
    def cpu_us_per_record(self) -> float:
        """Microseconds of CPU time a record."""
        return 1e6 * self.cpu_seconds / self.records


class _CpuClock(threading.Thread):
    """Looks how much CPU time a process and its descendants have used; those that have ended count, too."""

    def __init__(self, process: psutil.Process) -> None:
        super().__init__(daemon=True)
        self._process, self._used = process, dict[psutil.Process, float]()
        self.seen: list[tuple[float, float]] = []
        self.over = threading.Event()

    def run(self) -> None:
        """Looks until it is over."""
        while not self.over.wait(_LOOK):
            with suppress(psutil.Error):
                for each in [self._process, *self._process.children(recursive=True)]:
                    with suppress(psutil.Error):
                        times = each.cpu_times()
                        self._used[each] = times.user + times.system
            self.seen.append((time.time(), sum(self._used.values())))


def run(program: Program, bootstrap: str, topic: str, expected: int, folder: Path, seconds: float) -> Results:
    """Starts a program, reads what it writes until that is complete, and ends it.

    Args:
        program: The program.
        bootstrap: Address of the broker.
        topic: The topic that it writes; each message is a result, stamped by the broker.
        expected: Number of the results.
        folder: Folder for its log.
        seconds: For how long it may work.

    Raises:
        RuntimeError: It ended by itself, or took too long.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            program.command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=os.environ | program.environment,
            process_group=0,
        )
        assert process.stdin is not None
        process.stdin.write(program.given.encode())
        process.stdin.close()
        clock = _CpuClock(psutil.Process(process.pid))
        clock.start()
        try:
            messages, arrived = _read(process, bootstrap, topic, expected, log, time.monotonic() + seconds)
        finally:
            clock.over.set()
            clock.join()
            _end(process)
    return Results(messages, arrived, np.array(clock.seen))


def _read(
    process: subprocess.Popen[bytes], bootstrap: str, topic: str, expected: int, log: Path, deadline: float
) -> tuple[list[bytes], list[float]]:
    options = {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer(options | {"isolation.level": "read_committed"})
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    messages, arrived, until = list[bytes](), list[float](), deadline
    while time.monotonic() < until:
        for message in consumer.consume(10_000, _LOOK):
            if not message.error():
                messages.append(message.value() or b"")
                arrived.append(message.timestamp()[1] / 1000)
        if len(messages) >= expected:
            until = min(until, time.monotonic() + _AFTER) if until == deadline else until
        elif process.poll() is not None or time.monotonic() > deadline - _LOOK:
            how = "it goes on" if process.poll() is None else f"it ended with {process.returncode}"
            raise RuntimeError(f"{len(messages):,} of {expected:,} results, and {how}; see {log}")
    consumer.close()
    return messages, arrived


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a program with all its processes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def rate(windows: pl.DataFrame, results: Results, since: float = 0.5) -> Rate:
    """The rate between two instants at which windows were complete, and of the CPU time in between.

    At both of them, the last window that was complete counts. The first instant is that of the window before which the
    share ``since`` of all windows lies, so that the program has warmed up; the second one is the last instant
    before the end of the load, which is no whole micro-batch.

    Args:
        windows: Columns ``window_end`` in ascending order, ``arrived`` (when its last result was there, in seconds),
            and ``count`` (its records).
        results: The run.
        since: Share of the windows that is passed over.

    Raises:
        RuntimeError: Between these instants there is nothing.
    """
    there = np.maximum.accumulate(windows["arrived"].to_numpy())
    begin = there[int(since * len(there))]
    first = int((there <= begin + TOGETHER).sum()) - 1
    last = int((there < there[-1] - TOGETHER).sum()) - 1
    if last <= first:
        raise RuntimeError("the load is over before the programs are warm: more records are needed")
    records = int(windows["count"].to_numpy()[first + 1 : last + 1].sum())
    instants, used = results.clock.T
    cpu = float(np.diff(np.interp([there[first], there[last]], instants, used))[0])
    return Rate(records, float(there[last] - there[first]), cpu)
