"""Keeps what the state of a job was made with beside its checkpoint, and refuses a start that does not fit.

With another number of shards a key would change its shard and lose its state. With another key, other windows or
another trigger, the state would belong to something that the job no longer computes (`engine.spec.state_form`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from engine.files import recovered, write_whole
from engine.operators.chain import Chain
from engine.operators.windows import WindowAggregate
from engine.spec.errors import NewnormalError
from engine.spec.inputs import schema
from engine.spec.job import Job
from engine.spec.state_form import StateForm

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
            written = f"of state format {kept['format']}" if "format" in kept else "of an older version"
            what = f"the checkpoint of {job} is {written}, this version writes format {STATE_FORMAT}"
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


def check_definitions(checkpoints: Path, jobs: Sequence[Job]) -> None:
    """Refuses jobs whose stored state does not fit what they are now; stores what they are.

    Raises:
        NewnormalError: ``JOB_CHANGED``; ``CHECKPOINT_UNREADABLE``.
    """
    forms = {job.name: _forms(job) for job in jobs}
    mine = {job.name: _definition(job, forms[job.name]) for job in jobs}
    for name, definition in mine.items():
        before = _kept(checkpoints / name / _DEFINITION) if _begun(checkpoints / name) else None
        if changes := _changes(definition, forms[name], before) if before else []:
            what = f"the state of {name} was made by another job: {'; '.join(changes)}"
            accepted = "the definition of before; or another name for the job, whose topic and state begin anew"
            raise NewnormalError("JOB_CHANGED", what, str(checkpoints / name), accepted, _NOW)
    for name, definition in mine.items():
        _keep(checkpoints / name / _DEFINITION, definition)


def _begun(checkpoint: Path) -> bool:
    """Whether Spark has created the checkpoint."""
    return (checkpoint / "metadata").exists()


def _kept(file: Path) -> Any:
    """The content of a file of an earlier start; ``None`` if it does not exist.

    Raises:
        NewnormalError: ``CHECKPOINT_UNREADABLE``.
    """
    try:
        kept = json.loads(recovered(file).read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        kept, why = None, str(error)
    else:
        why = f"it holds {kept!r}"
    if isinstance(kept, dict):
        return kept
    what = f"{file.name} cannot be read ({why}); the state beside it has not been touched"
    expected = f'{{"shards": <as before>, "format": {STATE_FORMAT}}}'
    content = f"the content {expected}" if file.name == _LAYOUT else "the file removed, if the job is as before"
    accepted = f"that file as a savepoint or a backup has it; or {content}"
    raise NewnormalError("CHECKPOINT_UNREADABLE", what, str(file), accepted, _NOW)


def _keep(file: Path, value: Mapping[str, object]) -> None:
    if _kept(file) != value:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(value))


def _forms(job: Job) -> dict[str, StateForm]:
    """The form of each operator's state, by the scope in which it lies."""
    columns = schema(job.inputs)
    if isinstance(job.processor, Chain):
        return job.processor.state_forms(columns)
    form = job.processor.state_form(columns)
    return {"": form} if form else {}


def _definition(job: Job, forms: Mapping[str, StateForm]) -> dict[str, Any]:
    """What the state of a job depends on: its key, its clock, and the form of each operator's state."""
    columns = schema(job.inputs)
    key = {name: _type(columns, name) for name in job.key}
    state = {scope: {"fixed": dict(form.fixed), "columns": dict(form.columns)} for scope, form in forms.items()}
    return {"key": key, "clock": job.clock, "operators": _in_short(job), "state": state}


def _in_short(job: Job) -> list[str]:
    """What earlier versions compared: the windows or the type of each operator."""
    parts = job.processor.parts if isinstance(job.processor, Chain) else (job.processor,)
    return [_operator(part) for part in parts]


def _operator(part: object) -> str:
    if isinstance(part, WindowAggregate):
        return repr(part.window)
    windows = [getattr(part, name) for name in ("window", "windows") if hasattr(part, name)]
    return " of ".join([type(part).__name__, *map(repr, windows)])


def _type(columns: pa.Schema, name: str) -> str:
    return str(columns.field(name).type) if name in columns.names else "unknown"


def _changes(now: Mapping[str, Any], forms: Mapping[str, StateForm], before: Mapping[str, Any]) -> list[str]:
    """What has changed; of a state of an earlier version only its key and windows are known."""
    if "state" not in before:
        then, mine = (f"key {', '.join(layout['key'])}; {', '.join(layout['operators'])}" for layout in (before, now))
        return [] if then == mine else [f"{mine}; was {then}"]
    changes = [f"key {_listed(now['key'])}, was {_listed(before['key'])}"] if now["key"] != before["key"] else []
    changes += [f"clock {now['clock']}, was {before['clock']}"] if now["clock"] != before["clock"] else []
    if list(now["state"]) != list(before["state"]):
        steps = "; a step after the first operator was added or taken away, which moves its state"
        alone = steps if _operators(now) == _operators(before) else ""
        return [*changes, f"operators with state: {_operators(now)}, were {_operators(before)}{alone}"]
    for scope, form in forms.items():
        changes += form.changes(StateForm(**before["state"][scope]))
    return changes


def _listed(types: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in types.items())


def _operators(definition: Mapping[str, Any]) -> str:
    """The operators with state, each with its place in the job."""
    state = definition["state"].items()
    places = (f"{form['fixed']['operator']} (number {int(at) + 1 if at else 1})" for at, form in state)
    return ", ".join(places) or "none"
