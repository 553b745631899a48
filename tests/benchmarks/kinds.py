"""Kinds: the simulator's site, six weeks of it, through the production detection, against its own ground truth.

A window is five minutes and holds one sample of each metric, so that weeks of hundreds of machines take minutes; what
the extractor would have averaged is not averaged, and noise is that of single samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from datagen.groundtruth import GroundTruth
from datagen.simulator.catalogue import METRICS, Role
from datagen.simulator.config import SimulatorConfig
from datagen.simulator.incidents import InjectedIncident
from datagen.simulator.load import Load
from datagen.simulator.samples import Samples
from pipelines.contracts.records.novelty import JOINED, NEWS_KINDS
from pipelines.contracts.settings import load
from pipelines.evaluation import show
from pipelines.evaluation.recorded import Progress
from pipelines.jobs.detectors.metrics.detection import Detection
from tests.benchmarks.measures import kinds, settling

STEP, DAY = 300_000, 86_400_000
START = 1_767_571_200_000
"""Monday, 5 January 2026, 0:00 UTC."""

QUIET = 7 * DAY
CHUNK = 96
_SECOND_MACHINE = 6
"""Incidents of one machine are at least so many days apart, so that what follows one is not blamed on the next."""

_ANOMALIES: tuple[tuple[str, tuple[int, int], tuple[float, float]], ...] = (
    ("spike", (2, 12), (2.5, 5.0)),
    ("outage", (24, 24), (1.0, 1.0)),
    ("leak", (36, 144), (0.5, 1.2)),
    ("stuck", (48, 144), (1.0, 1.0)),
    ("latency", (2, 24), (2.5, 8.0)),
)


def run(out: Path, entities: int, weeks: int, seed: int) -> dict[str, Any]:
    """Judges, prints a table, writes ``out/kinds.json``; returns the figures."""
    with show.bar(f"kinds: {entities} machines, {weeks} weeks") as progress:
        figures = measure(Detection(load().detector), entities, weeks, seed, progress)
    show.table("kinds", ["measure", "value"], [[name, value] for name, value in figures.items() if name != "types"])
    rows = [[name, *part.values()] for name, part in figures["types"].items()]
    show.table("by type", ["type", "incidents", "found", "median delay", "called change", "alerts", "settled"], rows)
    show.write(out, "kinds", figures)
    return figures


def measure(
    detection: Detection, entities: int, weeks: int, seed: int, progress: Progress = lambda _done, _total: None
) -> dict[str, Any]:
    """Judges a simulated site; returns the figures.

    Args:
        detection: Judges.
        entities: Number of machines; a fifth of them are hosts.
        weeks: Weeks of event time.
        seed: Of the simulation.
        progress: Is called with how many windows are judged, and how many there are.
    """
    hosts = max(2, entities // 5)
    base = SimulatorConfig(
        seed=seed,
        hosts=hosts,
        vms=entities - hosts,
        spare=0,
        start=START,
        step=STEP,
        duration=weeks * 7 * DAY,
        incident_rate=0.0,
        skewed=0.0,
        late=0.0,
        delayed=0.0,
    )
    incidents = _turns(_plan(base, np.random.default_rng(seed)))
    config = SimulatorConfig(**{**vars(base), "incidents": incidents})
    truths = [row for incident in incidents for row in incident.rows(config.topology, config.metrics)]
    turned = {
        row.id: (f"{incident.type} of {incident.entity}", _position(incident))
        for incident in incidents
        if incident.lasts
        for row in incident.rows(config.topology, config.metrics)
    }
    made: list[pl.DataFrame] = []
    learning: list[pl.DataFrame] = []
    state, total = detection.new_state(), config.steps or 0
    for done, frame in frames(config):
        verdicts, state = detection.process(frame, state, now=START + done * STEP)
        said = pl.coalesce("decided", "window_end")  # what is said later is news when it is said
        made.append(verdicts.filter(pl.col("kind").is_in(NEWS_KINDS)).with_columns(window_end=said))
        if len(learning) < 2:
            learning.append(verdicts.filter(pl.col("metric") != JOINED))
        progress(done, total)
    return _figures(pl.concat(made), pl.concat(learning), truths, turned, config)


def _plan(config: SimulatorConfig, random: np.random.Generator) -> tuple[InjectedIncident, ...]:
    """After a quiet week, each VM has one incident every six days or so; a third are changes that later go back."""
    planned: list[InjectedIncident] = []
    end = START + (config.duration or 0)
    for vm in range(config.hosts, config.hosts + config.vms):
        at = START + QUIET + int(random.integers(0, _SECOND_MACHINE * DAY // STEP)) * STEP
        while at < end - 3 * DAY:
            if random.random() < 0.35:
                name = str(random.choice(["release", "load_shift"]))
                size = 1.0 if name == "release" else float(random.uniform(1.6, 2.2))
                back = 0.0 if name == "release" else 1.0
                for turn, strength in enumerate((size, back, size)):
                    start = at + turn * 4 * DAY
                    if start < end - 2 * DAY:
                        planned.append(InjectedIncident(name, vm, start, start + kinds.SETTLE * STEP, strength))  # type: ignore[arg-type]
                at += 3 * 4 * DAY
            else:
                name, lasting, sizes = _ANOMALIES[int(random.integers(len(_ANOMALIES)))]
                windows, metric = int(random.integers(lasting[0], lasting[1] + 1)), 0
                if name == "stuck":
                    usable = [
                        i
                        for i, m in enumerate(METRICS[Role.VM][: config.metrics])
                        if m.kind not in ("counter", "count")
                    ]
                    metric = int(random.choice(usable))
                planned.append(
                    InjectedIncident(name, vm, at, at + windows * STEP, float(random.uniform(*sizes)), metric)  # type: ignore[arg-type]
                )
            at += int(random.integers(_SECOND_MACHINE * DAY // STEP, 2 * _SECOND_MACHINE * DAY // STEP)) * STEP
    return tuple(sorted(planned, key=lambda incident: (incident.start, incident.entity)))


def _position(incident: InjectedIncident) -> float:
    """Where a change of state turns its knob to; 0: where it was at first."""
    return incident.size - (1.0 if incident.type == "load_shift" else 0.0)


def _turns(planned: tuple[InjectedIncident, ...]) -> tuple[InjectedIncident, ...]:
    """Without the changes of state that change nothing, as a release of what is released."""
    at: dict[tuple[str, int], float] = {}
    left: list[InjectedIncident] = []
    for incident in planned:
        knob = (incident.type, incident.entity)
        if not incident.lasts or at.get(knob, 0.0) != _position(incident):
            left.append(incident)
        at[knob] = _position(incident)
    return tuple(left)


def frames(config: SimulatorConfig) -> Iterator[tuple[int, pl.DataFrame]]:
    """What the detector judges, some windows at a time: a counter's rate, of all else the value."""
    topology, first_step, length = config.topology, config.start or 0, config.step
    loads, samples = Load(config, topology), Samples(config, topology)
    role = [topology.role(machine) for machine in range(topology.size)]
    names = np.array([[metric.name for metric in METRICS[r][: config.metrics]] for r in role])
    metric_kinds = np.array([[metric.kind for metric in METRICS[r][: config.metrics]] for r in role])
    before = np.full((topology.size, config.metrics), np.nan)
    for first in range(0, config.steps or 0, CHUNK):
        steps = np.arange(first, min(first + CHUNK, config.steps or 0))
        known = [i for i in config.incidents if i.start < first_step + (int(steps[-1]) + 1) * length]
        since_epoch = first_step // length + steps
        value = samples.at(since_epoch, loads.at(since_epoch, known), known)
        whole = np.concatenate([before[:, None], value], axis=1)
        rate = np.diff(whole, axis=1) / (length / 1000)
        before = value[:, -1]
        judged = np.where((metric_kinds == "counter")[:, None], np.where(rate >= 0, rate, np.nan), value)
        time = first_step + steps * length
        for incident in known:
            if incident.type == "outage":
                span = slice(*np.searchsorted(time, (incident.start, incident.end)))
                judged[incident.down(topology), span] = np.inf
        machine, step, metric = np.nonzero(~np.isposinf(judged))
        frame = pl.DataFrame(
            {
                "entity": np.array(topology.names)[machine],
                "metric": names[machine, metric],
                "kind": metric_kinds[machine, metric],
                "window_start": time[step],
                "window_end": time[step] + length,
                "value": judged[machine, step, metric],
            }
        )
        yield int(steps[-1]) + 1, frame


