"""What a reference is: an operator's meaning in plain Python."""

from __future__ import annotations

from abc import ABC, abstractmethod

from engine.spec.operator import Progress, Row


class Reference(ABC):
    """The specification of a processor: plain Python over all keys, slow and obvious."""

    @abstractmethod
    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        """Takes in one micro-batch in order of arrival; returns results, and records that came too late to count."""
