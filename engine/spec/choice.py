"""Checks, when a specification is built, a value that must be one of a few words."""

from __future__ import annotations

from typing import get_args

from engine.spec.errors import NewnormalError


def check_choice(value: str, accepted: object, where: str) -> None:
    """Refuses a word that is not a member of a type.

    Args:
        value: The word.
        accepted: A ``Literal`` type, whose members are accepted.
        where: The place that the error names.

    Raises:
        NewnormalError: ``CHOICE_INVALID``.

    >>> from typing import Literal
    >>> check_choice("left", Literal["inner", "left"], "IntervalJoin(how)")
    >>> check_choice("outer", Literal["inner", "left"], "IntervalJoin(how)")
    Traceback (most recent call last):
    ...
    engine.spec.errors.NewnormalError: CHOICE_INVALID: 'outer' is none of the possible words
      where: IntervalJoin(how)
      accepted: inner, left
    """
    if value not in get_args(accepted):
        what = f"{value!r} is none of the possible words"
        raise NewnormalError("CHOICE_INVALID", what, where, ", ".join(get_args(accepted)))
