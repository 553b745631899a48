"""Elasticsearch filters from KQL, as Kibana makes them, for the part of KQL that our dashboards use.

`dashboards.kibana.requests` tries panels with them on an Elasticsearch, without a Kibana.
"""

from __future__ import annotations

import re
from typing import Any

Filter = dict[str, Any]

_CLAUSE = re.compile(r'(not )?([^\s:"()]+) ?(:|>=) (\([^)]*\)|"(?:[^"\\]|\\.)*"|[^\s"()]+)')


def filters(query: str) -> list[Filter]:
    """The filters of a query, all of which must hold.

    Raises:
        ValueError: If the query uses what the dashboards do not.

    >>> filters('not metric : "_machine" and revision >= 1')[1]
    {'range': {'revision': {'gte': '1'}}}
    """
    conditions: list[Filter] = []
    rest = query.replace(": *", " : *") if re.fullmatch(r"[^\s:]+: \*", query) else query
    while rest:
        clause = _CLAUSE.match(rest)
        if clause is None:
            raise ValueError(f"no KQL of these dashboards: {query}")
        one = _filter(*clause.group(2, 3, 4))
        conditions.append({"bool": {"must_not": one}} if clause.group(1) else one)
        rest = rest[clause.end() :]
        if rest and not rest.startswith(" and "):
            raise ValueError(f"no KQL of these dashboards: {query}")
        rest = rest.removeprefix(" and ")
    return conditions


def _filter(field: str, operator: str, value: str) -> Filter:
    if operator == ">=":
        return {"range": {field: {"gte": value}}}
    if value.startswith("("):
        return _any([_one(field, each) for each in value[1:-1].split(" or ")])
    return _any([_one(field, value)])


def _any(filters: list[Filter]) -> Filter:
    return {"bool": {"should": filters, "minimum_should_match": 1}}


def _one(field: str, value: str) -> Filter:
    if value == "*":
        return {"exists": {"field": field}}
    if value.startswith('"'):
        return {"match_phrase": {field: re.sub(r"\\(.)", r"\1", value[1:-1])}}
    if "*" in value:
        text = "*".join(re.sub(r"[^\w]", r"\\\g<0>", part) for part in value.split("*"))
        return {"query_string": {"fields": [field], "query": text}}
    return {"match": {field: value}}
