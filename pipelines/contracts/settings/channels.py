"""The channels of `notify.channels`: one class for each kind of receiver.

Secrets stand in files or environment variables that a channel names, and are read when they are needed.
"""

from __future__ import annotations

import re
from string import Template
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

from pipelines.contracts.records.severity import Severity
from pipelines.contracts.setting_types import Accepts, Confidential, WebAddress, is_address, is_web_address

FIELDS = frozenset(
    [
        *("id", "state", "severity", "score", "incident_state", "message", "site", "version", "start", "end"),
        *(
            "machines",
            "machine_count",
            "series_count",
            "cause",
            "reason",
            "acknowledged_by",
            "note",
            "link",
            "runbook",
            "dashboard",
        ),
    ]
)
"""What templates may name; docs/notifications.md says what each is."""

_ADDRESS = re.compile(r"[^@\s<>,]+@[^@\s<>,]+")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


def _template(text: str) -> str:
    made = Template(text)
    if not made.is_valid():
        raise ValueError("a $ that begins no name; accepted: $$ for a dollar")
    if unknown := sorted(set(made.get_identifiers()) - FIELDS):
        raise ValueError(f"${unknown[0]} is unknown; accepted: {', '.join(f'${name}' for name in sorted(FIELDS))}")
    return text


def _url(secret: SecretStr) -> SecretStr:
    if not is_web_address(secret.get_secret_value()):
        raise ValueError("it is no URL; accepted: https://host, with a port, a path and a query if needed")
    return secret


def _server(text: str) -> str:
    if not is_address(text):
        raise ValueError("it is no host:port")
    return text


def _mail_address(text: str) -> str:
    if not _ADDRESS.fullmatch(text) or not text.isprintable():
        raise ValueError("it is no e-mail address")
    return text


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("a channel's name has small letters, digits, _ and -, up to 60")
    return text


ChannelName = Annotated[str, AfterValidator(_name)]
MailAddress = Annotated[str, AfterValidator(_mail_address)]
TemplateText = Annotated[str, AfterValidator(_template)]


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


class TeamsChannel(_Http):
    """Microsoft Teams: the URL of a workflow that posts what it is sent to a channel or a chat."""

    kind: Literal["teams"]


class NtfyChannel(_Http):
    """A topic of ntfy: the URL is that of the server."""

    kind: Literal["ntfy"]
    topic: Annotated[str, Field(pattern=r"^[-_A-Za-z0-9]{1,64}$")]


class AlertmanagerChannel(_Http):
    """Prometheus' Alertmanager: the URL is that of the server, without /api/v2/alerts."""

    kind: Literal["alertmanager"]


class _Keyed(_Channel):
    key_file: str | None = None
    key_variable: str | None = None

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if sum(each is not None for each in (self.key_file, self.key_variable)) != 1:
            raise ValueError("one of key_file and key_variable says where the key is")
        return self


class PagerDutyChannel(_Keyed):
    """A service of PagerDuty, by its Events API v2; the key is the integration key."""

    kind: Literal["pagerduty"]
    url: WebAddress = "https://events.pagerduty.com"


class OpsgenieChannel(_Keyed):
    """Opsgenie, or what takes the same, by its alert API; the key is that of an API integration."""

    kind: Literal["opsgenie"]
    url: WebAddress = "https://api.opsgenie.com"


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


HttpChannel = WebhookChannel | SlackChannel | TeamsChannel | NtfyChannel | AlertmanagerChannel
"""Those that have a URL, which may be a secret."""

Channel = Annotated[HttpChannel | PagerDutyChannel | OpsgenieChannel | EmailChannel, Field(discriminator="kind")]
Channels = Annotated[
    dict[ChannelName, Channel],
    Accepts(
        "a table for each channel, with kind = webhook, slack, teams, ntfy, pagerduty, opsgenie, alertmanager or "
        "email; see docs/notifications.md"
    ),
    Confidential(),
]
