"""Checks that the next start would accept the checkpoints; it asks what a start asks, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable

from engine.kafka import continuation, retained
from engine.spark.checkpoint_layout import compare_layout
from engine.spark.checkpoint_offsets import next_offsets
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.jobs.chain import JOBS
from pipelines.runtime import fingerprint

_kind = subject("Jobs")
_NOT_SO = Severity.BROKEN
_REFUSALS = {
    kind.code: kind
    for kind in (
        _kind(
            "SETTINGS_FIXED",
            _NOT_SO,
            "a setting differs from the value that a checkpoint was made with: a start is refused",
            "restore the old value; or `newnormal replay --as v2`, which computes a version with the new one",
        ),
        _kind(
            "SHARDS_FIXED",
            _NOT_SO,
            "`engine.shards` differs from the number that a checkpoint was made with: a start is refused",
            "restore the old number; or `newnormal savepoint restore --shards` (savepoints.md)",
        ),
        _kind(
            "STATE_FORMAT",
            _NOT_SO,
            "a checkpoint is of a release whose state this one cannot read: a start is refused",
            "run the release that made it; or begin in a new `namespace`, or replay",
        ),
        _kind(
            "CHECKPOINT_MISSING",
            _NOT_SO,
            "a job has written output, but its checkpoint is not here: a start is refused",
            "put the checkpoint back, or use the right `--state-dir` and `--namespace` (operations.md)",
        ),
        _kind(
            "CHECKPOINT_BEHIND",
            _NOT_SO,
            "a checkpoint is older than the output of its job: a start is refused",
            "put the newest checkpoint back (operations.md)",
        ),
        _kind(
            "OFFSETS_MISSING",
            _NOT_SO,
            "Kafka has deleted messages that a job has not read: a start is refused",
            '`engine.on_missing_offsets = "archive"` or `"earliest"` (operations.md), and a longer `kafka.retention`',
        ),
    )
}


def layouts(context: Context) -> list[Finding]:
    """Finds checkpoints of other settings, another number of shards or another release; it asks no server."""
    settings, jobs = context.settings, context.jobs
    sharded = [name for name in jobs if name in JOBS]
    return [
        *_asked(lambda: fingerprint.compare(settings, context.checkpoints, jobs)),
        *_asked(lambda: compare_layout(context.checkpoints, sharded, settings.engine.shards, "engine.shards")),
    ]


def continuations(context: Context) -> list[Finding]:
    """Finds output without its checkpoint, checkpoints older than their output, and messages that are gone."""
    settings, checkpoints = context.settings, context.checkpoints
    jobs = [JOBS[name](settings) for name in context.jobs if name in JOBS]
    outputs = {job.name: [each.topic for each in job.outputs if each != job.dead] for job in jobs}
    ledger, owner = settings.topic(topics.LEDGER), settings.owner
    found = _asked(lambda: continuation.check(context.bootstrap, owner, ledger, checkpoints, outputs))
    needed = {name: next_offsets(checkpoints / name) for name in context.jobs}
    setting = "engine.on_missing_offsets"
    return found + _asked(lambda: retained.check(context.bootstrap, checkpoints, needed, "fail", setting))


def _asked(check: Callable[[], object]) -> list[Finding]:
    """What a check of a start would refuse."""
    try:
        check()
    except NewnormalError as error:
        if error.code not in _REFUSALS:
            raise
        return [Finding(_REFUSALS[error.code], error.what, error.where, error.accepted)]
    return []
