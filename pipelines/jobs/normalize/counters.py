"""The rule by which a user says which metrics are counters, for formats that do not tell it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from pipelines.contracts.globs import pattern
from pipelines.contracts.settings.input import InputSettings, names


@dataclass(frozen=True)
class CounterRule:
    """Which metrics are counters; each glob is of a metric's name without its instance.

    >>> CounterRule(("app.requests.*",)).says("app.requests.total"), CounterRule().says("app.requests.total")
    (True, False)
    """

    globs: tuple[str, ...] = names(InputSettings().counters)

    @cached_property
    def _any(self) -> re.Pattern[str] | None:
        return re.compile("|".join(f"(?:{pattern(glob)})" for glob in self.globs)) if self.globs else None

    def says(self, name: str) -> bool:
        """Whether the rule makes a metric a counter."""
        return self._any is not None and self._any.match(name) is not None


COUNTERS = CounterRule()
"""The rule of the default settings."""
