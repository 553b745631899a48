"""The facts of a novelty that explanations need, read from its document and worked out where they are not in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipelines.contracts.quantities.words import Scale, duration, instant, listed
from pipelines.contracts.records.novelty import QUIET_KINDS, sent_metric

_ABSURD = 4.0
"""The widest band that is shown, in multiples of the largest of: typical value, actual value, range of all values."""


def ranked(values: Any) -> list[tuple[str, float]]:
    """Sorts named numbers by absolute value, the largest first.

    Args:
        values: An object of numbers by name, or a list of entries with `key` and `value`, as Arrow gives maps.
    """
    pairs = values.items() if isinstance(values, Mapping) else [(each["key"], each["value"]) for each in values or []]
    return sorted(((name, value) for name, value in pairs if value is not None), key=lambda e: (-abs(e[1]), e[0]))


@dataclass(frozen=True)
class Facts:
    """The facts of one novelty document.

    Args:
        novelty: The fields of the document, by JSON name.
        zone: IANA name of the time zone in which instants are written.
    """

    novelty: Mapping[str, Any]
    zone: str

    @property
    def entity(self) -> str:
        """Name of the machine."""
        return str(self.novelty.get("host.name", "?"))

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return str(self.novelty.get("metric", "?"))

    @property
    def kind(self) -> str:
        """The kind of the novelty, such as `anomaly` or `absence`."""
        return str(self.novelty.get("kind", ""))

    @property
    def quiet(self) -> bool:
        """True if the verdict is no news: its kind is `normal` or `learning`."""
        return self.kind in QUIET_KINDS

    def number(self, name: str) -> float | None:
        """A number of the document; ``None`` if it is absent."""
        value = self.novelty.get(name)
        return None if value is None else float(value)

    @cached_property
    def context(self) -> dict[str, float]:
        """The numbers of the field `context`, by name; see `Novelty`."""
        return dict(ranked(self.novelty.get("context")))

    @cached_property
    def evidence(self) -> dict[str, float]:
        """Evidence in nats by channel, the strongest first."""
        return dict(ranked(self.novelty.get("evidence")))

    @cached_property
    def band(self) -> tuple[float, float] | None:
        """Bounds of the band in which the value was expected; ``None`` if there is no band or it is absurdly wide."""
        lower, upper = self.number("lower"), self.number("upper")
        if lower is None or upper is None:
            return None
        typical, low, high = self.number("typical"), self.context.get("lowest"), self.context.get("highest")
        known = [abs(value) for value in (typical, self.number("actual")) if value is not None]
        reach = max([*known, 0.0 if low is None or high is None else high - low])
        return (lower, upper) if upper - lower <= _ABSURD * reach or upper == lower else None

    @cached_property
    def scale(self) -> Scale:
        """How the numbers of this novelty are written."""
        kind = str(self.novelty.get("metric_kind", "gauge"))
        width = self.band[1] - self.band[0] if self.band else None
        every = [*(self.band or ()), self.number("actual") or 0.0, self.number("typical") or 0.0]
        return Scale(width, kind, max(map(abs, every)), sent_metric(self.metric))

    @property
    def window(self) -> int:
        """Length of the window, milliseconds; 0 if it is not known."""
        end = int(self.novelty.get("@timestamp") or 0)
        return end - int(self.novelty.get("window_start") or end)

    @property
    def since(self) -> str:
        """The sentence that says when the incident began; empty if that is not known."""
        return f"S{self.from_onset[2:]}." if self.from_onset else ""

    @property
    def from_onset(self) -> str:
        """A phrase such as " since 10:28:40 UTC": when the incident began; empty if that is not known."""
        began = self.novelty.get("since")
        return "" if began is None else f" since {self.instant(int(began))}"

    @property
    def lasted(self) -> float | None:
        """Milliseconds from the beginning of the incident to this window; ``None`` if one of them is not known."""
        began, start = self.novelty.get("since"), self.novelty.get("window_start", self.novelty.get("@timestamp"))
        return None if began is None or start is None else max(float(start) - float(began), 0.0)

    def instant(self, ms: int) -> str:
        """An instant as text, with its date unless that is the date of the novelty.

        Args:
            ms: Epoch milliseconds.
        """
        return instant(ms, int(self.novelty.get("@timestamp") or ms), self.zone)

    def after(self) -> str:
        """A phrase such as " after 5 min": how long the incident lasted; empty if that is not known."""
        return f" after {duration(self.lasted)}" if self.lasted else ""

    def by_rule(self) -> str:
        """The beginning of a sentence that names the rules that had this reported; empty if no rule did."""
        rules = list(self.novelty.get("reported_by") or [])
        return f"Rule{'s' if len(rules) > 1 else ''} {listed(rules)}: " if rules else ""

    def course(self) -> str:
        """For a verdict that is no news: a sentence saying that its incident is open or closed; else empty."""
        state = self.novelty.get("incident.state") if self.quiet else None
        if state == "closed":
            return f"The incident that began{self.from_onset.replace(' since', ' at')} is closed."
        return f"An incident has been open{self.from_onset}." if state == "open" else ""

    def decided(self) -> str:
        """A sentence saying that the verdict was decided later; else empty.

        How often a verdict was judged again depends on micro-batches, so that no text may tell it: final texts are the
        same in every replay. The field `revision` tells it.
        """
        decided = self.novelty.get("incident.decided")
        return (
            ""
            if decided is None
            else f"This was decided at {self.instant(int(decided))}, from the windows that followed."
        )
