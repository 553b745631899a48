"""Prints the packages that Newnormal needs to run, one a line, from pyproject.toml: those for development are left out.

The build of the image runs it before the code is there, so it uses nothing but the standard library.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def dependencies(project: Path) -> list[str]:
    """The requirements of a project as its pyproject.toml lists them, without the optional ones."""
    listed: list[str] = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["dependencies"]
    return listed


if __name__ == "__main__":
    print("\n".join(dependencies(Path(sys.argv[1]))))
