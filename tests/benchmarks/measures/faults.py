"""Recorded faults of services with a call graph, and where each began: petshop and nezha.

- `petshop`_: a shop on AWS, 41 components, a row each 5 minutes. Folders of a load with ``graph.csv`` (who calls whom),
  ``noissue/`` (normal operation) and ``*/issue_*/``, whose ``target.json`` has the root cause.
- `nezha`_: shops on Kubernetes. Folders of a day with a file of metrics for each pod, a row each minute, and a list of
  the faults that were injected.

.. _petshop: https://github.com/amazon-science/petshop-root-cause-analysis
.. _nezha: https://github.com/IntelligentDDS/Nezha
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipelines.contracts.records import Placement

_VALUES = pl.Schema({"entity": pl.String, "metric": pl.String, "time": pl.Int64, "value": pl.Float64})
_LASTS = 5 * 60_000
"""So many milliseconds after a fault of nezha began, it must have been told; the next one begins 7 minutes after it."""


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        name: Which one.
        cause: The machine at which it began.
        at: When it was injected or noticed, epoch milliseconds.
        until: The last time that is looked at.
        values: What was recorded, if it is not a part of the history: columns ``entity``, ``metric``, ``time`` (epoch
            milliseconds), ``value``.
    """

    name: str
    cause: str
    at: int
    until: int
    values: pl.DataFrame | None = None


@dataclass(frozen=True)
class Recording:
    """Services, and their faults.

    Attributes:
        name: Name of the data set.
        step: Milliseconds between two rows.
        places: What each service depends on.
        history: What was recorded before the faults, or with them.
        quiet: Whether nothing was wrong in the history.
        faults: The faults.
    """

    name: str
    step: int
    places: dict[str, Placement]
    history: pl.DataFrame
    quiet: bool
    faults: tuple[Fault, ...]


def recordings(data: Path) -> Iterator[Recording]:
    """All that there are below a folder of data sets."""
    for graph in sorted((data / "petshop").glob("*/graph.csv")):
        yield petshop(graph.parent)
    for faults in sorted((data / "nezha").glob("*/*fault_list.json")):
        yield nezha(faults.parent)


def petshop(folder: Path) -> Recording:
    """Reads a load of petshop; the rows of each issue follow those of the normal operation without a gap."""
    history = _table(folder / "noissue" / "metrics.csv")
    step, end = 300_000, int(history["time"].to_numpy().max())
    faults = []
    for file in sorted(folder.glob("*/issue_*/target.json")):
        said, values = json.loads(file.read_text()), _table(file.parent / "metrics.csv")
        shift = end + step - int(values["time"].to_numpy().min())
        values = values.with_columns(pl.col("time") + shift)
        at, until = int(said["target"]["timestamp"]) * 1000 + shift, int(values["time"].to_numpy().max())
        name = f"{file.parent.parent.name}/{file.parent.name}"
        faults.append(Fault(name, said["root_cause"]["node"], at, until, values))
    with (folder / "graph.csv").open(encoding="utf-8", newline="") as opened:
        header, *rows = list(csv.reader(opened))
    calls = [(row[0], called) for row in rows for called, flag in zip(header[1:], row[1:], strict=True) if float(flag)]
    return Recording(f"petshop {folder.name}", step, _places(calls, end), history, True, tuple(faults))


def nezha(folder: Path) -> Recording:
    """Reads a day of nezha."""
    parts = []
    for file in sorted((folder / "metric").glob("*_metric.csv")):
        wide = pl.read_csv(file, infer_schema_length=None)
        time = pl.col("Time").str.slice(0, 16).str.to_datetime("%Y-%m-%d %H:%M").dt.epoch("ms")
        pod = wide.select(pl.col("PodName").first()).item()
        values = wide.with_columns(time=time, entity=pl.lit(_service(pod))).drop("Time", "TimeStamp", "PodName")
        keys = ["time", "entity"]
        numbers = [pl.col(name).cast(pl.Float64, strict=False) for name in values.columns if name not in keys]
        long = values.with_columns(numbers).unpivot(index=keys, variable_name="metric", value_name="value")
        parts.append(long.filter(pl.col("value").is_finite()).select(*_VALUES))
    history = pl.concat(parts).unique(["entity", "metric", "time"], keep="first", maintain_order=True)
    (listed,) = folder.glob("*fault_list.json")
    faults = []
    for each in (fault for some in json.loads(listed.read_text()).values() for fault in some):
        at = pl.Series([each["inject_time"]]).str.to_datetime("%Y-%m-%d %H:%M:%S").dt.epoch("ms").item()
        name = f"{each['inject_time'][11:16]} {each['inject_type']}"
        faults.append(Fault(name, _service(each["inject_pod"]), at, at + _LASTS))
    graph, calls = folder / "metric" / "dependency.csv", []
    if graph.exists():
        with graph.open(encoding="utf-8", newline="") as opened:
            calls = [(row["Source"], row["Target"]) for row in csv.DictReader(opened)]
    start = int(history["time"].to_numpy().min())
    return Recording(f"nezha {folder.name}", 60_000, _places(calls, start), history, False, tuple(faults))


def _places(calls: list[tuple[str, str]], time: int) -> dict[str, Placement]:
    """What each service calls, and on which host, an address, it runs."""
    hosts = {service: called for service, called in calls if re.fullmatch(r"[\d.]+", called)}
    needs: dict[str, list[str]] = {service: [] for service, _ in calls}
    for service, called in calls:
        if called not in hosts.values() and called != service:
            needs[service].append(called)
    return {
        name: Placement(entity=name, parent=hosts.get(name), depends_on=called, time=time)
        for name, called in needs.items()
    }


def _service(pod: str) -> str:
    """The service of a pod, ``cart-579f59597d-wc2lz``."""
    return pod.rsplit("-", 2)[0]


def _table(file: Path) -> pl.DataFrame:
    """Reads values with three rows of headers: component, metric, statistic."""
    with file.open(encoding="utf-8", newline="") as opened:
        names, metrics, statistics, *rows = list(csv.reader(opened))
    made = [
        (names[column], f"{metrics[column]}.{statistics[column]}", int(float(row[0])) * 1000, float(text))
        for row in rows
        if row[0][:1].isdigit()
        for column, text in enumerate(row)
        if column and text
    ]
    return pl.DataFrame(made, _VALUES, orient="row")
