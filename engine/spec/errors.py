"""Errors that a user can act on: a stable code, what is wrong, where, what is accepted, and what happens now.

Each package registers its codes in its ``codes.py``, which its ``__init__`` imports. So every process that can raise a
code has it registered, Spark's workers too. docs/errors.md is generated from the codes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """A code of errors or dead letters.

    Attributes:
        name: In UPPER_SNAKE case. Its meaning never changes, since scripts may match on it.
        means: What happened, for a reader of docs/errors.md.
        do: What the reader can do about it.
        section: The heading under which docs/errors.md lists it.
    """

    name: str
    means: str
    do: str
    section: str


REGISTRY: dict[str, Code] = {}
"""All codes that the packages imported so far may use, by name."""


def section(title: str) -> Callable[[str, str, str], None]:
    """A function that registers codes under one heading of docs/errors.md: name, what it means, what to do.

    >>> section("Settings")("SETTING_INVALID", "another meaning", "nothing")
    Traceback (most recent call last):
        ...
    LookupError: SETTING_INVALID is registered already, with another meaning: a code has one
    """

    def register(name: str, means: str, do: str) -> None:
        code = Code(name, means, do, title)
        if REGISTRY.setdefault(name, code) != code:
            raise LookupError(f"{name} is registered already, with another meaning: a code has one")

    return register


def registered(name: str) -> str:
    """Returns the code if it is registered.

    Raises:
        LookupError: If no package that is imported has registered it.
    """
    if name not in REGISTRY:
        raise LookupError(
            f"{name} is no registered code: add a line with what it means and what to do to codes.py of the package "
            "that raises it, then run: newnormal docs"
        )
    return name


class NewnormalError(Exception):
    """An error whose text tells a user how to mend it; it is shown without a stack trace.

    Args:
        code: A registered code.
        what: What is wrong, with the offending value.
        where: The setting, file, topic or command it was found in.
        accepted: What would have been accepted.
        now: What happens as a consequence.

    Raises:
        LookupError: If the code is not registered.

    >>> print(NewnormalError("SETTING_INVALID", "'10 parsecs' is no duration", "window.size", "10s, 5m", "not started"))
    SETTING_INVALID: '10 parsecs' is no duration
      where: window.size
      accepted: 10s, 5m
      now: not started
    """

    def __init__(self, code: str, what: str, where: str = "", accepted: str = "", now: str = "") -> None:
        self.code, self.what, self.where, self.accepted, self.now = registered(code), what, where, accepted, now
        details = {"where": where, "accepted": accepted, "now": now}
        super().__init__("\n".join([f"{code}: {what}", *(f"  {k}: {v}" for k, v in details.items() if v)]))

    @property
    def in_one_line(self) -> str:
        """Code, what is wrong and what is accepted, for answers that have one line."""
        return f"{self.code}: {self.what}" + (f"; accepted: {self.accepted}" if self.accepted else "")

    def __reduce__(self) -> tuple[Callable[..., NewnormalError], tuple[object, ...]]:
        """Unpickles without asking the registry: the other process need not have imported the module that raised it."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[NewnormalError], args: tuple[object, ...], fields: dict[str, object]) -> NewnormalError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error
