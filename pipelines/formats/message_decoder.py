"""The base of decoders for agents whose messages hold several samples each."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from engine.spec.decoder import Decoded, Decoder, Messages
from engine.spec.time_bounds import other_unit
from pipelines.contracts.records import Telemetry
from pipelines.formats.by_message import columns, gather, json_of, refusal_of, table
from pipelines.formats.samples import LONGEST, wrong_metric

Sample = tuple[int | None, str, str, float, str]
"""(event time in epoch milliseconds or nothing for the arrival, machine, metric, value, kind of metric)"""


class MessageDecoder(Decoder):
    """Decodes JSON messages, message by message, into columns of `Telemetry`. Subclasses define the format."""

    @abstractmethod
    def samples(self, message: Any) -> Iterator[Sample]:
        """The samples of one parsed message.

        Raises:
            KeyError, TypeError, ValueError: If the message does not have the format.
        """

    def read(self, message: Any) -> tuple[Iterable[Sample], tuple[str, str] | None]:
        """The samples; and code and reason if a message also holds something that is none, and must not be lost."""
        return self.samples(message), None

    def decode(self, messages: Messages) -> Decoded:
        values, arrived = messages.values.to_pylist(), messages.arrived.tolist()
        format_name = type(self).__name__.removesuffix("Decoder")
        left: dict[int, tuple[str, str]] = {}

        def read(row: int) -> Iterable[Sample]:
            samples, also = self.read(json_of(values[row]))
            if also:
                left[row] = also
            return samples

        def refusal(row: int, error: Exception) -> tuple[str, str]:
            left.pop(row, None)
            return refusal_of(error, format_name)

        rows, index, refused = gather(
            len(values), read, refusal, _are_fine, lambda row, sample: _checked(sample, arrived[row])
        )
        return Decoded(table(Telemetry, rows, index), sorted([*refused, *((row, *also) for row, also in left.items())]))


def _are_fine(rows: list[Sample]) -> bool:
    """Whether all samples have a time, and `_checked` would take each as it is; checked by the column."""
    if not rows:
        return True
    times, entities, metrics, values, _ = columns(rows)
    if set(map(type, times)) != {int} or set(map(type, entities)) != {str}:
        return False
    return (
        max(map(abs, times)) <= 2**53
        and all(0 < len(name) <= LONGEST for name in set(entities))
        and not any(map(wrong_metric, set(metrics)))
        and bool(np.isfinite(np.array(values, np.float64)).all())
    )


def _checked(sample: Sample, arrived: int) -> Sample:
    time, entity, metric, value, kind = sample
    if time is None:
        time, sample = arrived, (arrived, entity, metric, value, kind)
    if not (entity and isinstance(entity, str) and len(entity) <= LONGEST):
        raise ValueError(f"the machine is empty, not a text, or longer than {LONGEST} characters")
    if why := wrong_metric(metric):
        raise ValueError(why)
    if abs(time) > 2**53:
        raise ValueError(f"time {time} {other_unit(time) or 'is beyond all calendars'}")
    if not math.isfinite(value):
        raise ValueError(f"{metric}: a finite number is accepted")
    return sample


def number(value: Any) -> float | None:
    """The value of a sample; ``None`` if the agent sent no number, such as a text or a flag.

    >>> number(3), number(None), number("up")
    (3.0, None, None)
    """
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def number_of(value: Any) -> float:
    """A value that must be a number.

    Raises:
        TypeError: If it is none.
    """
    if type(value) not in (int, float):
        raise TypeError(f"{str(value)[:40]!r} is no number")
    return float(value)


def metric_name(name: str, instance: dict[str, str]) -> str:
    """The name of a metric, with its instance in braces.

    >>> metric_name("disk.used", {"path": "/", "device": "vda"})
    'disk.used{device=vda,path=/}'
    """
    inside = ",".join(f"{k}={v}" for k, v in sorted(instance.items()))
    return f"{name}{{{inside}}}" if inside else name
