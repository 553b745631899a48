"""The headings of a query's columns: an expression without an alias gets its text as heading."""

from __future__ import annotations

from collections.abc import Sequence

_OPERATORS = frozenset("+-*/%|<>=")


def headings(tokens: Sequence[str]) -> dict[int, str]:
    """The aliases that must be added to the expressions of the outermost SELECT.

    Args:
        tokens: The tokens of the query, with white space.

    Returns:
        Aliases, by the index of the token before which the alias is inserted.

    >>> tokens = ["SELECT", " ", "a", ", ", "min", "(", "x", ")", " ", "FROM", " ", "t"]
    >>> headings([*tokens[:3], ",", " ", *tokens[4:]])
    {9: 'min(x)'}
    """
    places, depth, begun, item = dict[int, str](), 0, False, list[int]()
    for place, token in enumerate([*tokens, "FROM"]):
        depth += (token == "(") - (token == ")")
        word = token.upper() if depth == 0 else ""
        if not begun:
            begun = word == "SELECT"
            continue
        if word in ("FROM", ",", ";"):
            if _needs_name([tokens[at] for at in item]):
                places[item[-1] + 1] = "".join(tokens[item[0] : item[-1] + 1])
            item = []
            if word != ",":
                break
        elif token.strip() and not (word in ("DISTINCT", "ALL") and not item):
            item.append(place)
    return places


def _needs_name(item: Sequence[str]) -> bool:
    """True if an expression is a call or a calculation without an alias; columns and ``*`` need no alias."""
    depth, calculated = 0, False
    for token in item:
        depth += (token == "(") - (token == ")")
        if depth == 0:
            if token.upper() == "AS":
                return False
            calculated = calculated or token in _OPERATORS
    if len(item) < 2 or item[-1] == "*":
        return False
    return item[-1] == ")" or (calculated and item[-2] in _OPERATORS)
