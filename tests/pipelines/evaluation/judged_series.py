"""Series with surprises, judged by the detector, as they would be stored: for tests of what is tried on the past."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from pipelines.contracts.records import Label
from pipelines.contracts.settings import DetectorSettings
from pipelines.evaluation.rule_trial.news import NEWS
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.micro_batch import apply_label
from pipelines.jobs.detectors.worst import last_revisions

MINUTE = 60_000
WINDOWS = 1_500
END = WINDOWS * MINUTE
MACHINES, METRICS = tuple("abcdefghijkl"), ("cpu",)


def values(seed: int) -> pl.DataFrame:
    """A value a minute: spikes of all sizes up and down, of some minutes each."""
    rng, rows = np.random.default_rng(seed), []
    for entity in MACHINES:
        for metric in METRICS:
            course = rng.normal(50, 2, WINDOWS)
            for at in rng.integers(420, WINDOWS - 10, 8):
                course[at : at + int(rng.integers(1, 4))] += rng.choice([-1, 1]) * rng.uniform(10, 60)
            rows += [(entity, metric, i * MINUTE, (i + 1) * MINUTE, float(value)) for i, value in enumerate(course)]
    return pl.DataFrame(rows, ["entity", "metric", "window_start", "window_end", "value"], orient="row")


def judged(frame: pl.DataFrame, labels: Sequence[Label] = (), settings: DetectorSettings | None = None) -> pl.DataFrame:
    """The final verdicts of the detector with some labels, each in effect after the windows that end by then."""
    detection = Detection(settings or DetectorSettings())
    state, found, before = detection.new_state(), [], 0
    for label in [*sorted(labels, key=lambda it: it.effective_from), None]:
        until = END if label is None else label.effective_from
        part = frame.filter(pl.col("window_end") > before, pl.col("window_end") <= until)
        verdicts, state = detection.process(part, state)
        found.append(verdicts)
        if label is not None:
            apply_label(detection, state, label)
        before = until
    return _stored(last_revisions(pl.concat(found)))


def _stored(verdicts: pl.DataFrame) -> pl.DataFrame:
    """The columns of `NEWS`."""
    context = pl.col("context").list
    known = {
        name: context.eval(pl.element().filter(pl.element().struct["key"] == name).struct["value"]).list.first()
        for name in ("values", "watched", "metrics")
    }
    missing = [name for name in NEWS if name not in verdicts.columns and name not in known]
    rows = verdicts.with_columns(**known, **{name: pl.lit(None) for name in missing})
    rows = rows.with_columns(changed_by_rule=pl.lit(value=False), revision=pl.col("revision").fill_null(0))
    return rows.select(pl.col(name).cast(kind) for name, kind in NEWS.items()).sort("entity", "metric", "window_end")


def alarm_windows(verdicts: pl.DataFrame) -> set[tuple[str, str, int]]:
    """The windows that are alarms."""
    own = verdicts.filter(pl.col("kind").is_in(["anomaly", "state_change", "new_normal", "absence"]))
    return set(own.select("entity", "metric", "window_start").rows())
