"""The timestamps of Influx line protocol. The pipeline derives their unit from their magnitude, which must fit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.spec.duration import iso
from pipelines.formats.measurement import epochs_ms

_MS = 1_000_000
NANOSECONDS = {
    "": 1, "n": 1, "ns": 1, "u": 1_000, "us": 1_000, "µ": 1_000, "µs": 1_000, "ms": _MS, "s": 1_000 * _MS,
    "m": 60_000 * _MS, "h": 3_600_000 * _MS,
}  # fmt: skip
"""The units that the parameter ``precision`` may name, nanoseconds."""
_EARLIEST, _LATEST = 10**11, 4_102_444_800_000
"""Times before 1973 and after 2100, epoch milliseconds, are times in another unit."""


def impossible(fields: pl.DataFrame, unit: int) -> dict[int, str]:
    """The lines whose timestamps cannot be in a unit, by their number, each with the reason.

    Args:
        fields: The fields of lines, see `influx_lines.fields`; all are right.
        unit: The unit, nanoseconds.
    """
    stamped = fields.filter(pl.col("stamp").is_not_null())
    odd = stamped.filter(pl.Series(_impossible(stamped["stamp"].to_numpy(), unit), dtype=pl.Boolean))
    return {number: f"{stamp} is no time in that unit; {_right(stamp)}" for number, stamp in _first(odd)}


def timed(data: bytes, fields: pl.DataFrame, unit: int) -> bytes:
    """Lines with timestamps that are read as what they mean.

    Args:
        data: The lines.
        fields: Their fields.
        unit: The unit of their timestamps, nanoseconds.
    """
    if _as_meant(fields.filter(pl.col("stamp").is_not_null())["stamp"].to_numpy(), unit):
        return data
    in_nanoseconds = fields.with_columns(time=pl.col("stamp") * unit)
    text = pl.concat_str("key", pl.lit("="), "raw").str.join(",")
    whole = in_nanoseconds.group_by("number", maintain_order=True).agg(
        pl.col("head").first(), text.alias("f"), pl.col("time").first()
    )
    ends = ("" if time is None else f" {time}" for time in whole["time"])
    return "\n".join(f"{head} {f}{end}" for head, f, end in zip(whole["head"], whole["f"], ends, strict=True)).encode()


def are_plain(stamps: list[int], unit: int) -> bool:
    """Whether timestamps are possible in a unit, and are read as what they mean.

    >>> are_plain([1_795_220_820], NANOSECONDS["s"]), are_plain([1_795_220_820], NANOSECONDS["ms"])
    (True, False)
    """
    times = np.array(stamps, np.int64)
    return not _impossible(times, unit).any() and _as_meant(times, unit)


def _impossible(stamps: npt.NDArray[np.int64], unit: int) -> npt.NDArray[np.bool_]:
    meant = stamps.astype(np.float64) * (unit / _MS)
    return (meant < _EARLIEST) | (meant > _LATEST)


def _as_meant(stamps: npt.NDArray[np.int64], unit: int) -> bool:
    """Whether the pipeline, which goes by their magnitude, reads timestamps as the times that they are in the unit."""
    times = stamps * (unit // _MS) if unit >= _MS else stamps // (_MS // unit)
    return bool((times == epochs_ms(stamps)).all())


def _first(odd: pl.DataFrame) -> list[tuple[int, int]]:
    return odd.unique("number", keep="first", maintain_order=True).select("number", "stamp").rows()


def _right(stamp: int) -> str:
    """The precision in which a timestamp would be a time."""
    for name in ("s", "ms", "us", "ns"):
        time = stamp * NANOSECONDS[name] // _MS
        if _EARLIEST <= time <= _LATEST:
            return f"accepted: precision={name}, if {iso(time)} is meant"
    return "accepted: timestamps of 1973 to 2100 in the unit of the parameter precision (default: ns)"
