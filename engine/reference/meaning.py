"""The base of all references, which define the meaning of operators in plain Python."""

from __future__ import annotations

from abc import ABC, abstractmethod

from engine.spec.operator import Progress, Row


class Reference(ABC):
    """The meaning of an operator, as plain Python over all keys."""

    @abstractmethod
    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        """Processes one micro-batch in order of arrival; returns the results and the late records."""
