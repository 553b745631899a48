"""Plans the version that a replay makes, and refuses what could not give the results that it promises."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.versions.version import CHANGEABLE, Version, from_job, is_setting, sources

_NOW = "nothing was started"
_DECIDED_BY = {"watermark": "normalizer", "window": "extractor", "detector": "detector", "incidents": "incidents"}
"""For sections of settings that decide what later jobs read: the job that must be replayed to change them."""


def planned(
    name: str, base: Version, job: str, start: int | None, end: int | None, settings: dict[str, Any], now: int
) -> Version:
    """A version that is replayed from another one.

    Args:
        name: Its name.
        base: The version whose topics it reads.
        job: The first job that it has itself.
        start: Event time from which on it computes results, epoch milliseconds; ``None``: from the start of the log.
        end: Event time at which it ends; ``None``: never.
        settings: The settings in which it differs, by dotted name; see `differing`.
        now: The present, epoch milliseconds.

    Raises:
        NewnormalError: ``JOB_UNKNOWN``, ``VERSION_INVALID``, ``VERSION_SETTINGS`` or ``REPLAY_BOUNDS``.
    """
    jobs = from_job(job)
    if name == base.name:
        what = f"{name} is the version that is replayed"
        raise NewnormalError("VERSION_INVALID", what, "--as", "a name of its own, e.g. v2", _NOW)
    for section in sorted({dotted.partition(".")[0] for dotted in settings}):
        if section not in CHANGEABLE:
            accepted = f"settings of {', '.join(CHANGEABLE)}"
            raise NewnormalError(
                "VERSION_SETTINGS", f"{section} is the same for all versions", "--config", accepted, _NOW
            )
        decided = _DECIDED_BY.get(section)
        if decided and decided not in jobs:
            what = f"{section} decides what {job} reads, and {job} would read what {base.name} has written"
            raise NewnormalError("VERSION_SETTINGS", what, "--config", f"--job {decided}", _NOW)
    if (start is not None or end is not None) and jobs == from_job("sink"):
        what = "the sink alone stores all verdicts of the version that it reads"
        raise NewnormalError("REPLAY_BOUNDS", what, "--from, --until", "--job detector, or no bounds", _NOW)
    if start is not None and end is not None and start >= end:
        what = f"it would begin at {iso(start)} and end at {iso(end)}"
        raise NewnormalError("REPLAY_BOUNDS", what, "--from, --until", "an end after the start", _NOW)
    version = Version(
        name=name, base=base.name, jobs=jobs, sources=sources(jobs, base), settings=base.settings | settings,
        ran=base.ran, start=start, end=end, created=now,
    )  # fmt: skip
    _ = version.names  # refuses a wrong name
    return version


def differing(config: Path | None) -> dict[str, Any]:
    """The settings in a TOML file, by dotted name; empty without a file.

    Raises:
        NewnormalError: ``SETTING_INVALID`` if the file is no TOML, or names what is no setting; an `OSError` if it
            cannot be read.
    """
    if config is None:
        return {}
    try:
        tree = tomllib.loads(config.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        accepted = "TOML, see docs/settings.md"
        raise NewnormalError("SETTING_INVALID", str(error), str(config), accepted, _NOW) from None
    settings: dict[str, Any] = {}
    for section, values in tree.items():
        if isinstance(values, dict) and section in Settings.model_fields:
            settings |= {f"{section}.{name}": value for name, value in values.items()}
        else:
            settings[section] = values
    if unknown := sorted(name for name in settings if not is_setting(name)):
        what, accepted = f"{', '.join(unknown)} is no setting", "the settings in docs/settings.md"
        raise NewnormalError("SETTING_INVALID", what, str(config), accepted, _NOW)
    return settings


def same(asked: Version, kept: Version) -> bool:
    """Whether a version that is asked for is the one that exists.

    The time when it was made does not matter, nor with which settings its base has run since. A bound such as ``-6h``
    is the same bound a minute later: it is as far from the time when the version was made.
    """
    of_kept = {name: getattr(kept, name) for name in ("created", "ended", "ran", "runs", "forked")}
    alike = [_same_instant(asked, kept, bound) for bound in ("start", "end")]
    return all(alike) and asked.model_copy(update=of_kept | {"start": kept.start, "end": kept.end}) == kept


def _same_instant(asked: Version, kept: Version, bound: str) -> bool:
    one, other = getattr(asked, bound), getattr(kept, bound)
    return one == other or (None not in (one, other) and one - asked.created == other - kept.created)
