"""Reads labelled spans, with which verdicts are compared: times in which something was wrong, or a false alarm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import polars as pl

from datagen.groundtruth import GroundTruth
from datagen.series import read_labels
from engine.formats.heartbeat import HEARTBEAT
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Label
from pipelines.contracts.records.novelty import JOINED, judged_metric

EVERY = JOINED
"""Stands for all metrics of a machine."""

CHANGED = ("state_change", "new_normal")
"""The kinds of verdict that report a change of state."""

CALM = 12
"""So many windows without news end an alert; fewer do not."""


@dataclass(frozen=True)
class Span:
    """A span of one machine's event time.

    Args:
        entity: Name of the machine.
        metrics: Names of the metrics that show it; `EVERY` for all.
        start: First instant of the span, epoch milliseconds.
        end: Last instant of the span, epoch milliseconds, inclusive.
        change: True if it is a change of state that lasts, false if it is an anomaly.
        wrong: False if an operator called it a false alarm: nothing was wrong then.
    """

    entity: str
    metrics: tuple[str, ...]
    start: int
    end: int
    change: bool = False
    wrong: bool = True

    def shows_in(self, metric: str) -> bool:
        """True if a metric shows the span, also one beside peers; the joined verdict shows every span."""
        return EVERY in (metric, *self.metrics) or judged_metric(metric) in self.metrics


def of_ground_truth(rows: Iterable[GroundTruth]) -> list[Span]:
    """The spans of a ground truth; incidents of log lines are left out, as no metric shows them."""
    of_metrics = [row for row in rows if row.metrics != ["logs"]]
    return [Span(t.entity, tuple(t.metrics), t.start + 1, t.end - 1, t.cls == "state_change") for t in of_metrics]


def of_labels(labels: Iterable[Label]) -> list[Span]:
    """The spans of operators' labels."""
    changes = ("expected_change", "new_normal")
    return [
        Span(
            label.entity,
            (label.metric,),
            label.start,
            label.start if label.end is None else label.end,
            label.verdict in changes,
            label.verdict != "false_alarm",
        )
        for label in labels
    ]


def of_column(labels: pl.DataFrame, entity: str) -> list[Span]:
    """The spans of a label column: the runs of labelled rows of each machine.

    Args:
        labels: Columns ``time`` (epoch milliseconds), ``entity`` and ``label`` (true or false), sorted by time.
        entity: Name of the machine of rows that name none.
    """
    frame = labels.with_columns(pl.col("entity").fill_null(entity))
    runs = frame.with_columns(run=pl.col("label").rle_id().over("entity")).filter("label")
    bounds = runs.group_by("entity", "run", maintain_order=True).agg(
        first=pl.col("time").first(), last=pl.col("time").last()
    )
    return [Span(name, (EVERY,), first, last) for name, first, last in bounds.select("entity", "first", "last").rows()]


def read(path: Path, entities: Sequence[str]) -> list[Span]:
    """Reads a ground truth (JSON lines), operators' labels (JSON lines), or a CSV file with a label column.

    Args:
        path: The file.
        entities: Names of the judged machines; a CSV file that names no machine applies to each of them.

    Raises:
        NewnormalError: ``TRUTH_UNREADABLE`` if the file has wrong lines or no label column.
    """
    accepted = "JSON lines of a ground truth or of labels, or a CSV file with the columns time and label"
    if path.suffix == ".csv":
        column = read_labels(path)
        if column is None:
            raise NewnormalError("TRUTH_UNREADABLE", "no label column", str(path), accepted, "nothing was judged")
        if column["entity"].null_count() < column.height:
            return of_column(column, "")
        return [span for entity in entities for span in of_column(column, entity)]
    try:
        return of_lines(path.read_bytes().splitlines())
    except (OSError, ValueError) as error:
        what = str(error).splitlines()[0]
        raise NewnormalError("TRUTH_UNREADABLE", what, str(path), accepted, "nothing was judged") from None


def of_lines(lines: Iterable[bytes]) -> list[Span]:
    """The spans of ground truth and labels in JSON lines; an object with the field ``class`` is ground truth.

    Raises:
        ValueError: If a line is neither ground truth nor a label.
    """
    rows = [orjson.loads(line) for line in lines if line.strip()]
    truths = [GroundTruth.model_validate(row) for row in rows if "class" in row]
    return [*of_ground_truth(truths), *of_labels(Label.model_validate(row) for row in rows if "class" not in row)]


def of_messages(values: Iterable[bytes]) -> tuple[list[Span], int]:
    """The spans of messages with ground truth or labels; and the number of other messages, without heartbeats."""
    spans, refused = [], 0
    for value in values:
        try:
            spans += of_lines([value]) if value != HEARTBEAT else []
        except ValueError:
            refused += 1
    return spans, refused
