"""`newnormal docs`: writes the reference pages that are generated from the code, or checks that they are up to date."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

import dashboards.codes  # noqa: F401  the page of error codes holds those of all packages
import datagen.codes  # noqa: F401
import deploy.codes  # noqa: F401
from engine.explain.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.contracts.schemas.markdown import errors_page, records_page, settings_page
from pipelines.doctor.page import with_findings
from pipelines.jobs.pages import jobs_page, with_picture
from pipelines.runtime.acl_page import with_acls

PAGES: dict[str, Callable[[], str]] = {
    "errors.md": errors_page,
    "jobs.md": jobs_page,
    "records.md": records_page,
    "settings.md": settings_page,
}


def docs(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with code 1 if a page is stale.")] = False,
    folder: Annotated[Path, typer.Option(help="Folder of the pages.")] = Path("docs"),
) -> None:
    """Generate the reference pages in docs/ and the picture of the jobs in README.md from the definitions in the code.

    The pages are errors.md, jobs.md, records.md and settings.md, the findings in troubleshooting.md and the ACLs in
    security.md; README.md is in the parent of their folder.
    """
    wanted = {folder / name: page() for name, page in PAGES.items()}
    parts = {
        folder.parent / "README.md": with_picture,
        folder / "troubleshooting.md": with_findings,
        folder / "security.md": with_acls,
    }
    for path, renewed in parts.items():
        if (written := _read(path)) is not None:
            wanted[path] = renewed(written)
    stale = [path for path, text in wanted.items() if _read(path) != text]
    if check:
        for path in stale:
            typer.echo(visible(f"{path} is stale; run: newnormal docs"), err=True)
        raise typer.Exit(1 if stale else 0)
    for path in stale:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
        except OSError as error:
            raise NewnormalError("DOCS_NOT_WRITTEN", str(error), str(folder), "a writable folder") from None
        typer.echo(visible(f"wrote {path}"))


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
