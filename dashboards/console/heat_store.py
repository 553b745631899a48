"""The query of the overview: which machines had alarms, and when."""

from __future__ import annotations

from dashboards.console.search import Document, Search, within
from pipelines.contracts.records.novelty import ALARM_KINDS

CELLS = 72
"""Into how many equal spans the time is divided."""

MACHINES = 24
"""The most machines that are listed."""


class HeatStore:
    """The alarms of all machines in one Elasticsearch.

    Args:
        search: The connection.
        novelties: The alias that novelties are read through.
    """

    def __init__(self, search: Search, novelties: str) -> None:
        self._search = search
        self._novelties = novelties

    def heat(self, now: int, hours: int) -> Document:
        """The highest score of the alarms of each machine in each of `CELLS` spans that end with the present one.

        Args:
            now: The present, epoch milliseconds.
            hours: Length of the time that is shown.

        Returns:
            ``start`` (epoch ms) and ``step`` (ms) of the spans; ``machines``, the worst first, each with its ``name``
            and ``cells``, pairs of the number of a span and the highest score in it; and ``count``, about how many
            machines had an alarm.

        Raises:
            NewnormalError: See `Search.answer`.
        """
        step = hours * 3_600_000 // CELLS
        start = (now // step - CELLS + 1) * step
        highest = {"highest": {"max": {"field": "record_score"}}}
        spans = {"date_histogram": {"field": "@timestamp", "fixed_interval": f"{step}ms", "min_doc_count": 1}}
        terms = {"field": "host.name", "size": MACHINES, "order": [{"highest": "desc"}, {"_key": "asc"}]}
        aggs = {
            "machines": {"terms": terms, "aggs": {**highest, "spans": {**spans, "aggs": highest}}},
            "count": {"cardinality": {"field": "host.name"}},
        }
        alarms = [{"terms": {"kind": list(ALARM_KINDS)}}, within(gte=start, lt=start + CELLS * step)]
        reply = self._search.answer(self._novelties, query={"bool": {"filter": alarms}}, size=0, aggs=aggs)
        found = reply.get("aggregations", {})
        machines = [
            {
                "name": bucket["key"],
                "cells": [[(each["key"] - start) // step, each["highest"]["value"]] for each in
                          bucket["spans"]["buckets"]],
            }
            for bucket in found.get("machines", {}).get("buckets", [])
        ]  # fmt: skip
        count = max(len(machines), found.get("count", {}).get("value", 0))
        return {"start": start, "step": step, "cells": CELLS, "machines": machines, "count": count}
