"""`newnormal docs`: writes the reference pages that are generated from the code, or checks that they are up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.printing import visible
from engine.spec.errors import NewnormalError


def docs(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with code 1 if a page is stale.")] = False,
    folder: Annotated[Path, typer.Option(help="Folder of the pages.")] = Path("docs"),
) -> None:
    """Generate the reference pages in docs/ from the definitions in the code.

    The pages are commands.md, errors.md, jobs.md, model-constants.md, records.md and settings.md, the findings in
    troubleshooting.md, the steps in why-no-alert.md and the ACLs in security.md.
    """
    from pipelines.cli.reference import generated, read  # it imports all packages

    pages = generated(folder)
    stale = [path for path, text in pages.items() if read(path) != text]
    if check:
        for path in stale:
            typer.echo(visible(f"{path} is stale; run: newnormal docs"), err=True)
        raise typer.Exit(1 if stale else 0)
    for path in stale:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(pages[path], encoding="utf-8")
        except OSError as error:
            raise NewnormalError("DOCS_NOT_WRITTEN", str(error), str(folder), "a writable folder") from None
        typer.echo(visible(f"wrote {path}"))
