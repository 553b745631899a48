"""How an installed dashboard is known as ours and unchanged: by a mark in its description.

The mark has the version of Newnormal and two short hashes: of what was rendered, and of what the server then held,
which may differ by defaults that the server adds. If the server holds something else than the second hash says,
somebody has changed the dashboard.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal

Status = Literal["new", "same", "outdated", "changed"]
"""`new`: not there; `same`: up to date; `outdated`: an older one of ours; `changed`: a user's, or changed by a user."""

_MARK = re.compile(r"\n\n\[Newnormal (\S+) ([0-9a-f]{12})/([0-9a-f]{12})\]\Z")


@dataclass(frozen=True)
class Compared:
    """What would be installed beside what is on the server.

    Args:
        title: Its title.
        status: How the two differ.
        version: Version of Newnormal that installed what is there; empty if nothing says so.
        folder: Uid of Grafana's folder in which it is; empty if it is not there, or in none.
    """

    title: str
    status: Status
    version: str = ""
    folder: str = ""

    def is_replaced(self, replace: bool) -> bool:
        """Whether an installation writes it; ``replace``: also if users have changed it."""
        return self.status in ("new", "outdated") or (replace and self.status == "changed")


@dataclass(frozen=True)
class Mark:
    """What the description of an installed dashboard says.

    Args:
        version: Version of Newnormal that installed it.
        rendered: Hash of the content that was installed.
        held: Hash of the content as the server then held it.
    """

    version: str
    rendered: str
    held: str

    def after(self, text: str) -> str:
        """A description with this mark.

        >>> Mark.of(Mark("0.1.0", "0" * 12, "f" * 12).after("What is wrong?")).version
        '0.1.0'
        """
        return f"{text}\n\n[Newnormal {self.version} {self.rendered}/{self.held}]"

    @classmethod
    def of(cls, description: str) -> Mark | None:
        """The mark of a description, if it has one."""
        found = _MARK.search(description)
        return cls(*found.groups()) if found else None


def content_hash(content: Any) -> str:
    """A short hash of a value made of lists, dicts and scalars; the order of keys does not matter."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def this_version() -> str:
    """The version of Newnormal that runs."""
    return metadata.version("newnormal")


def status(mark: Mark | None, held: str, rendered: str) -> Status:
    """How an installed dashboard stands to what would be installed now.

    Args:
        mark: Its mark.
        held: Hash of its content on the server.
        rendered: Hash of what would be installed.
    """
    if mark is None or mark.held != held:
        return "changed"
    return "same" if mark.rendered == rendered else "outdated"
