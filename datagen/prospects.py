"""Predicts, before recorded samples are sent, what a running pipeline will do with them: judge, drop or refuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from datagen.player import Programme
from engine.columns.partitioning import slots
from engine.spec.duration import END_OF_TIME, NEVER, duration_ms, epoch_ms, iso
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.contracts.topics import TELEMETRY


@dataclass(frozen=True)
class Prospects:
    """Numbers of samples by what the pipeline will do with them.

    Args:
        samples: All samples.
        late: Samples whose windows have closed for good: they go to the topic `features.late`.
        ahead: Samples so far ahead of the clock that they are dead letters.
        early: Samples so long past that they are dead letters.
        watermark: The smallest watermark by which a sample is too late, epoch ms; `NEVER` if none is.
    """

    samples: int
    late: int
    ahead: int
    early: int
    watermark: int

    @property
    def to_be_judged(self) -> int:
        """The number of all other samples, whose windows are judged, or judged again."""
        return self.samples - self.late - self.ahead - self.early

    def lines(self, settings: Settings) -> list[str]:
        """These numbers in words; empty if all samples will be judged."""
        whole, limits, sentences = f"of {self.samples:,} samples", settings.watermark, list[str]()
        if self.late:
            sentences.append(
                f"{self.late:,} {whole} will be dropped as too late: the pipeline has come to {_when(self.watermark)} "
                f"(its watermark), and windows are open for {settings.window.allowed_lateness} "
                "(window.allowed_lateness) more"
            )
        if self.ahead:
            sentences.append(
                f"{self.ahead:,} {whole} will be dead letters (TIME_AHEAD): they lie more than {limits.max_ahead} "
                "ahead of the clock (watermark.max_ahead)"
            )
        if self.early:
            sentences.append(
                f"{self.early:,} {whole} will be dead letters (TIME_TOO_EARLY): they lie before {limits.earliest} "
                "(watermark.earliest)"
            )
        return sentences

    def refusal(self, settings: Settings, accepted: Sequence[str]) -> NewnormalError:
        """The error that no sample could be judged."""
        return NewnormalError(
            "NOTHING_TO_JUDGE",
            "; ".join(self.lines(settings)),
            f"{settings.topic(TELEMETRY)} at {settings.kafka.bootstrap}",
            "; ".join(accepted),
            "nothing was sent",
        )


def prospects(programme: Programme, watermarks: Mapping[int, int], settings: Settings) -> Prospects:
    """Predicts what the pipeline would do with samples if its watermarks stayed as they are now.

    Args:
        programme: The samples, and when they are sent.
        watermarks: The watermark of each partition of the topic `telemetry`.
        settings: The settings of the pipeline.
    """
    times = programme.frame["time"].to_numpy()
    early = times < epoch_ms(settings.watermark.earliest)
    ahead = times > programme.due + duration_ms(settings.watermark.max_ahead)
    at = np.full(len(times), NEVER, np.int64)
    if watermarks:
        table = np.array([watermarks[partition] for partition in sorted(watermarks)], np.int64)
        at = table[slots(programme.frame["entity"].cast(pl.String), len(table))]
    slide = settings.window.step_ms
    closed = times // slide * slide + settings.window.open_for_ms
    late = (closed <= at) & ~early & ~ahead
    least = int(at[late].min()) if late.any() else NEVER
    return Prospects(len(times), int(late.sum()), int(ahead.sum()), int(early.sum()), least)


def _when(watermark: int) -> str:
    return "at its end" if watermark == END_OF_TIME else iso(watermark)
