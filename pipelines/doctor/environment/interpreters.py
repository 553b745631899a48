"""Checks that Python and Java are such that the jobs can run."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from deploy import java
from pipelines.doctor.finding import Finding, Severity, subject

_OLDEST = (3, 11)
_kind = subject("Environment")
_PYTHON = _kind(
    "PYTHON_TOO_OLD", Severity.BROKEN, "this Python is older than 3.11", "`make setup PYTHON=python3.12`, or newer"
)
_JAVA = _kind(
    "JAVA_MISSING",
    Severity.BROKEN,
    "no complete Java 17 or newer was found, which Spark and the embedded servers need",
    "`make setup` installs one; or set `JAVA_HOME` to a complete JDK or JRE",
)


def python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> list[Finding]:
    """Finds a Python that is too old."""
    if version[:2] >= _OLDEST:
        return []
    return [Finding(_PYTHON, f"Python is {'.'.join(map(str, version))}, 3.11 or newer is needed", sys.executable)]


def java_home(homes: Iterable[Path] | None = None) -> list[Finding]:
    """Finds that there is no suitable Java.

    Args:
        homes: Where a Java may be; ``None``: the usual places.
    """
    if java.find(homes=homes):
        return []
    what = "there is no Java 17 or newer with the module jdk.incubator.vector, which Spark needs"
    return [Finding(_JAVA, what, "JAVA_HOME, PATH")]
