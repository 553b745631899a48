"""A panel and a dashboard whose data come from Prometheus. Only Grafana can show them.

A dashboard names no Prometheus: a variable at its top chooses one of the Prometheus data sources that Grafana has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MetricsVisual = Literal["number", "lines", "heat map"]


@dataclass(frozen=True)
class Promql:
    """A query.

    Args:
        expression: PromQL; it gives one value a series and instant.
        legend: Name of each line, from labels; empty: the query gives a single number.
    """

    expression: str
    legend: str = ""


@dataclass(frozen=True)
class MetricsPanel:
    """A panel whose queries are PromQL.

    Args:
        title: Title, as users see it.
        help: What the panel shows and how to read it.
        queries: What is asked.
        unit: Grafana's name of the unit; ``score``: of a score, with the colours of the severities.
        warn: From this value on a number is shown in orange; ``None``: never.
        width: Columns of the dashboard, of 48.
        heat: True for strips of colours in place of lines.
        below_zero: True if the values may be below 0.
    """

    title: str
    help: str
    queries: tuple[Promql, ...]
    unit: str = "short"
    warn: float | None = None
    width: int = 24
    heat: bool = False
    below_zero: bool = False

    @property
    def visual(self) -> MetricsVisual:
        """How the answer is shown."""
        return "heat map" if self.heat else "lines" if self.queries[0].legend else "number"

    @property
    def height(self) -> int:
        """Rows of the dashboard, of about 20 pixels."""
        return 8 if self.visual == "number" else 16


@dataclass(frozen=True)
class Label:
    """A list of the values of a label, from which the reader chooses; queries name it as a variable, e.g. ``$machine``.

    Args:
        name: Name of the label.
        title: Title of the list.
        metric: A metric that has it.
    """

    name: str
    title: str
    metric: str


@dataclass(frozen=True)
class MetricsDashboard:
    """A page of panels.

    Args:
        id: Identity of the dashboard; it never changes.
        title: Title, as users see it.
        purpose: The question that the dashboard answers.
        panels: Its panels, line by line.
        labels: What the reader may choose beside the data source.
    """

    id: str
    title: str
    purpose: str
    panels: tuple[MetricsPanel, ...]
    labels: tuple[Label, ...] = ()
