"""A reader who searches through the alias all the time, as a dashboard does, and keeps what it saw."""

from __future__ import annotations

import threading

from pipelines.contracts.elasticsearch_client import elasticsearch_client


class AliasReader:
    """Searches through an alias while it is entered.

    Args:
        url: Address of Elasticsearch, with its login if it wants one.
        alias: The alias.

    Attributes:
        seen: For each answer the versions of its documents.
        errors: The error at which it stopped, if any.
    """

    def __init__(self, url: str, alias: str) -> None:
        self.client, self.alias, self.stopping = elasticsearch_client(url, request_timeout=30), alias, threading.Event()
        self.seen: list[frozenset[str]] = []
        self.errors: list[Exception] = []
        self.thread = threading.Thread(target=self._run)

    def __enter__(self) -> AliasReader:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.thread.join()
        self.client.close()

    def _run(self) -> None:
        by_index = {"indices": {"terms": {"field": "_index", "size": 1_000}}}
        while not self.stopping.is_set():
            try:
                found = self.client.search(index=self.alias, size=0, aggs=by_index)
            except Exception as error:
                self.errors.append(error)
                return
            names = [each["key"] for each in found["aggregations"]["indices"]["buckets"]]
            self.seen.append(frozenset("v2" if "-v2-" in name else "v1" for name in names))
