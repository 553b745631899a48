"""Apache Flink for the benchmarks: PyFlink in an environment of its own, which shares no package with this one.

The environment and the jars stay in the user's cache: 800 MB, which ``make bench-flink`` downloads once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy import artifacts
from deploy.artifacts import ArtifactSet
from deploy.ivy import Artifact
from deploy.java import cache_dir
from engine.locks import locked
from engine.spec.errors import NewnormalError

VERSION = "2.3.0"
_GROUP = "org.apache.flink"
_JARS = ArtifactSet(
    "flink",
    VERSION,
    15_000_000,
    (
        Artifact(_GROUP, "flink-sql-connector-kafka", "5.0.0-2.2"),  # the newest; it works with 2.3
        Artifact(_GROUP, "flink-sql-avro", VERSION),
    ),
)


@dataclass(frozen=True)
class Flink:
    """An installed Flink.

    Attributes:
        python: The interpreter that has PyFlink.
        jars: Jars that Flink's jobs need and PyFlink does not bring.
    """

    python: Path
    jars: tuple[Path, ...]


def _folder() -> Path:
    return cache_dir() / "peers" / f"flink-{VERSION}"


def _complete() -> Path:
    """The file that says that all packages are there."""
    return _folder() / "complete"


def installed() -> bool:
    """Whether it is here."""
    return _complete().exists()


def ensure() -> Flink:
    """Flink, after installing it if it is not here yet; safe in several processes at once.

    Raises:
        NewnormalError: ``DOWNLOAD_FAILED``, ``DOWNLOAD_ALTERED`` or ``DISK_FULL``.
    """
    python = _folder() / "bin" / "python"
    jars = artifacts.ensure(_JARS)
    with locked(_folder().with_suffix(".lock")):
        if not installed():
            print(f"Installing Flink {VERSION} (800 MB, some minutes, once) ...", file=sys.stderr)
            _call([sys.executable, "-m", "venv", "--clear", str(_folder())])
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _call([*pip, f"apache-flink=={VERSION}"])
            _complete().touch()
    return Flink(python, tuple(sorted(jars.glob("*.jar"))))


def _call(command: Sequence[str]) -> None:
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode:
        raise NewnormalError(
            "DOWNLOAD_FAILED",
            f"Flink {VERSION} could not be installed: `{' '.join(command[1:4])} ...` ended with {done.returncode}",
            str(_folder()),
            "a Python that Flink supports, and access to the packages of Python",
            "nothing was measured; the next start tries again",
        )
