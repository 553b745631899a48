"""Checks that Python, its packages and Java are such that the jobs can run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
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
_REPLACED = _kind(
    "PACKAGE_REPLACED",
    Severity.AT_RISK,
    "another package has installed its files as `urllib3`, which the Elasticsearch client uses: requests may fail",
    "uninstall that package, then `pip install --force-reinstall urllib3`; or run `make setup` in a new environment",
)  # fmt: skip
_MODULE = "urllib3"


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


def replaced(path: Sequence[str] | None = None) -> list[Finding]:
    """Finds packages that bring a module ``urllib3`` of their own, such as urllib3-future.

    Args:
        path: Folders with packages; ``None``: those of this process.
    """
    findings = []
    for package in metadata.distributions(path=list(sys.path if path is None else path)):
        name = package.metadata["Name"] or ""
        listed = "\n" + (package.read_text("RECORD") or "")
        if name.lower() != _MODULE and f"\n{_MODULE}/" in listed:
            what = f"{name} {package.version} has put its own files in the place of {_MODULE}"
            findings.append(Finding(_REPLACED, what, str(package.locate_file(_MODULE))))
    return findings
