"""What Telegraf's formats share: which fields are counters, the unit of a timestamp, and what text in a field is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.contracts.globs import compiled
from pipelines.contracts.settings.input import InputSettings, names
from pipelines.contracts.topics import LOGS_AGENTS
from pipelines.formats.refusals import TEXT_FIELD

_OF_DISKS = frozenset({"fstype", "mode"})

_SECONDS, _MILLIS, _MICROS = 10**11, 10**14, 10**17
"""Below these absolute values an epoch time is in seconds, milliseconds, microseconds; else it is in nanoseconds."""


@dataclass(frozen=True)
class TextRule:
    """Which fields of text are left out without a word; each is a pattern of ``measurement.field``."""

    left_out: tuple[str, ...] = names(InputSettings().text_left_out)

    def refusal(self, fields: Iterable[str]) -> tuple[str, str] | None:
        """Code and reason of the dead letter for fields of text in a topic of metrics; ``None``: all are left out.

        >>> TextRule().refusal(["system.uptime_format"])
        >>> TextRule().refusal(["syslog.message"])[0]
        'TEXT_FIELD'
        """
        unneeded = compiled(self.left_out)
        kept = sorted({name for name in fields if not unneeded.match(name)})
        if not kept:
            return None
        what = f"text is no sample: {', '.join(kept[:5])}{', ...' if kept[5:] else ''}; log lines belong in the topic"
        return TEXT_FIELD, f"{what} {LOGS_AGENTS}; input.text_left_out names fields that nobody needs"


TEXT = TextRule()
"""The rule of the default settings."""


def epoch_ms(stamp: int) -> int:
    """Epoch milliseconds of a time in seconds, milliseconds, microseconds or nanoseconds, by its magnitude.

    >>> epoch_ms(1_795_220_820), epoch_ms(1_795_220_820_013), epoch_ms(1_795_220_820_013_999_999)
    (1795220820000, 1795220820013, 1795220820013)
    """
    size = abs(stamp)
    return stamp * 1000 if size < _SECONDS else stamp // (1 if size < _MILLIS else 1000 if size < _MICROS else 10**6)


def epochs_ms(stamps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """`epoch_ms` of a column, shape (n,)."""
    size = np.abs(stamps)
    divisor = np.select([size < _MILLIS, size < _MICROS], [1, 1000], 10**6)
    small = size < _SECONDS
    return np.where(small, np.where(small, stamps, 0) * 1000, stamps // divisor)


def series_tags(measurement: str, tags: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """The tags without those that describe a disk, but do not distinguish it from another."""
    return [tag for tag in tags if tag[0] not in _OF_DISKS] if measurement == "disk" else tags
