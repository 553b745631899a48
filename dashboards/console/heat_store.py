"""The query of the heat map in the overview: which machines and workloads had alarms, and when."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.console.search import Document, Reader, within
from pipelines.contracts.records.novelty import ALARM_KINDS

CELLS = 72
"""Into how many equal spans the time is divided at most."""

LANES = 24
"""The most machines and workloads that are listed."""

_WORKLOAD = "k8s.workload.name"

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS = (
    *(count * _SECOND for count in (10, 20, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 15, 20, 30)),
    *(count * _HOUR for count in (1, 2, 4, 6, 12)),
    *(count * _DAY for count in (1, 2, 5, 10, 30, 60, 100)),
)
"""Lengths of a span that people know, milliseconds."""


Affected = tuple[str, str | None]
"""A machine, and the workload that it belongs to, if it does."""


class HeatStore(Reader):
    """The alarms of all machines in one Elasticsearch."""

    def heat(
        self,
        now: int,
        length: int | None = None,
        ongoing: Sequence[Affected] = (),
        judged_to: int = 0,
        workload: str = "",
    ) -> Document:
        """The highest score of the alarms of each machine in each of some spans of the time that has data.

        The replicas of a workload have one lane. The time ends with the newest window that is known, and begins
        ``length`` before, but not before the first one.

        Args:
            now: The present, epoch milliseconds.
            length: Length of the time that is shown at most, milliseconds; ``None``: all that there is.
            ongoing: Machines of incidents that go on, each with its workload; their lanes are listed first.
            judged_to: Event time up to which the pipeline has judged all windows, epoch milliseconds; 0: not known.
            workload: Only the replicas of this one, each with a lane of its own; empty: all machines.

        Returns:
            ``start`` and ``end`` (epoch ms), ``step`` (ms) and ``cells``, the number of the spans; ``lanes``, those
            of ``ongoing`` first and then those with the latest alarm, each with its ``name``, ``ongoing``, ``replicas``
            (of a workload: about how many of them had an alarm; of a machine ``None``) and ``cells``, pairs of the
            number of a span and the highest score in it; ``all``, these pairs over all machines; ``count``, about how
            many lanes there are; and ``first`` and ``last``, epoch ms, between which there are documents, ``None``
            without any.

        Raises:
            NewnormalError: See `Search.answer`.
        """
        first, last = self._bounds(now)
        if first is None or last is None:
            nothing: Document = {"lanes": [], "all": [], "count": 0, "first": None, "last": None}
            return {"start": now, "end": now, "step": _MINUTE, "cells": 0, **nothing}
        end = max(last, min(judged_to, now))
        start = max(first, end - length) if length else first
        step = _step(end - start)
        start = start // step * step
        cells = (end - start) // step + 1
        alarms = [{"terms": {"kind": list(ALARM_KINDS)}}, within(gte=start, lte=end)]
        alarms += [{"term": {_WORKLOAD: workload}}] if workload else []
        query, aggs = {"bool": {"filter": alarms}}, _aggregations(step, ongoing, apart=bool(workload))
        groups = self._search.answer(self._novelties, query=query, size=0, aggs=aggs).get("aggregations", {})
        lanes = [lane for of in ("ongoing", "others") for lane in _lanes(groups.get(of, {}), of, start, step)]
        count = sum(groups.get("count", {}).get(name, {}).get("number", {}).get("value", 0) for name in _UNITS)
        return {
            "start": start, "end": end, "step": step, "cells": cells, "lanes": lanes[:LANES],
            "all": _cells(groups, start, step), "count": max(len(lanes), count), "first": first, "last": last,
        }  # fmt: skip

    def _bounds(self, now: int) -> tuple[int | None, int | None]:
        """The end of the first and of the newest window that is stored, but for those of the future."""
        aggs = {name: {name: {"field": "@timestamp"}} for name in ("min", "max")}
        query = {"bool": {"filter": [within(lte=now + _MINUTE)]}}
        ends = self._search.answer(self._novelties, query=query, size=0, aggs=aggs).get("aggregations", {})
        first, last = (ends.get(name, {}).get("value") for name in ("min", "max"))
        return (None, None) if first is None or last is None else (int(first), int(last))


_UNITS = {"machines": "host.name", "workloads": _WORKLOAD}
"""What has a lane, and the field with its name."""


def _aggregations(step: int, ongoing: Sequence[Affected], apart: bool) -> Document:
    """The aggregations of a heat map; ``apart``: replicas of workloads have lanes of their own, too."""
    highest = {"highest": {"max": {"field": "record_score"}}}
    spans = {"date_histogram": {"field": "@timestamp", "fixed_interval": f"{step}ms", "min_doc_count": 1}}
    inside = {"latest": {"max": {"field": "@timestamp"}}, "spans": {**spans, "aggs": highest}}
    has = {"exists": {"field": _WORKLOAD}}
    alone: Document = {"match_all": {}} if apart else {"bool": {"must_not": [has]}}
    units = {"machines": alone} if apart else {"machines": alone, "workloads": has}
    lanes, count = {}, {}
    for name, of in units.items():
        terms = {"field": _UNITS[name], "size": LANES, "order": [{"latest": "desc"}, {"_key": "asc"}]}
        more = {"replicas": {"cardinality": {"field": "host.name"}}} if name == "workloads" else {}
        lanes[name] = {"filter": of, "aggs": {"lanes": {"terms": terms, "aggs": {**inside, **more}}}}
        count[name] = {"filter": of, "aggs": {"number": {"cardinality": {"field": _UNITS[name]}}}}
    workloads = [] if apart else [workload for _, workload in ongoing if workload]
    some = [{"terms": {"host.name": [name for name, _ in ongoing]}}, {"terms": {_WORKLOAD: workloads}}]
    those = {"bool": {"should": some, "minimum_should_match": 1}}
    return {
        "ongoing": {"filter": those, "aggs": lanes},
        "others": {"filter": {"bool": {"must_not": [those]}}, "aggs": lanes},
        "spans": {**spans, "aggs": highest},
        "count": {"filter": {"match_all": {}}, "aggs": count},
    }


def _lanes(group: Document, of: str, start: int, step: int) -> list[Document]:
    """The lanes of machines and workloads together, those with the latest alarm first."""
    buckets = [bucket for name in _UNITS for bucket in group.get(name, {}).get("lanes", {}).get("buckets", [])]
    buckets.sort(key=lambda bucket: (-bucket["latest"]["value"], bucket["key"]))
    return [
        {"name": bucket["key"], "ongoing": of == "ongoing", "cells": _cells(bucket, start, step),
         "replicas": bucket["replicas"]["value"] if "replicas" in bucket else None}
        for bucket in buckets
    ]  # fmt: skip


def _cells(bucket: Document, start: int, step: int) -> list[tuple[int, float]]:
    spans = bucket.get("spans", {}).get("buckets", [])
    return [((span["key"] - start) // step, span["highest"]["value"]) for span in spans]


def _step(length: int) -> int:
    """The shortest usual length of a span of which `CELLS` last for ``length``, milliseconds.

    >>> _step(0), _step(2_760_000), _step(86_400_000)
    (10000, 60000, 1800000)
    """
    return next((step for step in _STEPS if step * (CELLS - 1) >= length), -(-length // (CELLS - 1)))
