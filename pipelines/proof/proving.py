"""Computes an incident again in a version of its own that is thrown away, and compares it with what was said."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import structlog

from engine.spark.session import end
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import PROOF
from pipelines.jobs.links import LINKS
from pipelines.proof.account import Account, verdicts_on
from pipelines.proof.beginning import Beginning, beginning
from pipelines.proof.comparison import EARLIER, Comparison, compare
from pipelines.query import incidents as stored
from pipelines.runtime.starting import start_reader
from pipelines.savepoints.restoring import forked, restore
from pipelines.versions import retirement
from pipelines.versions.plan import planned
from pipelines.versions.registry import Registry
from pipelines.versions.replay import recompute
from pipelines.versions.used import run_at
from pipelines.versions.version import Run, Version

_NAME = re.compile(rf"{PROOF}[0-9a-f]{{12}}")
_STORES = "sink"
_STARTS_WITHIN = 3_600_000
"""Milliseconds within which a proof certainly has its jobs running, which protects its version from other proofs."""
log = structlog.get_logger()


@dataclass(frozen=True)
class Basis:
    """By what an incident can be computed again.

    Attributes:
        version: The version that said it, with the settings with which it ran then.
        run: The release and settings then; ``None`` if they were not kept.
        other_runs: Earlier runs of the version with another release or other settings: what it knew is from these, too.
        beginning: Where its input begins.
        until: The event time up to which it is computed, epoch milliseconds.
    """

    version: Version
    run: Run | None
    other_runs: tuple[Run, ...]
    beginning: Beginning
    until: int

    def notes(self) -> Iterator[str]:
        """What may make the results differ although the data are the same, one sentence each."""
        release = metadata.version("newnormal")
        if self.run is None:
            yield "with which settings it was said was not kept; those of the version's last start are used"
        elif self.run.release != release:
            yield f"it was said by release {self.run.release}, and is computed again by {release}"
        if self.other_runs:
            yield (
                f"{self.version.name} had run with another release or other settings before, "
                f"{len(self.other_runs)} times; what it had learned then is computed with those of the incident"
            )


def basis(account: Account, version: Version, settings: Settings, base: Settings) -> Basis:
    """Says by which offsets, version and settings an incident can be computed again.

    Args:
        account: What was said of it.
        version: The version that said it.
        settings: Its settings, with the address of Kafka filled in.
        base: The settings of the version from which it was forked, or its own.

    Raises:
        NewnormalError: ``PROOF_INPUT_DELETED``; ``KAFKA_UNREACHABLE``.
    """
    run = run_at(version, account.written)
    ran = run.settings if run else version.ran
    then = version.model_copy(update={"ran": ran})
    found = beginning(version, settings, ran, account.incident.start, base)
    others = tuple(each for each in version.runs if run and each.since < run.since) if not found.savepoint else ()
    return Basis(then, run, others, found, account.until)


def prove(
    account: Account,
    basis_: Basis,
    registry: Registry,
    filled: Callable[[Settings], Settings],
    overrides: dict[str, Any],
    now: int,
) -> Comparison:
    """Computes an incident again, compares it, and removes all that was made for that.

    Args:
        account: What was said of it.
        basis_: By what it is computed.
        registry: The versions.
        filled: Fills the servers' addresses into settings.
        overrides: Settings of the command line, by dotted name.
        now: The present, epoch milliseconds.

    Raises:
        NewnormalError: As those of `recompute`.
    """
    left = basis_.version
    name = f"{PROOF}{uuid.uuid4().hex[:12]}"
    made = planned(name, left, basis_.beginning.job, left.start, basis_.until, {}, now)
    made = made.model_copy(update={"jobs": tuple(job for job in made.jobs if job != _STORES)})
    settings = filled(made.load(**overrides))
    incident = account.incident
    with _thrown_away(made, registry, settings):
        begin = {}
        if basis_.beginning.savepoint:
            _restore(basis_.beginning, made, settings)
        elif made.start is None:
            begin = {job: _of(basis_.beginning, job, settings) for job in made.jobs}
        recompute(made, settings, {job: offsets for job, offsets in begin.items() if offsets})
        again = next((each for each in stored.incidents(settings) if each.id == incident.id), None)
        verdicts = verdicts_on(settings, incident)
    left_out = EARLIER if basis_.beginning.savepoint else ()
    computed = again, verdicts
    return compare((incident, account.verdicts), computed, left_out, rounded=basis_.beginning.rounded)


def _of(found: Beginning, job: str, settings: Settings) -> dict[tuple[str, int], int]:
    """Where a job begins to read, as far as it reads what the proof begins with."""
    read = {settings.reads(topic) for topic in LINKS[job].inputs}
    return {place: offset for place, offset in found.offsets.items() if place[0] in read}


def _restore(found: Beginning, version: Version, settings: Settings) -> None:
    """Gives the version's detectors the state of the savepoint."""
    assert found.catalogue is not None
    assert found.savepoint is not None
    plan = forked(found.catalogue, found.savepoint, version, settings, settings.engine.shards)
    plan.check()
    spark = start_reader(settings).session(2)
    try:
        restore(plan, spark)
    finally:
        end(spark)


@contextmanager
def _thrown_away(version: Version, registry: Registry, settings: Settings) -> Iterator[None]:
    """A version for the length of a block; those that killed proofs left an hour ago or earlier are removed, too."""
    for known in registry.all().values():
        old = known.created < version.created - _STARTS_WITHIN
        if old and _NAME.fullmatch(known.name) and _STORES not in known.jobs:
            try:
                _remove(known, registry, settings)
            except NewnormalError as error:
                if error.code != "ALREADY_RUNNING":  # another proof
                    raise
    registry.put(version)
    try:
        yield
    finally:
        _remove(version, registry, settings)


def _remove(version: Version, registry: Registry, settings: Settings) -> None:
    plan = retirement.planned(version, registry.all().values(), settings)
    retirement.retire(plan, registry, settings)
    log.debug("removed", version=version.name)
