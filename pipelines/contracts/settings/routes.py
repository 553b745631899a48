"""The routes of `notify.routes`, which say whom an incident is told, and the runbooks of `notify.runbooks`."""

from __future__ import annotations

from string import Template
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from pipelines.contracts.globs import Glob
from pipelines.contracts.records.severity import Severity
from pipelines.contracts.records.zone import Zone
from pipelines.contracts.setting_types import Accepts, Length
from pipelines.contracts.settings.channels import ChannelName
from pipelines.contracts.week_times import ACCEPTED, WeekTimes

PLACES = ("machine", "metric", "from", "to")
"""What the addresses of dashboards and runbooks may name."""


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _address(text: str) -> str:
    made, parts = Template(text), urlsplit(text)
    named = set(made.get_identifiers()) if made.is_valid() else {""}
    if parts.scheme not in ("http", "https") or not parts.netloc or not text.isprintable() or " " in text:
        raise ValueError("it is no http://host or https://host")
    if named - set(PLACES):
        raise ValueError(f"a $ that names nothing; accepted: {', '.join(f'${name}' for name in PLACES)}, $$")
    return text


Globs = Annotated[tuple[Glob, ...], BeforeValidator(_several)]
"""One glob or several, of which one has to match; none: any."""

LinkTemplate = Annotated[str, AfterValidator(_address)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Selection(_Part):
    """Series: those whose machine, metric and tags match. Without any of these: all, and what is of no machine."""

    machine: Globs = ()
    metric: Globs = ()
    tag: Globs = ()


class Escalation(_Part):
    """Whom an incident is told that nobody has acknowledged in time."""

    after: Length
    channels: Annotated[tuple[ChannelName, ...], Field(min_length=1), BeforeValidator(_several)]


class Route(Selection):
    """Whom an incident is told that it takes: one with such a series, severity and time."""

    name: Annotated[str, Field(max_length=60)] = ""
    severity: Severity = "warning"
    times: WeekTimes = ""
    timezone: Zone | None = None
    channels: Annotated[tuple[ChannelName, ...], BeforeValidator(_several)]
    escalate: tuple[Escalation, ...] = ()
    remind: Length | None = None

    def named(self) -> frozenset[str]:
        """All channels that it names."""
        return frozenset(self.channels).union(*(step.channels for step in self.escalate))

    def called(self, number: int) -> Self:
        """The route with its name: its number, from 1, if the settings give none."""
        return self.model_copy(update={"name": self.name or f"route {number}"})


class Runbook(Selection):
    """A page on what to do about incidents with such a series."""

    url: LinkTemplate


Routes = Annotated[
    tuple[Route, ...],
    Accepts(
        "tables [[notify.routes]], each with channels, and, if wanted, name, machine, metric and tag (a glob or a "
        f"list), severity (warning, minor, major or critical), times ({ACCEPTED}), timezone, remind (a duration above "
        "0), and escalate, a list of tables with after (a duration) and channels"
    ),
]
Runbooks = Annotated[
    tuple[Runbook, ...],
    Accepts("tables [[notify.runbooks]], each with url, and, if wanted, machine, metric and tag (a glob or a list)"),
]
Dashboard = Annotated[
    Annotated[str, AfterValidator(_address)] | None,
    BeforeValidator(lambda value: None if value == "" else value),
    Accepts("nothing, or http://host or https://host, in which $machine, $metric, $from and $to may stand"),
]
