"""Loads the jobs that a user's Python file defines; the driver of the production chain runs them."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from engine.kafka.admin import ensure_topics
from engine.kafka.binding import beating, bound, make_topics
from engine.spark.checkpoint_layout import check_definitions
from engine.spark.module_path import share_module_path
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.jobs.links import LINKS
from pipelines.runtime.program import Program

_NOW = "nothing was started"


class OwnJobs(Program):
    """The jobs of a user's file. The setting ``namespace`` is not put before the names of their topics.

    Spark's workers import the user's module only when they get a job, not before they fork: the module may compute with
    Polars while it builds a job, and the threads of Polars do not survive a fork.

    Args:
        jobs: The jobs.
        files: The files that define them.

    Raises:
        NewnormalError: ``JOB_TWICE`` if two jobs have the same name; ``JOBS_FILE`` if a job has the name of a
            production job.
    """

    modules = ("engine.stream", "engine.vectorized")

    def __init__(self, jobs: Sequence[Job], files: Sequence[Path] = ()) -> None:
        self.files = tuple(files)
        self.names = tuple(job.name for job in jobs)
        self._jobs = {job.name: job for job in jobs}
        if doubled := {name for name in self.names if self.names.count(name) > 1}:
            what = f"{', '.join(sorted(doubled))}"
            raise NewnormalError("JOB_TWICE", what, "jobs of one start", "a name of its own for each job", _NOW)
        if taken := sorted(set(self.names) & set(LINKS)):
            what = f"{', '.join(taken)} is the name of a job of Newnormal itself"
            raise NewnormalError("JOBS_FILE", what, "name of a job", "another name: write(name)", _NOW)

    def prepare(self, settings: Settings) -> None:
        bootstrap, kafka = settings.kafka.bootstrap or "", settings.kafka
        make_topics(bootstrap, self._jobs.values(), kafka.partitions, kafka.replication)
        ledger = {settings.topic(topics.LEDGER): topics.config(topics.LEDGER)}
        ensure_topics(bootstrap, ledger, kafka.partitions, kafka.replication)
        self._jobs = {name: bound(job, bootstrap) for name, job in self._jobs.items()}

    def job(self, name: str, settings: Settings) -> Job | None:
        return self._jobs[name]

    def reads(self, name: str, settings: Settings) -> Sequence[str]:
        return self._jobs[name].topics

    def writes(self, name: str, settings: Settings) -> Sequence[str]:
        return [output.topic for output in self._jobs[name].outputs]

    def beating(self, names: Sequence[str], settings: Settings) -> list[str]:
        return sorted({topic for name in names for topic in beating(self._jobs[name])})

    def check(self, names: Sequence[str], settings: Settings, checkpoints: Path) -> None:
        check_definitions(checkpoints, [self._jobs[name] for name in names])


def load_jobs(texts: Sequence[str]) -> OwnJobs:
    """Loads the jobs that arguments of `newnormal run` name.

    The folder of each file is put on the module path of this process and of Spark's workers.

    Args:
        texts: The arguments: ``my_jobs.py`` for all jobs in the file, ``my_jobs.py:words`` for one of them.

    Raises:
        NewnormalError: ``JOBS_FILE`` if a file cannot be loaded or has no such job. A `NewnormalError` that the file
            raises keeps its code; its place gets the line in the file.
    """
    jobs: list[Job] = []
    files = [Path(text.partition(":")[0]).resolve() for text in texts]
    for text in texts:
        path, _, chosen = text.partition(":")
        by_name = dict(_jobs(_module(Path(path))))
        if chosen and chosen not in by_name and chosen not in {job.name for job in by_name.values()}:
            what = f"there is no job {chosen} in {path}"
            raise NewnormalError("JOBS_FILE", what, text, ", ".join(by_name) or "a file with a job", _NOW)
        if not by_name:
            what = f"there is no job in {path}"
            raise NewnormalError(
                "JOBS_FILE", what, text, "a variable of the module: words = Stream...write(name)", _NOW
            )
        jobs += [job for name, job in by_name.items() if chosen in ("", name, job.name) and job not in jobs]
    return OwnJobs(jobs, list(dict.fromkeys(files)))


def _jobs(module: ModuleType) -> Iterator[tuple[str, Job]]:
    """The jobs among the variables of a module, in order of definition; a job with two names is yielded once."""
    seen: list[Job] = []
    for name, value in vars(module).items():
        if isinstance(value, Job) and not any(value is job for job in seen):
            seen.append(value)
            yield name, value


def _module(path: Path) -> ModuleType:
    """Imports the module of a file by its name, as Spark's workers will do."""
    if not path.is_file():
        raise NewnormalError("JOBS_FILE", f"there is no file {path}", str(path), "a Python file with jobs", _NOW)
    path, name = path.resolve(), path.stem
    if not name.isidentifier():
        raise NewnormalError("JOBS_FILE", f"{name!r} is not a module name", str(path), "e.g. my_jobs.py", _NOW)
    share_module_path(path.parent)
    if _importable(name) != path:
        what = f"a module {name} is installed already, so that {path.name} cannot be imported by its name"
        raise NewnormalError("JOBS_FILE", what, str(path), "another name for the file", _NOW)
    _refuse_hidden(path, {path})
    try:
        return importlib.import_module(name)
    except NewnormalError as error:
        where = f"{error.where}, {_line(error, path)}" if error.where else _line(error, path)
        raise NewnormalError(error.code, error.what, where, error.accepted, _NOW) from error
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise NewnormalError("JOBS_FILE", what, _line(error, path), "a file that Python can import", _NOW) from error


def _importable(name: str) -> Path | None:
    """The file that Python imports by a name."""
    known = importlib.util.find_spec(name)
    return Path(known.origin).resolve() if known and known.origin else None


def _refuse_hidden(path: Path, seen: set[Path]) -> None:
    """Refuses a file that imports one beside it, in whose place Python would import another of that name.

    Newnormal's own packages have common names, such as ``models``: without a word theirs would be used.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # its import says where
    for name in sorted(_imported(tree)):
        beside = (path.parent / f"{name}.py", path.parent / name / "__init__.py")
        own = next((each for each in beside if each.is_file()), None)
        if own is None or own in seen:
            continue
        if (found := _importable(name)) != own:
            what = f"{path.name} imports {name}, which would be {found} and not {own}"
            raise NewnormalError("JOBS_FILE", what, str(path), f"another name for {own}", _NOW)
        seen.add(own)
        _refuse_hidden(own, seen)


def _imported(tree: ast.AST) -> set[str]:
    """The first parts of the names of all modules that a file imports by their full name."""
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def _line(error: BaseException, path: Path) -> str:
    """The place in the file at which an error arose, such as ``my_jobs.py:12``."""
    if isinstance(error, SyntaxError):
        return f"{path.name}:{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    return f"{path.name}:{lines[-1]}" if lines else path.name
