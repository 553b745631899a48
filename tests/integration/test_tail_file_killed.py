"""`newnormal tail-file` is killed again and again while a file grows, against a real Kafka: no line is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from engine.kafka.content import values

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

KILLS, CHUNKS, CHUNK = 4, 6, 50
"""How often it is killed; after how many chunks; and how many lines are written at once."""


def _until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@contextmanager
def _following(log: Path, bootstrap: str, namespace: str, state: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "pipelines.cli.main", "tail-file", str(log), "--machine", "edge", "--from-start"]
    command += ["--every", "100ms", "--kafka", bootstrap, "--namespace", namespace]
    process = subprocess.Popen(
        command, env={**os.environ, "NEWNORMAL_STATE_DIR": str(state)}, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_after_each_kill_no_line_is_lost_and_only_those_of_the_last_look_come_twice(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    namespace, log = f"tail{time.time_ns() % 10**9}.", tmp_path / "shop.log"
    topic = f"{namespace}logs.json"
    ensure_topics(endpoints.bootstrap, {topic: {}}, 2)
    log.touch()
    written = 0

    def there() -> Counter[str]:
        return Counter(orjson.loads(value)["message"] for value in values(endpoints.bootstrap, topic))

    def write() -> None:
        nonlocal written
        with log.open("a", encoding="ascii") as file:
            file.writelines(f"2026-11-28T00:00:00Z INFO line {number}\n" for number in range(written, written + CHUNK))
        written += CHUNK

    for run in range(KILLS + 1):
        with _following(log, endpoints.bootstrap, namespace, tmp_path / "state"):
            for _ in range(CHUNKS):
                write()  # the last line may be continued: it comes one look later
                _until(lambda: len(there()) >= written, f"{written} lines were written, {len(there())} are there")
            if run < KILLS:
                write()
                if run % 2:
                    _until(lambda: len(there()) > written - CHUNK, "none of the last lines came")
    found = there()
    assert set(found) == {f"line {number}" for number in range(written)}
    doubled = sum(count - 1 for count in found.values())
    assert doubled <= KILLS * (CHUNK + 1), f"{doubled} lines came twice: more than a look holds"
    assert written == (KILLS + 1) * CHUNKS * CHUNK + KILLS * CHUNK
