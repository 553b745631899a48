"""The settings of notifications: the section `notify`, and the channels in it.

Secrets stand in files or environment variables that a channel names, and are read when they are needed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from pipelines.contracts.records.severity import Severity
from pipelines.contracts.setting_types import (
    Accepts,
    Confidential,
    FilePath,
    Length,
    ListenHost,
    TimeZone,
    Token,
    WebAddress,
    Whole,
    is_web_address,
)
from pipelines.contracts.settings.channels import Channels
from pipelines.contracts.settings.routes import Dashboard, Route, Routes, Runbooks
from pipelines.contracts.settings.web_servers import AccessSettings
from pipelines.contracts.week_times import ACCEPTED, WeekTimes


def _url_or_none(secret: SecretStr | None) -> SecretStr | None:
    if secret is not None and not is_web_address(secret.get_secret_value()):
        raise ValueError("it is no URL; accepted: https://host, with a port, a path and a query if needed")
    return secret


QuietHours = Annotated[WeekTimes, Accepts(f"nothing, or {ACCEPTED}")]
HeartbeatUrl = Annotated[
    SecretStr | None,
    AfterValidator(_url_or_none),
    Accepts("nothing, or https://host, with a port, a path and a query if needed"),
    Confidential(),
]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class NotifySettings(_Part, AccessSettings):
    """Who is told of incidents, and when."""

    channels: Channels = Field(
        {}, description="where people are told of incidents, by name: `[notify.channels.NAME]`; see notifications.md"
    )
    routes: Routes = Field(
        (),
        description="which channels are told of which incidents, `[[notify.routes]]`, in order; none: each channel is "
        "told of all from its `severity` on; see notifications.md",
    )
    matching: Literal["first", "all"] = Field(
        "first", description="whether the first of `notify.routes` that takes an incident counts, or all that do"
    )
    rate: Whole = Field(10, ge=1, le=10_000, description="a channel gets at most so many messages ...")
    per: Length = Field("10m", description="... within this time; what is held back follows in one summary")
    quiet: QuietHours = Field(
        "", description="times at which only severe incidents are told of, e.g. 22:00-07:00 or sat-sun; empty: none"
    )
    timezone: TimeZone = Field("UTC", description="IANA name of the time zone of `notify.quiet` and of routes")
    breakthrough: Severity = Field(
        "critical", description="incidents of this severity or a higher one are told of in quiet times too"
    )
    host: ListenHost = Field("127.0.0.1", description="address on which `newnormal notify run` has its metrics")
    port: Whole = Field(8900, ge=0, le=65535, description="port of these metrics; if taken, the next free one is used")
    token: Token = Field(
        SecretStr(""),
        description="what Prometheus sends as `Authorization: Bearer TOKEN`, which is needed where others than this "
        "machine reach the metrics; empty: none, or that in `notify.token_file`",
    )
    console: WebAddress = Field(None, description="address of the console, for links in messages; empty: no links")
    dashboard: Dashboard = Field(
        None,
        description="address of a dashboard, for links in messages, e.g. "
        "`https://grafana.example.org/d/machine?var-machine=$machine&from=$from&to=$to` (times in epoch milliseconds)",
    )
    runbooks: Runbooks = Field(
        (), description="pages on what to do, `[[notify.runbooks]]`; messages link to the first that matches"
    )
    heartbeat_url: HeartbeatUrl = Field(
        None, description="URL of a dead man's switch, which is asked for regularly while all is well; empty: none"
    )
    heartbeat_url_file: FilePath = Field("", description="file that holds this URL, as it may be a secret")
    heartbeat_every: Length = Field("1m", description="how often it is asked for")

    @property
    def all_routes(self) -> tuple[Route, ...]:
        """The routes by name; without any, one for each channel, which takes what is severe enough for it."""
        given = tuple(route.called(number) for number, route in enumerate(self.routes, 1))
        channels = self.channels.items()
        return given or tuple(Route(name=name, severity=it.severity, channels=(name,)) for name, it in channels)


def contradictions(settings: NotifySettings) -> dict[str, tuple[str, str]]:
    """The settings of notifications that contradict another one: for each what is wrong, and what is accepted."""
    wrong: dict[str, tuple[str, str]] = {}
    names = [route.name for route in settings.all_routes]
    for route in settings.all_routes:
        if unknown := sorted(route.named() - settings.channels.keys()):
            what = f"notify.routes: {route.name} names {unknown[0]}, which is no channel"
            wrong["notify.routes"] = (what, ", ".join(settings.channels) or "a channel of [notify.channels.NAME]")
        elif names.count(route.name) > 1:
            wrong["notify.routes"] = (f"notify.routes: two are called {route.name}", "another name for one of them")
    for name, channel in settings.channels.items() if settings.routes else ():
        if "severity" in channel.model_fields_set:
            what = f"notify.channels.{name}.severity stands beside notify.routes, which choose by severity"
            wrong["notify.channels"] = (what, "severity in [[notify.routes]], and none in the channel")
    return wrong
