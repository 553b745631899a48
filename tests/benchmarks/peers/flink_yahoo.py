"""Yahoo's streaming benchmark in Flink SQL, on the topics of `tests.benchmarks.yahoo`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.spec.duration import epoch_ms
from tests.benchmarks.peers import flink_program, flink_sql
from tests.benchmarks.peers.flink_environment import Flink
from tests.benchmarks.peers.runs import end

COUNTS = "flink-campaign-views"
"""The topic of its counts, without the prefix of the run."""
PARTITIONS = 4
_SQL = Path(__file__).with_name("yahoo.sql")
_OFTEN = {"execution.checkpointing.interval": "1 s"}
"""Counts are committed with checkpoints."""


@contextmanager
def started(flink: Flink, folder: Path, bootstrap: str, prefix: str) -> Iterator[subprocess.Popen[bytes]]:
    """Flink with the jobs of the benchmark, until the block ends.

    Args:
        flink: Where it is.
        folder: For its checkpoints and its log.
        bootstrap: Address of the broker.
        prefix: Put before the names of topics.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = _SQL.read_text().replace("BOOTSTRAP", bootstrap).replace("PREFIX", prefix)
    statements = [part.strip() for part in text.split(";") if part.strip()]
    given = {"options": flink_sql.options(flink, folder) | _OFTEN, "statements": statements}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(flink.python), str(Path(flink_program.__file__))],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=dict(os.environ),
            process_group=0,
        )
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(given).encode())
            process.stdin.close()
            yield process
        finally:
            end(process)


def instant(time: Any) -> int:
    """Epoch milliseconds of an instant as Flink or we write it.

    >>> instant("2026-11-29 08:00:10"), instant(1_795_939_210_000)
    (1795939210000, 1795939210000)
    """
    return time if isinstance(time, int) else epoch_ms(f"{time.replace(' ', 'T')}Z")
