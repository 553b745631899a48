"""Conditions in Lucene's query syntax, which Grafana's Elasticsearch data source wants."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dashboards.panels.query import Among, AtLeast, Condition, InIndices, Present


def lucene(conditions: Iterable[Condition]) -> str:
    """A query that is true for the documents for which all conditions are.

    >>> lucene([Among("kind", ("anomaly", "absence")), Among("metric", ("_machine",), no=True), AtLeast("revision", 1)])
    'kind:("anomaly" OR "absence") AND NOT metric:("_machine") AND revision:>=1'
    """
    return " AND ".join(map(_text, conditions))


def _text(condition: Condition) -> str:
    match condition:
        case Among(field, values, no):
            quoted = ['"' + re.sub(r'(["\\])', r"\\\1", value) + '"' for value in values]
            return f"{'NOT ' if no else ''}{field}:({' OR '.join(quoted)})"
        case Present(field):
            return f"_exists_:{field}"
        case AtLeast(field, value):
            return f"{field}:>={value:g}"
        case InIndices(patterns):
            escaped = [re.sub(r"[^\w.*]", r"\\\g<0>", pattern) for pattern in patterns]
            return f"_index:({' OR '.join(escaped)})"
