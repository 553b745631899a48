"""How fast a replay is: the extractor beside its rate in the throughput bench, the chain beside its detector alone.

``newnormal bench replay`` writes a columnar log, and runs over it, one after the other: the extractor in a warm
session as `tests.benchmarks.throughput` does; ``newnormal run extractor --until now``; ``newnormal replay`` of the
whole chain; and ``newnormal replay --job detector`` over what that chain's extractor has written. The times of the
commands are those of the files in which Spark notes that a micro-batch was planned and completed, so the start of
Spark does not count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from deploy.embedded.services import embedded
from engine.address import client_options
from engine.kafka.admin import ensure_topics
from engine.spark.checkpoint_offsets import offsets_of
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings, load
from pipelines.contracts.version_names import VersionNames
from pipelines.jobs import chain as jobs
from tests.benchmarks.load import Load, write_columnar
from tests.benchmarks.queries import Queries, say, session

BATCHES, WARM = 100, 0.6
"""The micro-batches of a long run, and the share of them that is passed over while the JVM compiles.

The warm session has run 40 more before; after 60 the JVM has compiled what matters in both. With 30 micro-batches, 12
of them passed over, the comparison showed above all that the command's JVM was younger.
"""

Mark = tuple[float, int]
"""When a micro-batch was completed, seconds since the epoch, and how many messages had been read by then."""


def run(records: int, keys: int, chain_records: int) -> dict[str, Any]:
    """Measures all of it.

    Args:
        records: Records that the extractor reads.
        keys: Series that they are spread over.
        chain_records: Records that the chain reads; a window of 10 s of each series is judged for each ten of them.
    """
    with tempfile.TemporaryDirectory(prefix="newnormal-replay-") as folder:
        asked = load(state_dir=Path(folder) / "servers", **{"console.port": 0})
        with embedded(asked) as servers:
            found = servers.settings(asked)
            given = jobs_on(found, Path(folder) / "jobs")
            figures = {"records": records, "keys": keys} | _extractor(found, given, records, keys)
            return figures | {"chain_records": chain_records} | _chain(found, given, chain_records, keys)


def _extractor(servers: Settings, given: dict[str, str], records: int, keys: int) -> dict[str, Any]:
    named = {"namespace": "extractor.", "state_dir": given["STATE_DIR"], "kafka.bootstrap": servers.kafka.bootstrap}
    settings = load(**named)
    log = Load.recent(records, keys)
    with session(settings) as spark:
        queries = Queries(spark, settings, warm_up=40)
        source = queries.topic(topics.TELEMETRY)
        say(f"writing {records:,} records of {keys:,} series")
        write_columnar(queries.bootstrap, source, settings.kafka.partitions, log)
        messages = queries.messages(source)
        bench = queries.ours("bench-features", jobs.extractor(settings), records, records // BATCHES, WARM)
    most = {"NAMESPACE": "extractor.", "ENGINE__MAX_RECORDS": str(max(1, messages // BATCHES))}
    command(given | most, "run", "extractor", "--until", "now")
    marks = completed(settings.folder("checkpoints") / "extractor", source)
    marks = marks[max(1, int(WARM * len(marks))) :]
    (began, first), (ended, last) = marks[0], marks[-2]  # the session does not count the last, smaller one either
    replayed = (last - first) / messages * records / (ended - began)
    return {
        "extractor_bench_per_second": round(bench),
        "extractor_replay_per_second": round(replayed),
        "replay_to_bench": round(replayed / bench, 2),
    }


def _chain(servers: Settings, given: dict[str, str], records: int, keys: int) -> dict[str, Any]:
    named = {"namespace": "chain.", "state_dir": given["STATE_DIR"], "kafka.bootstrap": servers.kafka.bootstrap}
    settings = load(**named)
    log = Load.recent(records, keys, span_ms=records * 1000 // keys, tail_ms=65_000)
    write_columnar(servers.kafka.bootstrap or "", _topic(settings), settings.kafka.partitions, log)
    chosen = given | {"NAMESPACE": "chain.", "DETECTOR__EMIT": "novel"}
    command(chosen, "replay", "--as", "chain", "--until", "now")
    command(chosen, "replay", "--as", "alone", "--base", "chain", "--job", "detector", "--until", "now")
    whole, alone = (settings.of(VersionNames(name)).folder("checkpoints") for name in ("chain", "alone"))
    chain = _ended(whole / "detector") - _planned(whole / "extractor")
    detector = _ended(alone / "detector") - _planned(alone / "detector")
    return {
        "chain_seconds": round(chain, 1),
        "detector_alone_seconds": round(detector, 1),
        "chain_to_detector": round(chain / detector, 2),
        "verdicts_per_second_of_the_chain": round(records / 10 / chain),
        "times_as_fast_as_live": round(records / keys / chain),
    }


def _topic(settings: Settings) -> str:
    """The topic of the samples; made, as the first start of the chain would."""
    name = settings.topic(topics.TELEMETRY)
    ensure_topics(settings.kafka.bootstrap or "", {name: topics.config(topics.TELEMETRY)}, settings.kafka.partitions)
    return name


def jobs_on(servers: Settings, state: Path) -> dict[str, str]:
    """The settings of jobs on some servers, with a state directory of their own; see `variables`."""
    account = client_options(servers.elasticsearch.url or "").get("basic_auth", ())
    return {
        "STATE_DIR": str(state),
        "KAFKA__BOOTSTRAP": servers.kafka.bootstrap or "",
        "ELASTICSEARCH__URL": str(servers.elasticsearch.url or ""),
        **dict(zip(("ELASTICSEARCH__USER", "ELASTICSEARCH__PASSWORD"), account, strict=False)),
        "CONSOLE__PORT": "0",
    }


def variables(given: dict[str, str]) -> dict[str, str]:
    """Settings as variables of the environment.

    >>> variables({"DETECTOR__EMIT": "all"})
    {'NEWNORMAL_DETECTOR__EMIT': 'all'}
    """
    return {f"NEWNORMAL_{name}": value for name, value in given.items()}


def command(given: dict[str, str], *words: str) -> None:
    """Runs a command of `newnormal` to its end, with settings as variables of the environment."""
    began = time.monotonic()
    environment = os.environ | variables(given)
    command = [sys.executable, "-m", "pipelines.cli.main", *words]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    say(f"newnormal {' '.join(words)}: {time.monotonic() - began:.0f} s")
    if made.returncode:
        raise RuntimeError(f"newnormal {' '.join(words)} failed:\n{made.stdout[-2000:]}\n{made.stderr[-4000:]}")


def completed(checkpoint: Path, topic: str) -> list[Mark]:
    """The completed micro-batches of a job that have read messages of a topic, in their order."""
    numbers = sorted(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit())
    found = [
        ((checkpoint / "commits" / str(n)).stat().st_mtime, sum(offsets_of(checkpoint, n).get(topic, {}).values()))
        for n in numbers
    ]
    return [found[0], *(after for before, after in pairwise(found) if after[1] > before[1])]


def _planned(checkpoint: Path) -> float:
    """When the first micro-batch of a job was planned, seconds since the epoch."""
    return (checkpoint / "offsets" / "0").stat().st_mtime


def _ended(checkpoint: Path) -> float:
    """When the last micro-batch was completed that has read anything, seconds since the epoch."""
    numbers = sorted(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit())
    read = [n for n in numbers if n == 0 or offsets_of(checkpoint, n) != offsets_of(checkpoint, n - 1)]
    return (checkpoint / "commits" / str(read[-1])).stat().st_mtime
