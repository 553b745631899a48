"""Machines beside their peers: a simulated fleet behind a balancer, and recorded servers that do the same work.

Beside the detector's outliers stands the robust z of peers, ``|x - median| / (1.4826 MAD)`` over the same machines in
the same window, with the threshold at which it raises as many false alarms; and what the same detector says of each
series by its own past.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from datagen.groundtruth import GroundTruth
from datagen.simulator.config import SimulatorConfig
from datagen.simulator.incidents import InjectedIncident
from engine.columns.partitioning import slots
from models.numbers.arrays import Array
from pipelines.contracts.records.novelty import ALARM_KINDS, judged_metric
from pipelines.contracts.settings import load
from pipelines.evaluation import show
from pipelines.evaluation.vus import segments
from pipelines.jobs.detectors.metrics.detection import Detection
from tests.benchmarks.kinds import DAY, START, STEP, frames

PARTITIONS, MONTH, APART, AFTER = 4, 30 * DAY, 30, 24
"""Alarms of a series less than `APART` windows apart are one; one within `AFTER` windows after a span is none false."""

_HOURS = DAY // 24


class Span(NamedTuple):
    """A time in which a series really was unlike its peers."""

    entity: str
    metric: str
    what: str
    start: int
    end: int


class Alarms(NamedTuple):
    """How alarms compare with spans: by what happened (found, of how many, median delay in windows), and false ones."""

    found: dict[str, tuple[int, int, float]]
    false: int
    precision: float


def run(data: Path | None, machines: int, weeks: int, seed: int) -> dict[str, Any]:
    """Measures, prints tables; returns the figures."""
    figures: dict[str, Any] = {"simulated": simulated(machines, weeks, seed)}
    if data is not None and (data / "asd").is_dir():
        figures["asd"] = recorded(data / "asd")
    for name, part in figures.items():
        rows = []
        for who, one in part["detectors"].items():
            for what, (found, of, delay) in one["found"].items():
                rows.append([who, what, f"{found} of {of}", delay, one["false"], round(one["precision"], 2)])
        show.table(f"{name}: {part['series']} series", ["", "", "found", "delay", "false", "precision"], rows)
    return figures


def plan(config: SimulatorConfig, random: np.random.Generator) -> tuple[list[InjectedIncident], dict[int, int]]:
    """Degradations and breaks of single machines, shifts of all, and machines that are added, some of them wrong.

    Returns:
        The incidents; and for each machine that is added when it comes.
    """
    first, vms, last = config.hosts, config.vms, START + (config.duration or 0) - DAY
    made: list[InjectedIncident] = []
    for vm in range(first, first + vms):
        at = START + 4 * DAY + int(random.integers(0, 5 * DAY // STEP)) * STEP
        while at < last:
            name, hours, sizes = (
                ("degradation", (6, 24), (1.6, 3.0)) if random.random() < 0.6 else ("latency", (1, 6), (1.4, 2.5))
            )
            end = at + int(random.integers(hours[0], hours[1] + 1)) * _HOURS
            made.append(InjectedIncident(name, vm, at, end, float(random.uniform(*sizes))))  # type: ignore[arg-type]
            at = end + int(random.integers(5 * DAY // STEP, 9 * DAY // STEP)) * STEP
    everyone = tuple(range(first, config.size))
    for turn, at in enumerate(range(START + 5 * DAY, last, 2 * DAY)):
        size = 1.5 if turn % 2 == 0 else 1 / 1.5
        shift = InjectedIncident("fleet_shift", first, at, at + _HOURS, size, metric=4, others=everyone[1:])
        made.append(shift)
    added = {}
    for turn, vm in enumerate(range(first + vms, config.size)):
        at = START + 5 * DAY + turn * _HOURS * 7
        added[vm] = at
        made.append(InjectedIncident("vms_added", turn % config.hosts, at, at + _HOURS, others=(vm,)))
        if turn % 2:
            made.append(InjectedIncident("latency", vm, at, at + DAY, 2.5))
    return sorted(made, key=lambda one: (one.start, one.entity)), added


def simulated(machines: int, weeks: int, seed: int) -> dict[str, Any]:
    """The figures of a simulated fleet."""
    base = SimulatorConfig(
        seed=seed, hosts=8, vms=machines, spare=max(4, machines // 5), start=START, step=STEP, duration=weeks * 7 * DAY,
        incident_rate=0.0, skewed=0.0, late=0.0, delayed=0.0, alike=True,
    )  # fmt: skip
    incidents, added = plan(base, np.random.default_rng(seed))
    config = SimulatorConfig(**{**vars(base), "incidents": tuple(incidents)})
    names = config.topology.names
    truths = [row for each in incidents for row in each.rows(config.topology, config.metrics)]
    begun = pl.DataFrame({"entity": [names[vm] for vm in added], "from": list(added.values())})
    detection = Detection(load().detector, partitions=PARTITIONS)
    state, news, values, total = detection.new_state(), [], [], config.steps or 0
    with show.bar(f"peers: {machines} machines, {weeks} weeks") as progress:
        for done, frame in frames(config):
            there = frame.join(begun, on="entity", how="left").filter(
                (pl.col("window_start") >= pl.col("from").fill_null(0)) & pl.col("entity").str.starts_with("vm")
            )
            verdicts, state = detection.process(there.drop("from"), state, now=START + done * STEP)
            news.append(verdicts.filter(pl.col("kind").is_in(ALARM_KINDS)))
            values.append(there.select("entity", "metric", "window_end", "value"))
            progress(done, total)
    return judged(pl.concat(news), pl.concat(values), _spans(truths, {names[vm] for vm in added}))


def _spans(truths: list[GroundTruth], added: set[str]) -> list[Span]:
    own = [row for row in truths if row.type in ("degradation", "latency")]
    return [
        Span(
            row.entity,
            row.metrics[0],
            "wrong from the start" if row.entity in added else {"latency": "break"}.get(row.type, row.type),
            row.start,
            row.end,
        )
        for row in own
    ]


def recorded(folder: Path) -> dict[str, Any]:
    """The figures of six servers of one company, 19 metrics each, five minutes apart; labels are of machines."""
    parts, spans = [], []
    for path in sorted(folder.glob("omi-*.npz")):
        file = np.load(path)
        value = np.concatenate([file["train"], file["test"]])
        n, width = value.shape
        end = START + (np.arange(n) + 1) * STEP
        parts.append(
            pl.DataFrame(
                {
                    "entity": [path.stem] * (n * width),
                    "metric": [f"m{k:02d}" for k in range(width)] * n,
                    "window_end": np.repeat(end, width),
                    "value": value.astype(np.float64).ravel(),
                }
            )
        )
        before = len(file["train"])
        spans += [
            Span(path.stem, "", "labelled span", int(end[before + a] - STEP), int(end[before + b]))
            for a, b in segments(file["label"] > 0)
        ]
    values = pl.concat(parts).with_columns(window_start=pl.col("window_end") - STEP).sort("window_end")
    detection = Detection(load().detector, partitions=1)
    verdicts, _ = detection.process(values, detection.new_state())
    tested = START + before * STEP
    news = verdicts.filter(pl.col("kind").is_in(ALARM_KINDS) & (pl.col("window_end") > tested))
    return judged(news, values.filter(pl.col("window_end") > tested), spans, partitions=1)


def judged(news: pl.DataFrame, values: pl.DataFrame, spans: list[Span], partitions: int = PARTITIONS) -> dict[str, Any]:
    """What the detector's outliers, the anchor and the detector's other verdicts tell of spans.

    Args:
        news: Verdicts that are news.
        values: Columns ``entity``, ``metric``, ``window_end``, ``value``.
        spans: What really happened; without a metric: any of the machine.
        partitions: Into how many partitions the machines were divided.
    """
    beside = pl.col("metric").str.starts_with("_peers.")
    names = pl.col("metric").map_elements(judged_metric, return_dtype=pl.String)
    ours = news.filter((pl.col("kind") == "outlier") & beside).with_columns(metric=names)
    own = compared(ours, spans)
    alone = compared(news.filter(~beside & ~pl.col("metric").str.starts_with("_machine")), spans)
    scored = robust_z(values, partitions)
    series = values.select("entity", "metric").n_unique()
    months = series * (values["window_end"].max() - values["window_end"].min()) / MONTH  # type: ignore[operator]
    anchors = {
        "robust z, as many false alarms": anchor(scored, spans, own.false),
        "robust z, 1 a series and month": anchor(scored, spans, round(months)),
    }
    detectors = {"outliers": own, **anchors, "by its own past": alone}
    return {
        "series": series,
        "months": round(months, 1),
        "false_a_series_and_month": round(own.false / months, 4),
        "detectors": {name: one._asdict() for name, one in detectors.items()},
    }


def robust_z(values: pl.DataFrame, partitions: int) -> pl.DataFrame:
    """Adds ``z``, the distance from the median of all machines of the partition in the window, over 1.4826 MAD."""
    placed = values.with_columns(place=pl.Series(slots(values["entity"], partitions)))
    by = ["place", "metric", "window_end"]
    off = (pl.col("value") - pl.col("value").median().over(by)).abs()
    both = placed.with_columns(off=off).with_columns(mad=pl.col("off").median().over(by))
    return both.with_columns(z=(pl.col("off") / (1.4826 * pl.col("mad") + 1e-12)).fill_nan(0.0))


def anchor(scored: pl.DataFrame, spans: list[Span], budget: int) -> Alarms:
    """What the anchor tells with the lowest threshold at which it has no more false alarms than these."""
    levels = np.quantile(scored["z"].to_numpy(), 1 - np.logspace(-1.5, -7, 60))
    best = compared(scored.clear(), spans)
    for level in np.unique(levels)[::-1]:
        found = compared(scored.filter(pl.col("z") >= level), spans)
        if found.false > budget:
            break
        best = found
    return best


def compared(alarms: pl.DataFrame, spans: list[Span]) -> Alarms:
    """Compares alarms with spans; of a machine those of any metric count for spans without one."""
    runs: dict[tuple[str, str], Array] = {
        (str(entity), str(metric)): np.sort(part["window_end"].to_numpy())
        for (entity, metric), part in alarms.group_by("entity", "metric")
    }
    kinds = sorted({span.what for span in spans})
    delays: dict[str, list[float]] = {what: [] for what in kinds}
    for span in spans:
        times = [t for (entity, metric), t in runs.items() if entity == span.entity and span.metric in ("", metric)]
        every = np.sort(np.concatenate(times)) if times else np.zeros(0)
        inside = every[(every > span.start) & (every <= span.end)]
        delays[span.what] += [(inside[0] - span.start) / STEP] if len(inside) else []
    false = right = 0
    for (entity, _), times in runs.items():
        begins = times[np.append(True, np.diff(times) > APART * STEP)]
        explained = np.zeros(len(begins), np.bool_)
        for span in spans:
            if span.entity == entity:
                explained |= (begins > span.start) & (begins <= span.end + AFTER * STEP)
        false += int((~explained).sum())
        right += int(explained.sum())
    counts = {what: sum(span.what == what for span in spans) for what in kinds}
    found = {w: (len(d), counts[w], float(np.median(d)) if d else float("nan")) for w, d in delays.items()}
    return Alarms(found, false, right / max(right + false, 1))
