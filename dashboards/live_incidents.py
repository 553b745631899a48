"""Incidents in a terminal: a table with a row for each, and lines for the log where there is no terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from engine.printing import cell, visible
from engine.spec.duration import iso
from pipelines.contracts.quantities.cells import clock_time

_STYLES = {"critical": "bold red", "major": "red", "minor": "yellow", "warning": "cyan"}
_OVER = ("resolved", "merged")
_WIDE = 110

Incident = dict[str, Any]
"""A document of the incidents' index."""


def incidents_table(incidents: Sequence[Incident], now: int, width: int) -> RenderableType:
    """A row for each incident; in a narrow terminal without the place where it may have begun.

    Args:
        incidents: The incidents, in the order of the rows.
        now: Epoch milliseconds.
        width: Columns of the terminal.
    """
    if not incidents:
        return Text("no incidents so far", "dim")
    table = Table(box=None, expand=True, header_style="dim")
    table.add_column("since (UTC)", no_wrap=True)
    for name in ("severity", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("machines", "series"):
        table.add_column(name, justify="right", no_wrap=True)
    if width >= _WIDE:
        table.add_column("may have begun at", no_wrap=True, overflow="ellipsis", max_width=30)
    table.add_column("what happened", no_wrap=True, overflow="ellipsis", ratio=1)
    for it in incidents:
        over = it.get("incident.state") in _OVER
        severity = str(it.get("severity"))
        row = [
            Text(clock_time(int(it["event.start"]), now)),
            cell(severity, "dim" if over else _STYLES.get(severity, "")),
            cell(it.get("incident.state")),
            *(Text(f"{it[name]:,}" if it.get(name) else "") for name in ("machine_count", "series_count")),
        ]
        if width >= _WIDE:
            row.append(cell(_origin(it)))
        row.append(cell(it.get("message")))
        table.add_row(*row, style="dim" if over else "")
    return table


class IncidentLines:
    """Says which incidents have changed for an operator since the last look: in their state or their severity."""

    def __init__(self) -> None:
        self._reported: dict[str, tuple[str, str]] = {}

    def news(self, incidents: Sequence[Incident]) -> list[dict[str, Any]]:
        """The fields of a line for each incident that is new or changed; names cannot steer a terminal.

        An incident of which nothing was said while it was open is not mentioned once it is over: it is of the past.
        """
        lines = []
        for it in incidents:
            identity = str(it["event.id"])
            is_now = (str(it.get("incident.state")), str(it.get("severity")))
            if self._reported.get(identity) == is_now or (is_now[0] in _OVER and identity not in self._reported):
                continue
            self._reported[identity] = is_now
            lines.append(
                {
                    "state": is_now[0],
                    "severity": is_now[1],
                    "since": iso(int(it["event.start"])),
                    "id": visible(identity),
                    "message": visible(it.get("message")),
                }
            )
        return lines


def _origin(it: Incident) -> str:
    candidates = it.get("candidates") or []
    return str(candidates[0]["entity"]) if candidates else "–"