def _figures(
    news: pl.DataFrame,
    first: pl.DataFrame,
    truths: list[GroundTruth],
    turned: dict[str, tuple[str, float]],
    config: SimulatorConfig,
) -> dict[str, Any]:
    made = kinds.outcomes(news, truths, STEP)
    anomalies = [o for o in made if o.truth.cls == "anomaly"]
    changes = [o for o in made if o.truth.cls == "state_change"]
    alarms = kinds.false_alarms(news, truths, STEP, config.size * config.metrics, config.duration or 0)
    series = settling.settled(news, truths, turned, STEP)
    each = settling.summary(series, alarms, STEP)
    known = {one.truth.id for one in series if one.again}
    again = [o for o in changes if o.truth.id in known]
    back = {str(e): p for (e,), p in news.filter(pl.col("metric") != JOINED).group_by("entity")}
    outages = [
        t for t in truths if t.type == "outage" and len(t.metrics) == config.metrics and t.entity.startswith("vm")
    ]
    relearned = [_alarms_at_return(back.get(t.entity), t) for t in outages]
    learning = first.filter(pl.col("kind") == "learning", pl.col("actual").is_not_null())
    learned = learning.group_by("entity", "metric").len()["len"].max()
    return {
        "machines": config.size,
        "weeks": (config.duration or 0) / (7 * DAY),
        "incidents": len(made),
        "anomalies found": _share(o.found for o in anomalies),
        "changes of state found": _share(o.found for o in changes),
        "median delay of anomalies, windows": _median(o.delay for o in anomalies if o.found),
        "false alarms a series and month": alarms,
        "balanced accuracy anomaly / change": kinds.balanced_accuracy(made),
        "series changed": each.series,
        "series: change noticed": each.noticed,
        "series: new normal within 60 windows": each.accepted,
        "series: median windows until the new normal": each.median,
        "series: at most two alerts": each.few,
        "series: no news after 60 windows": each.quiet,
        "the same by chance": each.chance,
        "series back in a known regime": each.again,
        "series: recognised within 5 windows": each.recognised,
        "machines: no news after 60 windows": _share(o.accepted <= kinds.SETTLE for o in changes if o.found),
        "machines: at most two alerts": _share(o.alerts <= 2 for o in changes if o.found),
        "machines: no news after 5 windows, regime known": _share(o.accepted <= settling.PROMPT for o in again),
        "outages of 2 h after which the old normal alarms": _share(relearned),
        "values learned before the first score": float(learned or 0),  # type: ignore[arg-type]
        "types": {
            name: {
                "incidents": len(own),
                "found": _share(o.found for o in own),
                "delay": _median(o.delay for o in own if o.found),
                "called change": _share(o.called_change for o in own if o.found),
                "alerts": _median(o.alerts for o in own if o.found),
                "settled": _median(o.accepted for o in own if o.found),
            }
            for name in sorted({o.truth.type for o in made})
            if (own := [o for o in made if o.truth.type == name])
        },
    }


def _alarms_at_return(news: pl.DataFrame | None, truth: GroundTruth) -> bool:
    """Whether the machine alarms in the hour after the outage, when it is again as it was."""
    if news is None:
        return False
    hour = news.filter(pl.col("window_end") > truth.end + STEP, pl.col("window_end") <= truth.end + 13 * STEP)
    return hour.filter(pl.col("kind") != "recovered").height > 0


def _share(flags: Any) -> float:
    values = list(flags)
    return float(np.mean(values)) if values else float("nan")


def _median(numbers: Any) -> float:
    values = list(numbers)
    return float(np.median(values)) if values else float("nan")
