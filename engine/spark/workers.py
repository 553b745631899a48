"""Asks the machines of a cluster, before any job starts, whether they can run the jobs.

A machine without the code, with another version of it, or without the folder of the checkpoints would fail a job later,
with a stack trace, or worse: write its state where no other machine finds it. A local Spark has none of these troubles.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from engine.spark.failure import stated
from engine.spark.hadoop_path import is_address
from engine.spec.errors import NewnormalError

_EXECUTOR_SECONDS = 120.0
_ANSWER_SECONDS = 5.0
_TASKS_EACH = 3
"""Tasks for each core, as Spark need not give a task to every executor."""
_SETTLED_SECONDS = 5.0
"""How long no further executor has come when those that are there are taken for all: machines register one by one."""
_NOW = "nothing was started"


def is_local(spark: SparkSession) -> bool:
    """Whether the tasks of a session run in the JVM of this process."""
    return str(spark.sparkContext.master).startswith("local[") or spark.sparkContext.master == "local"


def check_workers(
    spark: SparkSession,
    checkpoints: Path,
    bootstrap: str,
    modules: Sequence[str] = (),
    waiting: Callable[[], None] = lambda: None,
    patience: float = _EXECUTOR_SECONDS,
) -> list[dict[str, Any]]:
    """Checks the executors that a cluster gives; returns what each said of itself. A local Spark is not checked.

    Args:
        spark: The session.
        checkpoints: Folder of the checkpoints, which is made if it does not exist.
        bootstrap: ``host:port`` of a broker, several with commas between them.
        modules: Modules that the jobs need, beside those of the engine; the code of their packages must be the same.
        waiting: Is called repeatedly while no executor is there.
        patience: Seconds to wait for the first executor.

    Raises:
        NewnormalError: ``CLUSTER_UNREACHABLE`` if it gives no executor in time; ``WORKERS_UNFIT``;
            ``CHECKPOINT_NOT_SHARED``.
    """
    if is_local(spark):
        return []
    packages = sorted({"engine", *(module.partition(".")[0] for module in modules)})
    _wait_for_executors(spark, waiting, patience)
    checkpoints.mkdir(parents=True, exist_ok=True)
    mark = checkpoints / f".seen-by-{socket.gethostname()}-{time.time_ns()}"
    mark.write_text("newnormal")
    try:
        tasks = _TASKS_EACH * int(spark.sparkContext.defaultParallelism)
        asked = spark.range(tasks, numPartitions=tasks).mapInArrow(
            partial(_look, str(mark), str(bootstrap), packages), "machine string"
        )
        machines = [json.loads(text) for text in set(asked.toArrow()["machine"].to_pylist())]
    except Exception as error:
        accepted = "Newnormal on each machine of the cluster at the same path; or `spark.packages`"
        raise NewnormalError("WORKERS_UNFIT", stated(error), str(spark.sparkContext.master), accepted, _NOW) from None
    finally:
        mark.unlink(missing_ok=True)
    judge(machines, packages, checkpoints, bootstrap)
    return machines


def fingerprint(packages: Sequence[str]) -> str:
    """A hash of the code of packages, so that two machines can compare it."""
    code = hashlib.sha256()
    for name in packages:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            continue  # a module of the user, which Spark sends along
        root = Path(next(iter(spec.submodule_search_locations)))
        for file in sorted(root.rglob("*.py"), key=str):
            code.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    return code.hexdigest()


def _wait_for_executors(spark: SparkSession, waiting: Callable[[], None], patience: float) -> None:
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    executors, since = 0, time.monotonic()
    deadline = since + patience
    while True:
        count, now = len(tracker.getExecutorInfos()) - 1, time.monotonic()  # the driver is one of them
        if count != executors:
            executors, since = count, now
        if executors and now > since + _SETTLED_SECONDS:
            return
        if not executors and now > deadline:
            what = f"the cluster has given no executor within {patience:g} s"
            accepted = "a cluster with free cores, and as much free memory as `spark.executor.memory` says (1 GB)"
            raise NewnormalError("CLUSTER_UNREACHABLE", what, str(spark.sparkContext.master), accepted, _NOW)
        waiting()
        time.sleep(0.2)


def _look(mark: str, bootstrap: str, packages: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """What a task sees on its machine."""
    for _ in batches:
        pass
    machine = {
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "code": fingerprint(packages),
        "checkpoints": "" if is_address(mark) else _folder_problem(Path(mark)),
        "kafka": _kafka_problem(bootstrap),
    }
    yield pa.RecordBatch.from_pydict({"machine": [json.dumps(machine, sort_keys=True)]})


def _folder_problem(mark: Path) -> str:
    """Why the folder of a file cannot be used here; empty if it can."""
    try:
        mark.read_text()
        own = mark.with_name(f"{mark.name}-{socket.gethostname()}-{time.time_ns()}")
        own.write_text("newnormal")
        own.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _kafka_problem(bootstrap: str) -> str:
    """Why no broker can be reached from here; empty if one can."""
    reasons = []
    for address in bootstrap.split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
            return ""
        except OSError as error:
            reasons.append(f"{address}: {error.strerror or error}")
    return "; ".join(reasons)


def judge(machines: Sequence[dict[str, Any]], packages: Sequence[str], checkpoints: Path, bootstrap: str) -> None:
    """Refuses machines that cannot run the jobs; arguments and errors as those of `check_workers`."""
    if blind := [machine for machine in machines if machine["checkpoints"]]:
        what = "; ".join(f"{machine['host']}: {machine['checkpoints']}" for machine in blind)
        accepted = "`spark.checkpoints`: a folder that all machines see under one path, and may write to"
        raise NewnormalError("CHECKPOINT_NOT_SHARED", what, str(checkpoints), accepted, _NOW)
    unfit = [f"{machine['host']} does not reach Kafka: {machine['kafka']}" for machine in machines if machine["kafka"]]
    code = fingerprint(packages)
    unfit += [
        f"{machine['host']} has another version of {', '.join(packages)}"
        for machine in machines
        if machine["code"] != code
    ]
    mine = platform.python_version_tuple()[:2]
    unfit += [
        f"{machine['host']} has Python {machine['python']}, this machine {platform.python_version()}"
        for machine in machines
        if tuple(machine["python"].split(".")[:2]) != mine
    ]
    if unfit:
        accepted = f"the same code and Python on all machines, and {bootstrap} to be reached from each"
        raise NewnormalError("WORKERS_UNFIT", "; ".join(dict.fromkeys(unfit)), "cluster", accepted, _NOW)
