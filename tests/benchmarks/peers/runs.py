"""One run of a program that reads samples and writes statistics of windows: its results, its rate, its CPU time.

All programs are measured alike, from outside: warm and idle, they are given many samples at one moment; what counts is
when the broker has appended their last result, and the CPU time that the system gave all their processes until then.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import Consumer, TopicPartition

from tests.benchmarks.peers.feed import Feed

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
    """What a program wrote, and what that took.

    Attributes:
        messages: The values of the messages.
        seconds: From the moment before the samples that count could be read to that in which the last result was
            appended, by the clock of this machine and the broker.
        cpu_seconds: CPU time of all its processes from then until the last result has been read.
    """

    messages: list[bytes]
    seconds: float
    cpu_seconds: float


class _CpuClock(threading.Thread):
    """The CPU time of a process and its descendants; it looks often, as those that have ended count, too."""

    def __init__(self, process: psutil.Process) -> None:
        super().__init__(daemon=True)
        self._process, self._used = process, dict[psutil.Process, float]()
        self._one_at_a_time = threading.Lock()
        self.over = threading.Event()

    def run(self) -> None:
        """Looks until it is over."""
        while not self.over.wait(_LOOK):
            self.seconds()

    def seconds(self) -> float:
        """What they have used until now."""
        with self._one_at_a_time:
            with suppress(psutil.Error):
                for each in [self._process, *self._process.children(recursive=True)]:
                    with suppress(psutil.Error):
                        times = each.cpu_times()
                        self._used[each] = times.user + times.system
            return sum(self._used.values())


def run(
    program: Program, bootstrap: str, feed: Feed, topic: str, expected: tuple[int, int], folder: Path, seconds: float
) -> Results:
    """Starts a program, lets it warm up, gives it the samples that count, and ends it when all results are there.

    Args:
        program: The program.
        bootstrap: Address of the broker.
        feed: What it reads.
        topic: The topic that it writes; each message is a result, stamped by the broker.
        expected: Number of the results of what warms up, and of all.
        folder: Folder for its log.
        seconds: For how long it may work.

    Raises:
        RuntimeError: It ended by itself, or took too long.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log, deadline = folder / "log", time.monotonic() + seconds
    with log.open("wb") as output, ThreadPoolExecutor(1) as filling:
        filled = filling.submit(feed.fill)
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
        reader = _Reader(process, bootstrap, topic, log, deadline)
        try:
            reader.read(expected[0])
            filled.result()
            begin, used = time.time(), clock.seconds()
            feed.release()
            reader.read(expected[1])
            used = clock.seconds() - used
            reader.rest()
        finally:
            clock.over.set()
            clock.join()
            end(process)
            reader.consumer.close()
    return Results(reader.messages, reader.last - begin, used)


class _Reader:
    """Reads the committed results of a program."""

    def __init__(
        self, process: subprocess.Popen[bytes], bootstrap: str, topic: str, log: Path, deadline: float
    ) -> None:
        options = {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False, "log_level": 0}
        self.consumer = Consumer(options | {"isolation.level": "read_committed"})
        partitions = self.consumer.list_topics(topic, 10).topics[topic].partitions
        self.consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        self.messages, self.last = list[bytes](), 0.0
        self._process, self._log, self._deadline = process, log, deadline

    def read(self, wanted: int) -> None:
        """Reads until there are so many results."""
        while len(self.messages) < wanted:
            self._some()
            over = time.monotonic() > self._deadline
            if len(self.messages) < wanted and (over or self._process.poll() is not None):
                how = f"it ended with {self._process.returncode}" if self._process.poll() is not None else "it goes on"
                raise RuntimeError(f"{len(self.messages):,} of {wanted:,} results, and {how}; see {self._log}")

    def rest(self) -> None:
        """Reads for a moment more: there should be nothing."""
        until = time.monotonic() + _AFTER
        while time.monotonic() < until:
            self._some()

    def _some(self) -> None:
        for message in self.consumer.consume(10_000, _LOOK):
            if not message.error():
                self.messages.append(message.value() or b"")
                self.last = max(self.last, message.timestamp()[1] / 1000)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a program with all its processes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
