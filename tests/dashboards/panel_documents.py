"""Verdicts for the dashboards' tests, and what each panel must show of them, computed with Polars alone."""

from __future__ import annotations

import random
import time
from typing import Any

import orjson
import polars as pl

from dashboards.panels.panel import Panel
from dashboards.panels.query import (
    Among,
    AtLeast,
    Bucket,
    Condition,
    Documents,
    Measure,
    Over,
    Present,
    Summary,
    Top,
    Versions,
)
from pipelines.contracts.records import Change, Incident, Novelty
from pipelines.contracts.records.incident import AffectedMachine, AffectedMetric, Candidate
from pipelines.contracts.records.novelty import JOINED, QUIET_KINDS

MINUTE = 60_000
END = int(time.time() * 1000) // MINUTE * MINUTE
START = END - 60 * MINUTE
"""One hour, in which a bar is one minute."""

KINDS = ("anomaly", "state_change", "new_normal", "absence", "recovered")
METRICS = ("cpu.user", "mem.free", JOINED, "logs")


def verdicts(seed: int, machines: int, windows: int) -> list[Novelty]:
    """Verdicts of some machines, four series each, over the hour; one in twelve is news."""
    draw = random.Random(seed)
    found = []
    for machine in range(machines):
        for metric in METRICS:
            for window in range(windows):
                end = START + (window + 1) * (END - START) // windows - machine * 1_000 - 1
                news = draw.random() < 1 / 12
                kind: Any = draw.choice(KINDS if news else QUIET_KINDS)
                text: dict[str, Any] = {"message": f"{metric} of {machine}: {kind}", "details": "so"} if news else {}
                if news and machine % 2:
                    text["workload"] = f"shop/{'cart' if machine % 3 else 'pay'}"
                if metric == "logs" and news:
                    text |= {"template": "error <*>", "example": f"error {window}"}
                if draw.random() < 0.2:
                    text["incident_state"] = draw.choice(("open", "closed"))
                if draw.random() < 0.9:
                    text |= {name: draw.uniform(0, 100) for name in ("actual", "typical", "lower", "upper")}
                found.append(
                    Novelty(
                        entity=f"host-{machine:02}", metric=metric, window_start=end - MINUTE, window_end=end,
                        kind=kind, record_score=draw.uniform(0, 100), probability=0.5,
                        revision=int(draw.random() < 0.1), ingested=end + draw.randrange(MINUTE), **text,
                    )
                )  # fmt: skip
    return found


def incidents(seed: int, number: int) -> list[Incident]:
    """Incidents that were reported within the hour, on some of 24 machines each."""
    draw = random.Random(seed)
    found = []
    for each in range(number):
        opened = draw.randrange(START, END)
        hosts = draw.sample([f"host-{machine:02}" for machine in range(24)], draw.randint(1, 5))
        metrics = draw.sample(["cpu.user", "mem.free", "disk.used"], draw.randint(1, 3))
        status = draw.choice(["open", "acknowledged", "reopened", "resolved", "merged"])
        severity = draw.choice(["warning", "minor", "major", "critical"])
        resolved: dict[str, Any] = {}
        if status == "resolved":
            resolved = {"end": opened + MINUTE, "note": "disk replaced", "acknowledged_by": "ann"}
        found.append(
            Incident(
                id=f"incident-{each:03}", opened=opened, site="default", status=status, severity=severity,
                severity_score=draw.randint(0, 100), record_score=80, start=opened - MINUTE, updated=opened,
                message=f"{len(hosts)} machines", machine_count=len(hosts), series_count=9, open_series=1,
                machines=[
                    AffectedMachine(
                        entity=name, workload=f"shop/{name[-1]}" if at % 2 else None, since=opened, series=3,
                        record_score=80,
                    )
                    for at, name in enumerate(hosts)
                ],
                metrics=[AffectedMetric(metric=name, machines=2, record_score=80) for name in metrics],
                candidates=[
                    Candidate(entity=name, metric="cpu.user", since=opened, share=0.5, reason="first")
                    for name in hosts[:2]
                ],
                ingested=opened + 1, revision=1, **resolved,
            )
        )  # fmt: skip
    return found


GLOBS: list[list[str]] = [
    *([f"host-{machine:02}"] for machine in range(9)), ["host-1*"], ["shop/cart", "shop/cart-*"], ["*"], [], [],
]  # fmt: skip


def changes(seed: int, number: int) -> list[Change]:
    """Changes that began within the hour."""
    draw = random.Random(seed)
    actions: list[Any] = ["deployment", "configuration", "restart", "feature_flag", "ended", "other"]
    return [
        Change(
            id=f"change-{each:03}", time=draw.randrange(START, END), kind=draw.choice(actions),
            end=END + each if draw.random() < 0.3 else None, message=f"release {each}", machines=draw.choice(GLOBS),
            by=draw.choice(["eva", "ben"]), source=draw.choice(["ci", "kubernetes", "people"]),
        )
        for each in range(number)
    ]  # fmt: skip


