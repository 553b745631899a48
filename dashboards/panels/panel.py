"""A panel, and a dashboard of panels with their places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from dashboards.panels.query import Documents, Summary
from dashboards.panels.site import Data

COLUMNS = 48
"""Width of a dashboard in columns."""

Visual = Literal["number", "lines", "bars", "heat map", "table", "documents"]


@dataclass(frozen=True)
class Panel:
    """One picture on a dashboard.

    Args:
        id: Identity of the panel within its dashboard; it never changes, since users link to it.
        title: Title, as users see it.
        help: What the panel shows and how to read it, in one or two sentences.
        query: What is asked. A `heat map` has two buckets, time first; `lines` and `bars` have time first.
        visual: How the answer is shown.
        width: Columns of the dashboard, of 48.
        height: Rows of the dashboard, of about 20 pixels.
        data: Which documents are asked.
        drill: Id of the dashboard that a click on a value opens, filtered by this value; empty: none.
    """

    id: str
    title: str
    help: str
    query: Summary | Documents
    visual: Visual
    width: int
    height: int = 12
    data: Data = "novelties"
    drill: str = ""


@dataclass(frozen=True)
class Control:
    """A list of the values of a field from which the reader of a dashboard chooses.

    Args:
        field: The field.
        title: Title, as users see it.
        optional: Whether there are documents without the field, which are shown until a value is chosen.
    """

    field: str
    title: str
    optional: bool = False


@dataclass(frozen=True)
class Dashboard:
    """A page of panels.

    Args:
        id: Identity of the dashboard; it never changes.
        title: Title, as users see it.
        purpose: The question that the dashboard answers.
        panels: Its panels, line by line.
        controls: What the reader may choose.
        since: The time range that is shown at first, until now, e.g. ``now-6h``.
    """

    id: str
    title: str
    purpose: str
    panels: tuple[Panel, ...]
    controls: tuple[Control, ...] = ()
    since: str = "now-6h"


@dataclass(frozen=True)
class Place:
    """Where a panel stands: columns and rows from the top left, and its size."""

    x: int
    y: int
    width: int
    height: int


class _Sized(Protocol):
    """What has a size: a panel of either kind of dashboard."""

    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...


P_co = TypeVar("P_co", bound=_Sized, covariant=True)


class _Page(Protocol[P_co]):
    """A dashboard of either kind."""

    @property
    def panels(self) -> tuple[P_co, ...]: ...


def placed(dashboard: _Page[P_co], top: int = 0) -> Iterator[tuple[P_co, Place]]:
    """The panels with their places: side by side from the left, in the next line if there is no room.

    Args:
        dashboard: The dashboard.
        top: Rows that are left free above the first line.
    """
    x, y, tallest = 0, top, 0
    for panel in dashboard.panels:
        if x + panel.width > COLUMNS:
            x, y, tallest = 0, y + tallest, 0
        yield panel, Place(x, y, panel.width, panel.height)
        x, tallest = x + panel.width, max(tallest, panel.height)
