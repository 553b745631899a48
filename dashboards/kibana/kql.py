"""Conditions in Kibana's query language (KQL)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dashboards.panels.query import Among, AtLeast, Condition, InIndices, Present


def kql(conditions: Iterable[Condition]) -> dict[str, str]:
    """A query that is true for the documents for which all conditions are.

    >>> kql([Among("kind", ("anomaly", "absence")), Among("metric", ("_machine",), no=True), AtLeast("revision", 1)])
    {'query': 'kind : ("anomaly" or "absence") and not metric : "_machine" and revision >= 1', 'language': 'kuery'}
    """
    return {"query": " and ".join(map(_text, conditions)), "language": "kuery"}


def _text(condition: Condition) -> str:
    match condition:
        case Among(field, values, no):
            return f"{'not ' if no else ''}{field} : {_any([_quoted(value) for value in values])}"
        case Present(field):
            return f"{field} : *"
        case AtLeast(field, value):
            return f"{field} >= {value:g}"
        case InIndices(patterns):
            return f"_index : {_any(patterns)}"


def _any(values: Iterable[str]) -> str:
    found = list(values)
    return found[0] if len(found) == 1 else f"({' or '.join(found)})"


def _quoted(value: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