def change_frame(found: list[Change]) -> pl.DataFrame:
    """Changes as documents."""
    rows = [{**orjson.loads(each.to_json()), "version": "changes"} for each in found]
    of_list = {"host.name": pl.List(pl.String)}
    return pl.DataFrame(rows, infer_schema_length=None, schema_overrides=of_list).rename({"host.name": "globs"})


def incident_frame(found: list[Incident]) -> pl.DataFrame:
    """Incidents as documents; what is inside a list becomes a list of its own."""
    rows = []
    for each in found:
        row = orjson.loads(each.to_json())
        inside = {"machines": "entity", "metrics": "metric", "candidates": "entity"}
        workloads = sorted({one["workload"] for one in row["machines"] if one.get("workload")})
        lists = {f"{name}.{field}": [one[field] for one in row.pop(name)] for name, field in inside.items()}
        lists["machines.workload"] = workloads
        rows.append({**row, **lists, "version": "incidents"})
    return pl.DataFrame(rows, infer_schema_length=None)


def frame(novelties: list[Novelty], version: str) -> pl.DataFrame:
    """The documents with the names of Elasticsearch as columns."""
    rows = [{**orjson.loads(each.to_json()), "version": version} for each in novelties]
    return pl.DataFrame(rows, infer_schema_length=None)


def shown(value: Any) -> Any:
    """A value as a list of documents shows it: a list of one is that one, an empty one nothing."""
    return (value[0] if len(value) == 1 else value or None) if isinstance(value, list) else value


def expected(panel: Panel, documents: pl.DataFrame, short: int = MINUTE) -> list[dict[str, Any]]:
    """The rows that a panel must show: for a summary those of buckets that hold something.

    Args:
        panel: The panel.
        documents: All documents.
        short: Length of a bar where each window should have its own.
    """
    field = "event.ingested" if panel.data == "written" else "@timestamp"
    found = documents.filter(pl.col(field).is_between(START, END), *map(_true, panel.query.where))
    mine = {"versions": ("v1", "v2"), "incidents": ("incidents",), "changes": ("changes",)}.get(panel.data, ("v1",))
    found = found.filter(pl.col("version").is_in(mine))
    if panel.data == "changes":
        listed = pl.when(pl.col("globs").list.len() > 0).then("globs")
        found = found.drop("host.name").with_columns(listed.alias("host.name"))
    if panel.data == "incidents":  # under these names they are found, too
        names = {"machines.entity": "host.name", "metrics.metric": "metric", "machines.workload": "k8s.workload.name"}
        found = found.drop(names.values()).rename(names)
    if isinstance(panel.query, Documents):
        return found.sort("@timestamp", descending=True).select("@timestamp", *panel.query.columns[1:]).to_dicts()
    buckets = sorted(panel.query.buckets, key=lambda bucket: isinstance(bucket, Over))
    return list(_rows(panel.query, buckets, found, {}, short))


def _rows(query: Summary, buckets: list[Bucket], found: pl.DataFrame, row: dict[str, Any], short: int) -> Any:
    if not buckets:
        yield row | {each.title: _value(each, found) for each in query.measures}
        return
    first, rest = buckets[0], buckets[1:]
    for title, key, part in _parts(first, query, found, short):
        yield from _rows(query, rest, part, {**row, title: key}, short)


def _parts(bucket: Bucket, query: Summary, found: pl.DataFrame, short: int) -> Any:
    if isinstance(bucket, Over):
        length = short if bucket.each_window else MINUTE
        at = pl.col(bucket.field) // length * length
        for (key,), part in found.group_by(at, maintain_order=True):
            yield bucket.field, key, part
    elif isinstance(bucket, Versions):
        for (key,), part in found.group_by("version"):
            yield bucket.title, key, part
    else:
        assert isinstance(bucket, Top) and bucket.by is not None
        by = query.measures[bucket.by]
        several = found.explode(bucket.field) if found[bucket.field].dtype == pl.List else found
        several = several.filter(pl.col(bucket.field).is_not_null())
        parts = [(-_value(by, part), key, part) for (key,), part in several.group_by(bucket.field)]
        for _, key, part in sorted(parts, key=lambda each: each[:2])[: bucket.size]:
            yield bucket.title, key, part


def _value(measure: Measure, found: pl.DataFrame) -> Any:
    match measure.operation:
        case "count":
            return found.height
        case "unique":
            return found[measure.field].n_unique()
        case "average":
            return found[measure.field].mean()
        case "newest":
            newest = found.filter(pl.col(measure.field).is_not_null()).sort("@timestamp", descending=True)
            return newest[measure.field][0] if newest.height else None
    return getattr(found[measure.field], measure.operation)()


def _true(condition: Condition) -> pl.Expr:
    match condition:
        case Among(field, values, no):
            inside = pl.col(field).is_in(values)
            return ~inside if no else inside
        case Present(field):
            return pl.col(field).is_not_null()
        case AtLeast(field, value):
            return pl.col(field) >= value
    raise TypeError(condition)
