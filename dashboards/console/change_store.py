"""The query of the console about what was done at the site: the changes that concern some machines."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.console.search import Document, Search, within
from pipelines.contracts.globs import compiled

MOST = 50
"""The most changes that are drawn and listed at once, the last ones."""

_ASKED = 500
_OTHER_GLOB = r".*([*?].+|\?)"
"""What is no name and not just the beginning of one: Elasticsearch cannot tell which names such a glob matches."""


class ChangeStore:
    """The changes in one Elasticsearch.

    Args:
        search: The connection.
        alias: The alias that changes are read through.
    """

    def __init__(self, search: Search, alias: str) -> None:
        self._search, self._alias = search, alias

    def on(self, machines: Sequence[str], start: int, end: int) -> list[Document]:
        """The changes on some machines and on the whole site from ``start`` to ``end`` (epoch ms).

        Returns:
            The last `MOST` of them, the newest first: each with ``_id``, ``since``, ``end`` (``None``: at once, or not
            known), ``kind``, ``message``, ``by``, ``source``, ``url``, and the globs of its ``machines``.

        Raises:
            NewnormalError: See `Search.answer`.
        """
        globs = [f"{name[:length]}*" for name in machines for length in range(len(name) + 1)]
        names = {"terms": {"host.name": [*machines, *globs]}}
        others = {"regexp": {"host.name": {"value": _OTHER_GLOB}}}
        site = {"bool": {"must_not": [{"exists": {"field": "host.name"}}]}}
        some = {"bool": {"should": [names, others, site], "minimum_should_match": 1}}
        lasts = {"range": {"event.end": {"gte": start, "format": "epoch_millis"}}}
        then = {"bool": {"should": [within(gte=start), lasts], "minimum_should_match": 1}}
        query = {"bool": {"filter": [some, then, within(lte=end)]}}
        sort = [{"@timestamp": "desc"}, {"event.id": "asc"}]
        found = self._search.documents(self._alias, query=query, sort=sort, size=_ASKED)
        return [_shown(each) for each in found if _concerns(each, machines)][:MOST]


def _concerns(change: Document, machines: Sequence[str]) -> bool:
    pattern = compiled(tuple(change.get("host.name") or ("*",)))
    return any(pattern.fullmatch(name) for name in machines)


def _shown(change: Document) -> Document:
    return {
        "_id": change["_id"], "since": change["@timestamp"], "end": change.get("event.end"),
        "kind": change.get("event.action", "other"), "message": change["message"],
        "machines": change.get("host.name", []), "by": change.get("user.name", ""),
        "source": change.get("event.provider", ""), "url": change.get("event.reference", ""),
    }  # fmt: skip
