"""The base of all experts and what they are told of a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from models.arrays import Array, Columns, Flags, Ints, Rows
from models.families.base import Predictive
from models.families.normal_inverse_gamma import Prior
from models.families.stack import Part


@dataclass(frozen=True)
class Step:
    """What is known of n series before their value is judged, and the value.

    Args:
        value: The value, finite (where it is missing: the level's mean), shape (n,).
        seen: Values learned so far, shape (n,).
        time: End of the window, epoch milliseconds, shape (n,).
        gap: Milliseconds since the value before, at least 0, shape (n,).
        resolution: Differences below this mean nothing, above 0, shape (n,).
        day_off: Whether the day counts as one of a weekend although it is none; ``None``: nowhere, shape (n,).
        peers: What the same metric of other machines lets expect, where its variance is above 0; ``None``: nowhere.
    """

    value: Array
    seen: Array
    time: Ints
    gap: Array
    resolution: Array
    day_off: Flags | None = None
    peers: Prior | None = None


@dataclass(frozen=True)
class Lesson:
    """What an expert is to learn from: the value made harmless, what it counts, and how fast to forget.

    Args:
        value: The value, brought near what was plausible, shape (n,).
        weight: What it counts, in [0, 1], shape (n,).
        haste: 0: forget at the usual rate; 1: the old level is over; shape (n,).
    """

    value: Array
    weight: Array
    haste: Array


class Expert(ABC):
    """Predicts the next value of each series; holds only its configuration, all state is in columns."""

    name: str

    @abstractmethod
    def new_state(self, n: int) -> Columns:
        """The expert's columns for n series of which nothing is known."""

    @abstractmethod
    def predict(self, state: Rows, step: Step, level: Predictive | None) -> tuple[Part, Any]:
        """The predictive distribution, and whatever the expert wants handed back in `learn`; changes nothing.

        Args:
            state: The expert's own columns.
            step: The step.
            level: What the first expert (the level) predicts, to fall back on; ``None`` for the first one.
        """

    @abstractmethod
    def learn(self, state: Rows, step: Step, lesson: Lesson, memo: Any) -> None:
        """Writes what was learned into the columns."""

    def shift(self, state: Rows, offset: Array, few: float) -> None:  # noqa: B027
        """Moves all that was learned by an offset, shape (n,), and lets it count as few values; if it has a level."""
