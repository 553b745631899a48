"""The settings of notifications: the section `notify`, and the channels in it.

Secrets stand in files or environment variables that a channel names, and are read when they are needed.
"""

from __future__ import annotations

import re
from string import Template
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

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
    is_address,
    is_web_address,
)
from pipelines.contracts.settings.web_servers import AccessSettings

FIELDS = frozenset(
    [
        *("id", "state", "severity", "score", "incident_state", "message", "site", "version", "start", "end"),
        *("machines", "machine_count", "series_count", "cause", "reason", "acknowledged_by", "note", "link"),
    ]
)
"""What templates may name; docs/notifications.md says what each is."""

_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")
_ADDRESS = re.compile(r"[^@\s<>,]+@[^@\s<>,]+")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


def _template(text: str) -> str:
    made = Template(text)
    if not made.is_valid():
        raise ValueError("a $ that begins no name; accepted: $$ for a dollar")
    if unknown := sorted(set(made.get_identifiers()) - FIELDS):
        raise ValueError(f"${unknown[0]} is unknown; accepted: {', '.join(f'${name}' for name in sorted(FIELDS))}")
    return text


def _hours(text: str) -> str:
    spans = [_HOURS.fullmatch(part) for part in text.split(",")] if text else []
    if not all(span and span[0][:5] != span[0][6:] for span in spans):
        raise ValueError("not accepted")
    return text


def _url(secret: SecretStr) -> SecretStr:
    if not is_web_address(secret.get_secret_value()):
        raise ValueError("it is no URL; accepted: https://host, with a port, a path and a query if needed")
    return secret


def _url_or_none(secret: SecretStr | None) -> SecretStr | None:
    return None if secret is None else _url(secret)


def _server(text: str) -> str:
    if not is_address(text):
        raise ValueError("it is no host:port")
    return text


def _mail_address(text: str) -> str:
    if not _ADDRESS.fullmatch(text) or not text.isprintable():
        raise ValueError("it is no e-mail address")
    return text


def _channel_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("a channel's name has small letters, digits, _ and -, up to 60")
    return text


MailAddress = Annotated[str, AfterValidator(_mail_address)]
TemplateText = Annotated[str, AfterValidator(_template)]
QuietHours = Annotated[
    str, AfterValidator(_hours), Accepts("nothing, or times of day such as 22:00-07:00, with commas between several")
]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class _Channel(_Part):
    severity: Severity = "warning"
    title: TemplateText | None = None
    text: TemplateText | None = None


class _Http(_Channel):
    url: Annotated[SecretStr, AfterValidator(_url)] | None = None
    url_file: str | None = None
    url_variable: str | None = None
    authorization_file: str | None = None
    authorization_variable: str | None = None

    @model_validator(mode="after")
    def _one_url(self) -> Self:
        if sum(each is not None for each in (self.url, self.url_file, self.url_variable)) != 1:
            raise ValueError("one of url, url_file and url_variable says where it is")
        if self.authorization_file and self.authorization_variable:
            raise ValueError("authorization_file or authorization_variable, not both")
        return self


class WebhookChannel(_Http):
    """A URL that takes JSON."""

    kind: Literal["webhook"]


class SlackChannel(_Http):
    """A URL that takes what Slack's incoming webhooks take, as Mattermost and Rocket.Chat do."""

    kind: Literal["slack"]


class AlertmanagerChannel(_Http):
    """Prometheus' Alertmanager: the URL is that of the server, without /api/v2/alerts."""

    kind: Literal["alertmanager"]


class EmailChannel(_Channel):
    """A mail server."""

    kind: Literal["email"]
    server: Annotated[str, AfterValidator(_server)]
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password_file: str | None = None
    password_variable: str | None = None
    sender: MailAddress
    recipients: Annotated[tuple[MailAddress, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _account(self) -> Self:
        given = sum(each is not None for each in (self.password_file, self.password_variable))
        if given > 1 or (given == 1) != (self.user is not None):
            raise ValueError("user needs one of password_file and password_variable, and these need a user")
        if self.user is not None and self.security == "none":
            raise ValueError("a password is not sent without encryption; accepted: security starttls or tls")
        return self


Channel = Annotated[
    WebhookChannel | SlackChannel | AlertmanagerChannel | EmailChannel, Field(discriminator="kind")
]  # fmt: skip
Channels = Annotated[
    dict[Annotated[str, AfterValidator(_channel_name)], Channel],
    Accepts("a table for each channel, with kind = webhook, slack, alertmanager or email; see docs/notifications.md"),
    Confidential(),
]


HeartbeatUrl = Annotated[
    SecretStr | None,
    AfterValidator(_url_or_none),
    Accepts("nothing, or https://host, with a port, a path and a query if needed"),
    Confidential(),
]


class NotifySettings(_Part, AccessSettings):
    """Who is told of incidents, and when."""

    channels: Channels = Field(
        {}, description="where people are told of incidents, by name: `[notify.channels.NAME]`; see notifications.md"
    )
    rate: Whole = Field(10, ge=1, le=10_000, description="a channel gets at most so many messages ...")
    per: Length = Field("10m", description="... within this time; what is held back follows in one summary")
    quiet: QuietHours = Field(
        "", description="times of day at which only severe incidents are told of, e.g. 22:00-07:00; empty: none"
    )
    timezone: TimeZone = Field("UTC", description="IANA name of the time zone of `notify.quiet`")
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
    heartbeat_url: HeartbeatUrl = Field(
        None, description="URL of a dead man's switch, which is asked for regularly while all is well; empty: none"
    )
    heartbeat_url_file: FilePath = Field("", description="file that holds this URL, as it may be a secret")
    heartbeat_every: Length = Field("1m", description="how often it is asked for")
