"""Keeps what the state of a job was made with beside its checkpoint, and refuses a start that does not fit.

With another number of shards a key would change its shard and lose its state. With another key or other windows, the
state would belong to windows that the job no longer has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from engine.operators.chain import Chain
from engine.operators.windows import WindowAggregate
from engine.spec.errors import NewnormalError
from engine.spec.job import Job

STATE_FORMAT = 5
"""Version of the state; it is raised when the state of older checkpoints cannot be read any more."""
_LAYOUT, _DEFINITION = "layout.json", "job.json"
_NOW = "nothing was started"


def check_layout(checkpoints: Path, jobs: Iterable[str], shards: int, setting: str) -> None:
    """Refuses a number of shards or a version of the state that differs from those of the checkpoints; stores both.

    Args:
        checkpoints: Directory of the jobs' checkpoints.
        jobs: Names of the jobs to start.
        shards: Number of shards of each job.
        setting: Name of the setting with that number.

    Raises:
        NewnormalError: ``STATE_FORMAT``, ``SHARDS_FIXED``.
    """
    jobs = list(jobs)
    compare_layout(checkpoints, jobs, shards, setting)
    for job in jobs:
        _keep(checkpoints / job / _LAYOUT, {"shards": shards, "format": STATE_FORMAT})


def compare_layout(checkpoints: Path, jobs: Iterable[str], shards: int, setting: str) -> None:
    """Makes the comparison of `check_layout`, with its arguments and errors, and stores nothing."""
    for job in jobs:
        if not _begun(checkpoints / job):
            continue
        kept = _kept(checkpoints / job / _LAYOUT) or {}
        if kept.get("format") != STATE_FORMAT:
            said = f"of state format {kept['format']}" if "format" in kept else "of an older version"
            what = f"the checkpoint of {job} is {said}, this version writes format {STATE_FORMAT}"
            now = f"{_NOW}; a new namespace or state directory begins anew"
            raise NewnormalError("STATE_FORMAT", what, str(checkpoints / job), str(STATE_FORMAT), now)
        if kept["shards"] != shards:
            what = f"{setting} = {shards}, but the checkpoint of {job} was made with {kept['shards']}"
            accepted = (
                f"{kept['shards']}; or divide the state anew: `newnormal savepoint create rescale`, then "
                f"`newnormal savepoint restore rescale --shards {shards}`; both with --file FILE for jobs of your own"
            )
            raise NewnormalError("SHARDS_FIXED", what, str(checkpoints / job), accepted, _NOW)


def shards_of(checkpoint: Path) -> int | None:
    """Number of shards with which a checkpoint was made; ``None`` before its first start."""
    kept = _kept(checkpoint / _LAYOUT) if _begun(checkpoint) else None
    return int(kept["shards"]) if kept else None


def check_definitions(checkpoints: Path, jobs: Iterable[Job]) -> None:
    """Refuses jobs whose key, operators or windows differ from those of their stored state; stores these.

    Raises:
        NewnormalError: ``JOB_CHANGED``.
    """
    mine = {job.name: _definition(job) for job in jobs}
    for name, definition in mine.items():
        before = _kept(checkpoints / name / _DEFINITION) if _begun(checkpoints / name) else None
        if before not in (None, definition):
            what = f"{name} is defined as {_said(definition)}, but its state was made with {_said(before)}"
            accepted = "the definition of before; or another name for the job, whose topic and state begin anew"
            raise NewnormalError("JOB_CHANGED", what, str(checkpoints / name), accepted, _NOW)
    for name, definition in mine.items():
        _keep(checkpoints / name / _DEFINITION, definition)


def _begun(checkpoint: Path) -> bool:
    """Whether Spark has created the checkpoint."""
    return (checkpoint / "metadata").exists()


def _kept(file: Path) -> Any:
    """The content of a file of an earlier start; ``None`` if it does not exist or cannot be read."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


def _keep(file: Path, value: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value))


def _definition(job: Job) -> dict[str, list[str]]:
    """The parts of a job on which its state depends: its key, its operators, its windows."""
    parts = job.processor.parts if isinstance(job.processor, Chain) else (job.processor,)
    return {"key": list(job.key), "operators": [_operator(part) for part in parts]}


def _operator(part: object) -> str:
    if isinstance(part, WindowAggregate):
        return repr(part.window)
    windows = (
        [getattr(part, field.name) for field in fields(part) if field.name in ("window", "windows")]
        if is_dataclass(part)
        else []
    )
    return " of ".join([type(part).__name__, *(re.sub(r" at 0x\w+", "", repr(window)) for window in windows)])


def _said(definition: dict[str, list[str]]) -> str:
    return f"key {', '.join(definition['key'])}; {', '.join(definition['operators'])}"
