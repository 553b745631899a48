"""The decoder of series as Datadog's agents submit them: JSON of ``/api/v1/series`` and ``/api/v2/series``.

Source: Datadog's API reference, "Submit metrics" v1 and v2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.measurement import epoch_ms
from pipelines.formats.message_decoder import MessageDecoder, Sample
from pipelines.formats.refusals import MACHINE_UNKNOWN, MESSAGE_EMPTY, RefusedError, no_machine
from pipelines.formats.remembering import remembered
from pipelines.formats.samples import short

_KINDS = {"count": "count", "rate": "rate", 1: "count", 2: "rate", **dict.fromkeys(("gauge", 0, 3, None), "gauge")}
"""The kind of a metric by its type: a text in version 1, a number in version 2."""


@dataclass(frozen=True)
class DatadogDecoder(MessageDecoder):
    """Decodes ``{"series": [{"metric": …, "points": …, "type": …, "host": …, "tags": ["k:v"]}]}``.

    The machine is the host (version 2: the resource of the type ``host``), else a tag names it. Times are in seconds.

    Args:
        labels: Which tags name the machine and the series.

    >>> series = {"metric": "load", "points": [[1795220820, 0.5]], "host": "a", "tags": ["env:x"], "type": "gauge"}
    >>> list(DatadogDecoder().samples({"series": [series]}))
    [(1795220820000, 'a', 'load{env=x}', 0.5, 'gauge')]
    """

    labels: LabelRule = LABELS

    def samples(self, message: Any) -> Iterator[Sample]:
        count = 0
        for series in message["series"]:
            name, kind = series["metric"], _KINDS[series.get("type")]
            if not isinstance(name, str):
                raise TypeError("the name of a metric is no text")
            if "resources" in series or "device" in series:
                labels = _labels(series, tuple(series.get("tags") or ()))
                machine, instance = self.labels.apply(labels)
            else:
                labels = ()
                machine, instance = _named(self.labels, series.get("host") or "", tuple(series.get("tags") or ()))
            if not machine:
                labels = _labels(series, tuple(series.get("tags") or ()))
                raise RefusedError(MACHINE_UNKNOWN, f"{name[:80]}: {no_machine(label for label, _ in labels)}")
            for point in series["points"]:
                time, value = (point["timestamp"], point["value"]) if type(point) is dict else point
                if type(time) not in (int, float) or type(value) not in (int, float):
                    raise TypeError(f"{name[:80]}: a point is a time in seconds and a number")
                yield epoch_ms(int(time)), machine, short(f"{name}{instance}"), float(value), kind
                count += 1
        if not count:
            raise RefusedError(MESSAGE_EMPTY, "no series has a point")


@remembered(1 << 17, lambda rule, host, tags: len(host) + sum(map(len, tags)))
def _named(rule: LabelRule, host: str, tags: tuple[str, ...]) -> tuple[str, str]:
    """The machine and the instance of a series with a host and tags."""
    return rule.apply_once(_labels({"host": host}, tags))


def _labels(series: Any, tags: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The tags of a series, each with the values that it has, and what names its machine."""
    labels: dict[str, str] = {}
    for tag in tags:
        name, mark, value = tag.partition(":")
        text = value if mark else "true"
        labels[name] = f"{labels[name]},{text}" if name in labels else text
    for resource in series.get("resources") or ():
        labels["host" if resource["type"] == "host" else str(resource["type"])] = str(resource["name"])
    if series.get("device"):
        labels["device"] = str(series["device"])
    if series.get("host"):
        labels["host"] = str(series["host"])
    return tuple(labels.items())
