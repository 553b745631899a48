"""Makes, lists and deletes the savepoints of a version, which are folders beside its checkpoints."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from pydantic import ValidationError

from engine.spark.checkpoint_copy import copied
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.savepoints.savepoint import SavedJob, Savepoint
from pipelines.versions.version import CHANGEABLE

_FILE, _UNFINISHED = "savepoint.json", ".unfinished"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_WHERE = "newnormal savepoint"


class Catalogue:
    """The savepoints of a version.

    Args:
        settings: The settings of the version.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.folder, self.checkpoints = settings.folder("savepoints"), settings.folder("checkpoints")

    def create(self, name: str, jobs: Sequence[str], now: int) -> Savepoint:
        """Copies the checkpoints of jobs, which may run.

        Jobs that read what others write are copied first, so that nothing is behind what they have read.

        Args:
            name: Name of the savepoint.
            jobs: Names of jobs, in the order in which data flow; those without a checkpoint are left out.
            now: The present, epoch milliseconds.

        Raises:
            NewnormalError: ``SAVEPOINT_NAME``, ``SAVEPOINT_EXISTS``, ``SAVEPOINT_EMPTY``, ``SAVEPOINT_INCOMPLETE``.
        """
        if not _NAME.fullmatch(name):
            accepted = "letters, digits, dots, _ and -, at most 100"
            raise NewnormalError("SAVEPOINT_NAME", f"{name!r} is no name of a savepoint", _WHERE, accepted, _NOTHING)
        if (self.folder / name).exists():
            accepted = f"another name, or `newnormal savepoint delete {name}` first"
            raise NewnormalError(
                "SAVEPOINT_EXISTS", f"there is a savepoint {name}", str(self.folder), accepted, _NOTHING
            )
        begun = [job for job in jobs if (self.checkpoints / job / "metadata").exists()]
        if not begun:
            what = f"none of {', '.join(jobs)} has a checkpoint"
            accepted = "jobs that have run, see `newnormal versions`"
            raise NewnormalError("SAVEPOINT_EMPTY", what, str(self.checkpoints), accepted, _NOTHING)
        part = self.folder / f"{name}{_UNFINISHED}"
        shutil.rmtree(part, ignore_errors=True)
        try:
            saved = {job: self._copied(job, part) for job in reversed(begun)}
            savepoint = Savepoint(
                name=name, version=self.settings.version, namespace=self.settings.namespace, created=now,
                program=metadata.version("newnormal"), settings=_settings(self.settings),
                jobs={job: saved[job] for job in begun},
            )  # fmt: skip
            (part / _FILE).write_text(savepoint.model_dump_json(indent=1))
            part.rename(self.folder / name)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return savepoint

    def _copied(self, job: str, into: Path) -> SavedJob:
        copy = copied(self.checkpoints / job, into / job)
        layout = into / job / "layout.json"
        kept = json.loads(layout.read_text()) if layout.exists() else {}
        return SavedJob(
            batch=copy.batch,
            offsets=copy.offsets,
            shards=kept.get("shards", 0),
            state_format=kept.get("format", 0),
            bytes=copy.bytes,
        )

    def all(self) -> list[Savepoint]:
        """All savepoints, the oldest first."""
        files = self.folder.glob(f"*/{_FILE}")
        found = [self._read(file.parent) for file in files if not file.parent.name.endswith(_UNFINISHED)]
        return sorted(found, key=lambda each: (each.created, each.name))

    def get(self, name: str) -> Savepoint:
        """One savepoint.

        Raises:
            NewnormalError: ``SAVEPOINT_UNKNOWN``, or ``SAVEPOINT_UNREADABLE`` if its manifest is broken.
        """
        if not (self.folder / name / _FILE).exists():
            known = ", ".join(each.name for each in self.all()) or "none yet: `newnormal savepoint create NAME`"
            raise NewnormalError(
                "SAVEPOINT_UNKNOWN", f"there is no savepoint {name}", str(self.folder), known, _NOTHING
            )
        return self._read(self.folder / name)

    def job_folder(self, savepoint: Savepoint, job: str) -> Path:
        """The copy of a job's checkpoint."""
        return self.folder / savepoint.name / job

    def delete(self, savepoint: Savepoint) -> None:
        """Deletes a savepoint; checkpoints keep the files that they have in common with it."""
        shutil.rmtree(self.folder / savepoint.name)

    def _read(self, folder: Path) -> Savepoint:
        try:
            return Savepoint.model_validate_json((folder / _FILE).read_bytes())
        except (OSError, ValidationError) as error:
            accepted = "a folder that `newnormal savepoint create` made"
            raise NewnormalError("SAVEPOINT_UNREADABLE", str(error), str(folder / _FILE), accepted, _NOTHING) from None


_NOTHING = "nothing was changed"


def _settings(settings: Settings) -> dict[str, object]:
    tree = settings.model_dump(mode="json")
    return {section: tree[section] for section in CHANGEABLE}
