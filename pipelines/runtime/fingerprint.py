"""Refuses a start whose settings do not fit a job's stored state.

A file beside each checkpoint holds the settings that the job's state depends on, such as the window length. State that
was made with one window length and read with another would give windows of neither length.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import reduce
from pathlib import Path

from engine.files import recovered, write_whole
from engine.kafka.admin import partition_counts
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.jobs.chain import JOBS
from pipelines.jobs.links import LINKS

DEPENDS: dict[str, tuple[str, ...]] = {
    "extractor": ("window.size", "window.every", "window.allowed_lateness"),
    "templates": ("window.size",),
    "detector": ("window.size", "window.every", "detector.timezone"),
    "log_detector": ("window.size",),
    "incidents": (),
}
"""For each job the settings that its state depends on."""

MAY_SHRINK = frozenset({"window.allowed_lateness"})
"""Settings that may become smaller, but not larger: the state of older windows was already deleted."""

_FILE = "settings.json"


def check(settings: Settings, checkpoints: Path, jobs: Iterable[str]) -> None:
    """Compares the settings with those that the jobs' checkpoints were made with, and stores them beside these.

    Args:
        settings: The settings of this start.
        checkpoints: Directory of the jobs' checkpoints.
        jobs: Names of the jobs that will start.

    Raises:
        NewnormalError: ``SETTINGS_FIXED``, ``CHECKPOINT_UNREADABLE``; see `compare`.
    """
    for job, values in compare(settings, checkpoints, jobs).items():
        (checkpoints / job).mkdir(parents=True, exist_ok=True)
        write_whole(checkpoints / job / _FILE, json.dumps(values, indent=1))


def compare(settings: Settings, checkpoints: Path, jobs: Iterable[str]) -> dict[str, dict[str, str]]:
    """Compares the settings with those that the jobs' checkpoints were made with.

    Returns:
        For each job whose file is to be written, the settings that its state depends on.

    Raises:
        NewnormalError: ``SETTINGS_FIXED``; the message names each setting, its value then and now, and the jobs.
            ``CHECKPOINT_UNREADABLE`` if a file of settings is damaged.
    """
    wrong: dict[tuple[str, str], list[str]] = {}
    changed: dict[str, dict[str, str]] = {}
    for job in jobs:
        values, kept = {name: _value(settings, name) for name in DEPENDS.get(job, ())}, _kept(checkpoints / job)
        if values != kept:
            changed[job] = values
        for name, value in values.items():
            if name in kept and not _fits(name, kept[name], value):
                wrong.setdefault((name, kept[name]), []).append(job)
    if wrong:
        others = [
            f"{name} = {_value(settings, name)}, but the state of {', '.join(of)} was made with {old}"
            for (name, old), of in wrong.items()
        ]
        wanted = ", ".join(f"{name} = {old}" for name, old in wrong)
        accepted = f"{wanted}; or `newnormal replay --as v2`, which computes a version with the new values"
        raise NewnormalError("SETTINGS_FIXED", "; ".join(others), str(checkpoints), accepted, "nothing was started")
    return changed


def check_partitions(settings: Settings, jobs: Iterable[str]) -> None:
    """Checks that the topics that the jobs read have as many partitions as the settings say.

    A job waits for the watermark of each partition, and rejects records that lie in another partition than their key's.

    Raises:
        NewnormalError: ``PARTITIONS_FIXED`` if a topic has another number; ``KAFKA_UNREACHABLE``.
    """
    chosen = settings.kafka.partitions
    topics = {topic for job in jobs if job in JOBS for topic in LINKS[job].reads(settings)}
    there = partition_counts(settings.kafka.bootstrap or "", topics)
    others = {topic: count for topic, count in sorted(there.items()) if count != chosen}
    if others:
        others_have = ", ".join(f"{topic} has {count} partitions" for topic, count in others.items())
        counts = sorted(set(others.values()))
        accepted = f"{' or '.join(map(str, counts))}; or another namespace, with new topics"
        what, now = f"kafka.partitions = {chosen}, but {others_have}", "nothing was started"
        raise NewnormalError("PARTITIONS_FIXED", what, settings.kafka.bootstrap or "", accepted, now)


def _kept(checkpoint: Path) -> dict[str, str]:
    """The settings that a checkpoint was made with; empty if it was never used, or an older version made it."""
    if not (checkpoint / "metadata").exists():
        return {}
    file = checkpoint / _FILE
    try:
        return dict(json.loads(recovered(file).read_text()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        what = f"{_FILE} cannot be read ({error}); the state beside it has not been touched"
        accepted = "that file as a savepoint or a backup has it; or the file removed, if the settings are as before"
        raise NewnormalError("CHECKPOINT_UNREADABLE", what, str(file), accepted, "nothing was started") from error


def _value(settings: Settings, name: str) -> str:
    if name == "window.every":
        return settings.window.step
    return str(reduce(getattr, name.split("."), settings))


def _fits(name: str, old: str, new: str) -> bool:
    if not name.startswith("window."):
        return old == new
    before, after = duration_ms(old), duration_ms(new)
    return after == before or (after < before and name in MAY_SHRINK)
