"""The detector as a job: features in event-time order through the models, verdicts out."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from engine.ordered.base import Waiting
from engine.processor import Held, Processor, ProcessorConfig, Progress, Results
from engine.state import ShardState, pack, unpack
from pipelines.detection import Detection
from pipelines.settings import DetectorSettings
from pipelines.words import told

JUDGED = {"counter": "rate", "latency": "p95"}
"""Which statistic of a window is judged, by kind of metric; of all other kinds the mean."""


@dataclass(frozen=True)
class DetectorProcess(ProcessorConfig):
    """The detector's configuration."""

    settings: DetectorSettings

    def build(self) -> Processor:
        return DetectorProcessor(self.settings)


class DetectorProcessor(Processor):
    """Holds windows back until the watermark has passed their end, so that the order of judging is that of event time.

    State: that of `Waiting`, and segment ``models``, what the detector believes.
    """

    def __init__(self, settings: DetectorSettings) -> None:
        self.settings = settings
        self.detection = Detection(settings)

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Judges all windows that are complete; late revisions at once."""
        ready = Waiting(state).release(batch, pl.col("window_end"), progress.now)
        if not ready.height:
            return Results(pl.DataFrame(), held=Held(keys=state.notes.get("keys")))
        believed = state.get("models")
        models = self.detection.from_tables(_arrow(believed)) if believed else self.detection.new_state()
        verdicts, models = self.detection.process(judged(ready), models)
        state.put("models", pack({name: _frame(table) for name, table in models.to_tables().items()}))
        if self.settings.emit == "novel":
            verdicts = verdicts.filter(~pl.col("kind").is_in(["normal", "learning"]))
        state.notes["keys"] = len(models.series)
        return Results(told(verdicts), held=Held(keys=len(models.series)))


def judged(features: pl.DataFrame) -> pl.DataFrame:
    """The rows that the models judge: one value a series and window.

    >>> row = {"entity": "a", "metric": "m", "kind": "latency", "window_start": 0, "window_end": 10, "mean": 1.0}
    >>> judged(pl.DataFrame([row | {"p95": 3.0, "rate": None, "revision": 0}]))["value"].to_list()
    [3.0]
    """
    value = pl.col("mean")
    for kind, column in JUDGED.items():
        value = pl.when(pl.col("kind").cast(pl.String) == kind).then(pl.col(column).cast(pl.Float64)).otherwise(value)
    columns = ("entity", "metric", "kind", "window_start", "window_end", "revision")
    names = [pl.col(c).cast(pl.String) for c in columns[:3]]
    return features.select(*names, *columns[3:], value.alias("value"))


def _arrow(value: bytes) -> dict[str, pa.Table]:
    return {name: frame.to_arrow() for name, frame in unpack(value).items()}


def _frame(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
