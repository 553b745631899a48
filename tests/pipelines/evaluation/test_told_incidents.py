"""Incidents of recorded series: when they are told, which spans they tell of, which of them are false."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipelines.contracts.settings import load
from pipelines.jobs.detectors.metrics.context import NAMED
from pipelines.jobs.detectors.metrics.detection import SCHEMA
from pipelines.jobs.incidents.job import rules
from tests.benchmarks.measures.told import Labelled
from tests.benchmarks.measures.told_incidents import is_near, measured, told_incidents

MINUTE, HOUR = 60_000, 3_600_000
RULES = rules(load().incidents)


def _verdicts(scores: dict[int, float], last: int, entity: str = "kpi") -> pl.DataFrame:
    """Verdicts on a value a minute: anomalies of these scores at these minutes, the others ordinary.

    Each run of anomalies is an incident of its series that the next ordinary window closes.
    """
    rows: list[dict[str, Any]] = []
    onset = None
    for minute in range(last):
        at, score = minute * MINUTE, scores.get(minute, 5.0)
        told = minute in scores
        onset = at if told and onset is None else onset
        kind = "anomaly" if told else "recovered" if onset is not None else "normal"
        state = {"anomaly": "open", "recovered": "closed"}.get(kind)
        context = [{"key": "values", "value": 1e4}, {"key": "watched", "value": 1e4 * MINUTE}]
        rows.append(
            {"entity": entity, "metric": "value", "window_start": at, "window_end": at, "kind": kind}
            | {"record_score": score, "since": onset, "incident_state": state, "revision": 0, "context": context}
        )
        onset = None if kind == "recovered" else onset
    empty = pl.DataFrame(schema=SCHEMA)
    frame = pl.DataFrame(rows, schema_overrides={"context": NAMED}, infer_schema_length=None)
    return pl.concat([empty, frame.cast({n: SCHEMA[n] for n in frame.columns})], how="diagonal")


def _series(spans: list[tuple[int, int]], last: int) -> Labelled:
    label = np.zeros(last, bool)
    for first, end in spans:
        label[first:end] = True
    return Labelled("kpi", np.arange(last) * MINUTE, np.zeros(last), label, 15)


def test_an_incident_is_told_when_its_evidence_is_enough_and_not_when_its_series_begins() -> None:
    verdicts = _verdicts({100: 58.5, 101: 58.5, 102: 78.0, 103: 59.0}, 200)
    (found,) = told_incidents(verdicts, RULES)
    assert (found.told, found.news) == (102 * MINUTE, (102 * MINUTE, 103 * MINUTE))
    assert (found.entity, found.severity) == ("kpi", "major")


def test_what_is_not_enough_for_an_incident_is_not_told() -> None:
    assert told_incidents(_verdicts({100: 58.5}, 200), RULES) == []


def test_the_delay_counts_from_the_beginning_of_the_span_to_the_telling_and_each_false_incident_counts() -> None:
    verdicts = _verdicts({100: 58.5, 102: 80.0, 300: 80.0, 330: 80.0, 500: 80.0}, 600)
    made = measured([_series([(100, 110), (495, 520)], 600)], told_incidents(verdicts, RULES))
    assert (made.found, made.spans) == (2, 2)
    assert made.delay == np.median([2, 5])
    assert made.false * 600 * MINUTE / (720 * HOUR) == 2, "each of two incidents half an hour apart"


def test_an_incident_before_the_labels_begin_is_not_false() -> None:
    series = _series([], 100)
    later = Labelled(series.name, series.time + HOUR, series.value, series.label, 15)
    assert is_near(later, 0) and not is_near(later, HOUR)
