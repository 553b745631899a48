"""The measured coefficients of a plan: what a sample, window, document or series costs, and where that is from."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.spec.errors import NewnormalError

SHIPPED = Path(__file__).with_name("coefficients.json")
"""The file that is used unless another one is named; `newnormal bench plan` writes it."""

UNITS = {
    "normalizer.sample": "core-microseconds a sample",
    "extractor.sample": "core-microseconds a sample",
    "extractor.window": "core-microseconds a window of a series",
    "detector.novel": "core-microseconds a window of a series",
    "detector.context": "core-microseconds a window of a series",
    "detector.all": "core-microseconds a window of a series",
    "sink.document": "core-microseconds a document",
    "elasticsearch.document": "core-microseconds a document",
    "log_normalizer.line": "core-microseconds a line",
    "templates.line": "core-microseconds a line",
    "log_detector.line": "core-microseconds a line",
    "places.sample": "core-microseconds a sample that is read for its resource",
    "places.machine": "core-microseconds a machine each 10 s",
    "calls.span": "core-microseconds a span",
    "batch.overhead": "core-milliseconds a micro-batch",
    "batch.cycle": "milliseconds from one micro-batch to the next",
    "incidents.episode": "core-microseconds an episode",
    "telemetry_json.sample": "bytes a sample",
    "telemetry.sample": "bytes a sample in messages of 1,000",
    "telemetry.exponent": "power of (samples of a message / 1,000)",
    "features.window": "bytes per window in messages of 1,000",
    "features.exponent": "power of (windows of a message / 1,000)",
    "logs_json.line": "bytes per line",
    "logs.line": "bytes per line",
    "traces.span": "bytes a span",
    "novelties.verdict": "bytes a verdict",
    "places.written": "bytes a machine and day",
    "detector_state.series": "bytes per series",
    "elasticsearch.bytes": "bytes a document and copy",
    "extractor.state": "bytes per series and open slice",
    "detector.state": "bytes per series",
    "context.state": "bytes a verdict that is kept",
    "places.state": "bytes a machine",
    "calls.state": "bytes a span that waits",
    "state.copies": "copies of the state in memory",
    "local.copies": "copies of the state on the local disk of Spark",
    "checkpoint.versions": "versions of the models in a checkpoint",
    "driver.memory": "bytes",
    "jvm.memory": "bytes",
    "workers.memory": "bytes for two cores",
    "kafka.memory": "bytes a broker",
    "elasticsearch.memory": "bytes a node",
    "stored.context": "share of the verdicts",
    "stored.novel": "share of the verdicts",
    "driver.output": "bytes per second that one producer writes",
}
"""All coefficients, by name, each with its unit."""

_EXPONENTS = ("telemetry.exponent", "features.exponent")


@dataclass(frozen=True)
class Coefficient:
    """One coefficient.

    Args:
        value: In the unit of `UNITS`.
        source: Where the value is from.
    """

    value: float
    source: str


@dataclass(frozen=True)
class Coefficients:
    """All coefficients of one machine.

    Args:
        machine: What they were measured on.
        date: When.
        command: How they are measured again.
        source: Where they are from, in a sentence.
        values: The coefficients, by the names of `UNITS`.
    """

    machine: str
    date: str
    command: str
    source: str
    values: Mapping[str, Coefficient]

    def __getitem__(self, name: str) -> float:
        """The value of a coefficient."""
        return self.values[name].value


def read(path: Path = SHIPPED) -> Coefficients:
    """Reads a file of coefficients.

    Raises:
        NewnormalError: ``PLAN_COEFFICIENTS`` if the file cannot be read, or lacks a coefficient that is possible.
    """
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        return of(tree)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        accepted = "a file that `newnormal bench plan` wrote"
        raise NewnormalError("PLAN_COEFFICIENTS", what, str(path), accepted, "nothing was planned") from None


def of(tree: Mapping[str, Any]) -> Coefficients:
    """The coefficients in a tree as the file has it.

    Raises:
        ValueError: If a coefficient is impossible.
        KeyError: If something is missing.
    """
    values = {}
    for name in UNITS:
        value = float(tree["coefficients"][name]["value"])
        exponent = name in _EXPONENTS
        if not math.isfinite(value) or (not -1 < value <= 0 if exponent else value < 0):
            raise ValueError(f"{name} is {value}")
        values[name] = Coefficient(value, str(tree["coefficients"][name]["source"]))
    if not values["batch.cycle"].value or not values["driver.output"].value:
        raise ValueError("batch.cycle and driver.output must be above 0")
    machine, date, command, source = (str(tree[name]) for name in ("machine", "date", "command", "source"))
    return Coefficients(machine, date, command, source, values)
