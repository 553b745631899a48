"""What verdicts are held against: spans of event time in which something was wrong, or said to be nothing."""

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
from pipelines.contracts.records.novelty import JOINED

EVERY = JOINED
"""All metrics of a machine."""


@dataclass(frozen=True)
class Span:
    """A span of one machine's event time.

    Args:
        entity: The machine.
        metrics: Those that show it; `EVERY` for all.
        start: First instant of it, epoch milliseconds.
        end: Last instant of it, inclusive.
        change: Whether it is a change of state that lasts, not an anomaly.
        wrong: False where an operator called it a false alarm: an alert in it is one.
    """

    entity: str
    metrics: tuple[str, ...]
    start: int
    end: int
    change: bool = False
    wrong: bool = True

    def shows_in(self, metric: str) -> bool:
        """Whether a metric shows it; the joined verdict shows all."""
        return EVERY in (metric, *self.metrics) or metric in self.metrics


def of_ground_truth(rows: Iterable[GroundTruth]) -> list[Span]:
    """The incidents of a ground truth; those of log lines are left out, as no metric shows them."""
    of_metrics = [row for row in rows if row.metrics != ["logs"]]
    return [Span(t.entity, tuple(t.metrics), t.start + 1, t.end - 1, t.cls == "state_change") for t in of_metrics]


def of_labels(labels: Iterable[Label]) -> list[Span]:
    """What operators said."""
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
    """Runs of labelled rows of each machine.

    Args:
        labels: Columns ``time``, ``entity`` and ``label``, sorted by time.
        entity: The machine that rows without one belong to.
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
        entities: The machines judged; a CSV file that names none speaks of each of them.

    Raises:
        NewnormalError: ``TRUTH_UNREADABLE``.
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
    """Ground truth and labels from JSON lines; what has a ``class`` is ground truth.

    Raises:
        ValueError: If a line is neither.
    """
    rows = [orjson.loads(line) for line in lines if line.strip()]
    truths = [GroundTruth.model_validate(row) for row in rows if "class" in row]
    return [*of_ground_truth(truths), *of_labels(Label.model_validate(row) for row in rows if "class" not in row)]


def of_messages(values: Iterable[bytes]) -> tuple[list[Span], int]:
    """The same from messages of topics, and how many are neither; heartbeats do not count."""
    spans, refused = [], 0
    for value in values:
        try:
            spans += of_lines([value]) if value != HEARTBEAT else []
        except ValueError:
            refused += 1
    return spans, refused
