"""The decoder of metrics that Vector writes (codecs ``json`` and ``native_json``): each message is one metric."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import orjson

from pipelines.formats.distributions import Part, weighted
from pipelines.formats.instants import moment
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.message_decoder import MessageDecoder, Sample, number_of
from pipelines.formats.refusals import MACHINE_UNKNOWN, MESSAGE_EMPTY, NO_MACHINE, RefusedError
from pipelines.formats.samples import short

_VALUES = ("counter", "gauge", "set", "distribution", "aggregated_histogram", "aggregated_summary")
_KINDS = ("absolute", "incremental")
_LIMITS = {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class VectorDecoder(MessageDecoder):
    """Decodes counters, gauges, sets, distributions, aggregated histograms and aggregated summaries.

    Absolute counters are counters, incremental ones counts. A gauge must be absolute. A set is the number of its
    members. A distribution is its count, sum, least and greatest value and quantiles; a histogram its count, sum and
    buckets, each with all below it; a summary its count, sum and quantiles. Without a timestamp, the time is that of
    the message's arrival.

    Args:
        labels: Which tags name the machine and the series.

    >>> message = {"name": "requests", "namespace": "web", "tags": {"host": "a", "code": "200"}, "kind": "absolute",
    ...     "timestamp": "2026-11-21T00:27:00.013Z", "counter": {"value": 5.0}}
    >>> list(VectorDecoder().samples(message))
    [(1795220820013, 'a', 'web.requests{code=200}', 5.0, 'counter')]
    """

    labels: LabelRule = LABELS

    def samples(self, message: Any) -> Iterator[Sample]:
        metric = message.get("metric", message)
        kind, name, space = metric["kind"], metric["name"], metric.get("namespace")
        if kind not in _KINDS or not isinstance(name, str) or not (space is None or isinstance(space, str)):
            raise ValueError(f"kind is one of {', '.join(_KINDS)}; name and namespace are text")
        for form in _VALUES:
            if form in metric:
                break
        else:
            raise ValueError(f"no value that is known; accepted: {', '.join(_VALUES)}")
        stamp = metric.get("timestamp")
        time = None if stamp is None else moment(stamp)
        tags, counting = _tags(metric.get("tags") or {}), "counter" if kind == "absolute" else "count"
        whole = f"{space}.{name}" if space else name
        count = 0
        for part, label, value, part_kind in _parts(form, metric[form], counting):
            machine, inside = self.labels.apply((*tags, *label), fold=part_kind == "gauge")
            if not machine:
                raise RefusedError(MACHINE_UNKNOWN, NO_MACHINE)
            yield time, machine, short(f"{whole}{part}{inside}"), value, part_kind
            count += 1
        if not count:
            raise RefusedError(MESSAGE_EMPTY, "the metric holds no value")

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        metric = orjson.loads(value)
        metric = metric.get("metric", metric)
        return value if any(form in metric for form in ("counter", "gauge", "set")) else None


def _tags(by_name: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Names and values of tags; several values of a tag are joined by commas, a tag without a value is ``true``."""
    if set(map(type, by_name.values())) <= {str}:
        return tuple(by_name.items())
    tags = []
    for name, value in by_name.items():
        values = value if isinstance(value, list) else [value]
        if not all(each is None or isinstance(each, str) for each in values):
            raise TypeError(f"the tag {name[:80]!r} is no text")
        tags.append((name, ",".join("true" if each is None else each for each in values)))
    return tuple(tags)


def _parts(form: str, content: Any, counting: str) -> Iterator[Part]:
    """The samples of a value.

    Raises:
        KeyError, TypeError, ValueError: If it does not have the form.
    """
    if form == "counter":
        yield "", (), number_of(content["value"]), counting
    elif form == "gauge":
        if counting != "counter":
            why = (
                "the value of an incremental gauge is a change; Vector's transform incremental_to_absolute adds them up"
            )
            raise ValueError(why)
        yield "", (), number_of(content["value"]), "gauge"
    elif form == "set":
        if not isinstance(content["values"], list):
            raise TypeError("the values of a set are a list")
        yield "", (), float(len(set(map(str, content["values"])))), "gauge"
    elif form == "distribution":
        yield from weighted(((each["value"], each["rate"]) for each in content["samples"]), counting)
    else:
        yield ".count", (), number_of(content["count"]), counting
        if content.get("sum") is not None:
            yield ".sum", (), number_of(content["sum"]), counting
        yield from (_buckets(content, counting) if form == "aggregated_histogram" else _quantiles(content))


def _buckets(histogram: Any, counting: str) -> Iterator[Part]:
    """The buckets, each with all below it; Vector's own hold what is between two limits. The last one holds all."""
    buckets = sorted((_limit(each["upper_limit"]), number_of(each["count"])) for each in histogram["buckets"])
    for (limit, _), total in zip(buckets, accumulate(count for _, count in buckets), strict=True):
        if math.isfinite(limit):
            yield ".bucket", (("le", f"{limit:g}"),), total, counting
    yield ".bucket", (("le", "+Inf"),), number_of(histogram["count"]), counting


def _quantiles(summary: Any) -> Iterator[Part]:
    for each in summary["quantiles"]:
        if each["value"] not in (None, "nan", "NaN"):
            yield "", (("quantile", f"{number_of(each['quantile']):g}"),), number_of(each["value"]), "gauge"


def _limit(number: Any) -> float:
    """A number that may be infinite, which Vector writes as text."""
    return _LIMITS[number.lower()] if isinstance(number, str) else number_of(number)
