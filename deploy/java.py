"""Finds a Java for Spark, Kafka and Elasticsearch; installs one only if that is asked for.

``python -m deploy.java`` prints its home; ``python -m deploy.java install`` installs one first if there is none.
A trimmed Java does not suffice: Spark's launcher needs ``jdk.incubator.vector``.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from deploy.progress import saying
from engine.spec.errors import NewnormalError

_MODULE = "jdk.incubator.vector"
_SYSTEM_HOMES = (Path("/usr/lib/jvm"), Path("/opt/java"), Path("/Library/Java/JavaVirtualMachines"))
_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless")


def cache_dir() -> Path:
    """Where Newnormal keeps what it downloads: ``$XDG_CACHE_HOME/newnormal``, by default ``~/.cache/newnormal``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "newnormal"


@functools.cache
def java_home(minimum: int = 17) -> Path:
    """The home of a complete Java of at least version ``minimum``; installs nothing.

    Searches ``JAVA_HOME``, ``PATH``, the usual places of the system and our own cache, in that order.

    Raises:
        NewnormalError: ``JAVA_MISSING`` if there is none.
    """
    return find(minimum) or _missing(minimum, "was found")


def install(minimum: int = 17) -> Path:
    """Like `java_home`, but installs a missing Java from the packages of the system if possible (as root, with apt).

    Only the package manager of the system is used, because its packages are signed and a bare archive is not.

    Raises:
        NewnormalError: ``JAVA_MISSING`` if none could be installed.
    """
    found = find(minimum) or _from_apt(minimum)
    return found or _missing(minimum, "was found, and none could be installed")


def find(minimum: int = 17, homes: Iterable[Path] | None = None) -> Path | None:
    """The first suitable one of ``homes`` (default: all usual places), or ``None``; installs nothing."""
    return next((home for home in homes or candidates(os.environ) if _will_do(home, minimum)), None)


def candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    """Places where a Java may be, best first."""
    if named := environ.get("JAVA_HOME"):
        yield Path(named)
    if found := shutil.which("java", path=environ.get("PATH")):
        yield Path(found).resolve().parent.parent
    for parent in (*_SYSTEM_HOMES, cache_dir() / "java"):
        for home in sorted(parent.glob("*")):
            yield home
            yield home / "Contents" / "Home"


def _will_do(home: Path, minimum: int) -> bool:
    program = home / "bin" / "java"
    if not program.is_file():
        return False
    try:
        command = [str(program), "--list-modules"]
        listing = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):  # too old to know modules, or not for this machine
        return False
    base = re.search(r"^java\.base@(\d+)", listing.stdout, re.MULTILINE)
    return base is not None and int(base[1]) >= minimum and f"{_MODULE}@" in listing.stdout


def _from_apt(minimum: int) -> Path | None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with saying("Installing Java from the system's packages"):
        subprocess.run(["apt-get", "update", "-qq"], env=environ, stdout=sys.stderr, check=False)
        for package in _PACKAGES:
            command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
            subprocess.run(command, env=environ, stdout=sys.stderr, check=False)
            if found := find(minimum):
                return found
    return None


def _missing(minimum: int, why: str) -> Path:
    raise NewnormalError(
        "JAVA_MISSING",
        f"no Java {minimum} or newer with the module {_MODULE} {why}",
        "JAVA_HOME, PATH, " + ", ".join(str(place) for place in (*_SYSTEM_HOMES, cache_dir() / "java")),
        "`make setup`, or `python -m deploy.java install`, installs one where it can; else install one "
        f"(Debian, Ubuntu: apt-get install {_PACKAGES[0]}; Fedora: dnf install java-17-openjdk-headless; "
        "macOS: brew install openjdk@17) or set JAVA_HOME to a complete JDK or JRE",
        "nothing was started: Spark, Kafka and Elasticsearch need it",
    )


def main() -> None:
    """Prints the home of the Java that is used; with ``install``, installs one ahead of that if there is none."""
    try:
        print(install() if sys.argv[1:] == ["install"] else java_home())
    except NewnormalError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
