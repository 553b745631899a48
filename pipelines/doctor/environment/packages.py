"""Checks that installed packages have not taken the place of others that Newnormal uses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import metadata

from pipelines.doctor.finding import Finding, Severity, subject

_kind = subject("Environment")
_REPLACED = _kind(
    "PACKAGE_REPLACED",
    Severity.AT_RISK,
    "another package has installed its files as `urllib3`, which the Elasticsearch client uses: requests may fail",
    "uninstall that package, then `pip install --force-reinstall urllib3`; or run `make setup` in a new environment",
)  # fmt: skip
_MODULE = "urllib3"


def replaced(path: Sequence[str] | None = None) -> list[Finding]:
    """Finds packages that bring a module ``urllib3`` of their own, such as urllib3-future.

    Args:
        path: Folders with packages; ``None``: those of this process.
    """
    found = []
    for each in metadata.distributions(path=list(sys.path if path is None else path)):
        name = each.metadata["Name"] or ""
        listed = "\n" + (each.read_text("RECORD") or "")
        if name.lower() != _MODULE and f"\n{_MODULE}/" in listed:
            what = f"{name} {each.version} has put its own files in the place of {_MODULE}"
            found.append(Finding(_REPLACED, what, str(each.locate_file(_MODULE))))
    return found
