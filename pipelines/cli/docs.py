"""`newnormal docs`: writes the generated reference pages, or checks that they are up to date."""

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

PAGES: dict[str, Callable[[], str]] = {
    "errors.md": errors_page,
    "records.md": records_page,
    "settings.md": settings_page,
}


def docs(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 if a page is stale.")] = False,
    folder: Annotated[Path, typer.Option(help="Where the pages are.")] = Path("docs"),
) -> None:
    """Generate docs/errors.md, docs/records.md and docs/settings.md from the definitions in the code."""
    stale = [name for name, page in PAGES.items() if _read(folder / name) != page()]
    if check:
        for name in stale:
            typer.echo(visible(f"{folder / name} is stale; run: newnormal docs"), err=True)
        raise typer.Exit(1 if stale else 0)
    for name in stale:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(PAGES[name](), encoding="utf-8")
        except OSError as error:
            raise NewnormalError("DOCS_NOT_WRITTEN", str(error), str(folder), "a writable folder") from None
        typer.echo(visible(f"wrote {folder / name}"))


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
