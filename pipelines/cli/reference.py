"""The reference pages that are generated from the code; importing this module imports all packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import dashboards.codes  # noqa: F401  the page of error codes holds those of all packages
import datagen.codes  # noqa: F401
import deploy.codes  # noqa: F401
from models.constants_page import constants_page
from pipelines.cli.commands_page import commands_page
from pipelines.contracts.schemas.markdown import errors_page, records_page, settings_page
from pipelines.doctor.page import with_findings
from pipelines.jobs.pages import jobs_page
from pipelines.runtime.acl_page import with_acls

PAGES: Mapping[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "errors.md": errors_page,
    "jobs.md": jobs_page,
    "model-constants.md": constants_page,
    "records.md": records_page,
    "settings.md": settings_page,
}


def wanted(folder: Path) -> dict[Path, str]:
    """What the pages should hold; pages with a generated part are left out where they are not there.

    Args:
        folder: Folder of the pages.
    """
    pages = {folder / name: page() for name, page in PAGES.items()}
    parts = {
        folder / "troubleshooting.md": with_findings,
        folder / "security.md": with_acls,
    }
    for path, renewed in parts.items():
        if (written := read(path)) is not None:
            pages[path] = renewed(written)
    return pages


def read(path: Path) -> str | None:
    """What a page holds now; ``None`` if it is not there."""
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
