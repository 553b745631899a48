"""What a running pipeline will make of recorded samples, told before they are sent: judged, too late, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.partitioning import slots
from engine.time import NEVER, duration_ms, epoch_ms
from pipelines.settings import Settings

Instants = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Prospects:
    """Numbers of samples by what will become of them.

    Args:
        samples: All of them.
        late: Those whose windows have closed for good: they go to the topic `features.late`.
        ahead: Those so far ahead of the clock that they are dead letters.
        early: Those of times so long past that they are dead letters.
        watermark: The least watermark of the partitions concerned, epoch ms; `NEVER` if there is none.
    """

    samples: int
    late: int
    ahead: int
    early: int
    watermark: int

    @property
    def judged(self) -> int:
        """The others: samples of windows that are judged, or judged again."""
        return self.samples - self.late - self.ahead - self.early


def prospects(frame: pl.DataFrame, due: Instants, watermarks: Mapping[int, int], settings: Settings) -> Prospects:
    """What the pipeline would make of samples if it stood where it stands now.

    Args:
        frame: Columns ``time`` and ``entity``.
        due: When each is sent, epoch ms.
        watermarks: Of each partition of the topic `telemetry`.
        settings: Those of the pipeline.
    """
    times = frame["time"].to_numpy()
    early = times < epoch_ms(settings.watermark.earliest)
    ahead = times > due + duration_ms(settings.watermark.max_ahead)
    at = np.full(len(times), NEVER, np.int64)
    if watermarks and len(times):
        table = np.array([watermarks[partition] for partition in sorted(watermarks)], np.int64)
        at = table[slots(frame["entity"].cast(pl.String), len(table))]
    window = settings.window
    pane = duration_ms(window.every or window.size)
    closed = times // pane * pane + duration_ms(window.size) + duration_ms(window.allowed_lateness)
    late = (closed <= at) & ~early & ~ahead
    least = int(at.min()) if len(at) else NEVER
    return Prospects(len(times), int(late.sum()), int(ahead.sum()), int(early.sum()), least)
