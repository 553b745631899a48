"""Verdicts and series in a few words, for the cells of tables: how much, in which unit."""

from __future__ import annotations

from dashboards.console.filling import in_words
from dashboards.console.search import Document
from pipelines.contracts.explanations.change import beside_peers, changed
from pipelines.contracts.quantities.words import Scale
from pipelines.contracts.records.novelty import JOINED, PEERS, UNTIL_FULL, judged_metric

_NAMED = 2
_QUIET = ("normal", "learning", "recovered")


def change(novelty: Document) -> str:
    """What a verdict says, in a few words.

    >>> change({"metric": "cpu", "kind": "anomaly", "actual": 380.0, "typical": 100.0})
    '3.8 × the usual'
    >>> change({"metric": "disk", "metric_kind": "ratio", "kind": "normal", "actual": 0.225})
    '22.5 %'
    >>> change({"metric": "_peers.cpu", "kind": "outlier", "actual": 380.0, "typical": 100.0})
    '3.8 × what its peers suggest'
    >>> change({"metric": "disk~full", "kind": "exhaustion", "@timestamp": 0, "full_earliest": 10_800_000,
    ...     "full_latest": 32_400_000})
    'full in 3 to 9 hours (95 %)'
    >>> change({"metric": "_machine", "kind": "anomaly", "influencers": {"net": 0.1, "cpu": 0.6, "disk": 0.3}})
    'cpu, disk and 1 more together'
    """
    kind, metric = novelty["kind"], novelty["metric"]
    if kind == "absence":
        return "has sent nothing"
    if kind == "exhaustion":
        told, earliest, latest = novelty["@timestamp"], novelty.get("full_earliest"), novelty.get("full_latest")
        return "will be full" if earliest is None else in_words(max(0, earliest - told), latest and latest - told)
    if metric == JOINED:
        return _together(novelty.get("influencers") or {})
    if metric == "logs":
        return str(novelty.get("event.original") or novelty.get("log.template") or "its log")
    unit = novelty.get("metric_kind") or "gauge"
    if kind in _QUIET:
        value = novelty.get("actual")
        return "" if value is None else Scale(None, unit, abs(value), judged_metric(metric))(value)
    differs = beside_peers if metric.startswith(PEERS) else changed
    return differs(novelty.get("actual"), novelty.get("typical"), unit, judged_metric(metric))


def values(series: Document) -> str:
    """The value of a series, and in which band it was expected; empty if it has none.

    >>> values({"metric_kind": "ratio", "actual": 0.71, "typical": 0.27, "lower": 0.2, "upper": 0.34})
    '71 %, usual: 20 to 34 %'
    >>> values({"kind": "outlier", "actual": 62.0, "typical": 20.0, "lower": 18.0, "upper": 23.0})
    '62, its peers suggest 18 to 23'
    """
    actual, typical, *band = (series.get(name) for name in ("actual", "typical", "lower", "upper"))
    if actual is None:
        return ""
    sizes = [abs(number) for number in (actual, typical, *band) if number is not None]
    low, high = band
    beside = "its peers suggest" if series.get("kind") == "outlier" else "usual:"
    width = None if low is None or high is None else high - low
    scale = Scale(
        width, series.get("metric_kind") or "gauge", max(sizes), (series.get("metric") or "").removesuffix(UNTIL_FULL)
    )
    if low is None or high is None:
        return scale(actual) if typical is None else f"{scale(actual)}, {beside} {scale(typical)}"
    return f"{scale(actual)}, {beside} {scale.span(low, high)}"


def _together(influencers: dict[str, float]) -> str:
    names = sorted(influencers, key=lambda name: (-influencers[name], name))
    if not names:
        return "unusual as a whole"
    more = len(names) - _NAMED
    return f"{', '.join(names[:_NAMED])}{f' and {more} more' if more > 0 else ''} together"
