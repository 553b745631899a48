"""Commands that a text tells the reader to try next, with the state directory that this command line names.

Without it the reader would start, or look at, the servers of another folder.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

PLACELESS = frozenset(
    {"score", "decode", "acls", "plan", "chaos", "docs", "example", "stack", "cluster", "bench", "--help", "--version"}
)
"""Commands that have no ``--state-dir``: they use no server, or start one that has nothing to do with it."""

_COMMAND = re.compile(r"`newnormal (?P<name>[a-z-]+)(?P<rest>[^`]*)`")
_state_dir: Path | None = None


def begin() -> None:
    """Is called between two command lines of a process: none has named a state directory."""
    _remember(None)


def remember(state_dir: Path | None) -> Path | None:
    """Takes the value of the option ``--state-dir``, and returns it."""
    if state_dir is not None:
        _remember(state_dir)
    return state_dir


def _remember(state_dir: Path | None) -> None:
    global _state_dir  # noqa: PLW0603  a process runs one command line; errors are shown after its context has ended
    _state_dir = state_dir


def hint(text: str) -> str:
    """A text whose commands in backticks have the state directory of this command line.

    >>> hint("`newnormal versions` lists them")
    '`newnormal versions` lists them'
    >>> _ = remember(Path("/data/site a"))
    >>> hint("`newnormal savepoint restore friday` goes back; `newnormal plan --help` says how large")
    "`newnormal savepoint restore friday --state-dir '/data/site a'` goes back; `newnormal plan --help` says how large"
    >>> begin()
    """
    return _COMMAND.sub(_placed, text)


def command(line: str) -> str:
    """A command line, e.g. ``newnormal console``, with the state directory of this one."""
    return hint(f"`{line}`").strip("`")


def _placed(match: re.Match[str]) -> str:
    if _state_dir is None or match["name"] in PLACELESS or "--state-dir" in match["rest"]:
        return match[0]
    return f"`newnormal {match['name']}{match['rest']} --state-dir {shlex.quote(str(_state_dir))}`"
