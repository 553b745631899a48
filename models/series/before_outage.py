"""What the experts knew before an outage, which they know again once it is over: an outage teaches nothing."""

from __future__ import annotations

from models.kernels import kernel
from models.records import Record

KEPT = (
    *(f"{name}.{column}" for name in ("level", "log_level") for column in ("count", "mean", "squares")),
    *(f"{name}.log_weight" for name in ("level", "log_level", "hour")),
    *(f"record.{end}" for end in ("low", "high")),
)
"""The columns that are again as they were before an outage once that is over."""


@kernel
def keep(series: Record) -> None:
    """Remembers what is unlearned when an outage is over."""
    _copy(series, series.before)


@kernel
def restore(series: Record) -> None:
    """Takes up again what was known before an outage."""
    _copy(series.before, series)


@kernel
def _copy(source: Record, target: Record) -> None:
    """Copies what is named in `KEPT`."""
    target.level.count, target.level.mean, target.level.squares = (
        source.level.count,
        source.level.mean,
        source.level.squares,
    )
    target.log_level.count, target.log_level.mean = source.log_level.count, source.log_level.mean
    target.log_level.squares = source.log_level.squares
    target.level.log_weight, target.log_level.log_weight = source.level.log_weight, source.log_level.log_weight
    target.hour.log_weight = source.hour.log_weight
    target.record.low, target.record.high = source.record.low, source.record.high
