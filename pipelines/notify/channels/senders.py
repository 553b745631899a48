"""Makes the sender of a channel from its settings."""

from __future__ import annotations

from typing import Any

from pipelines.contracts.settings.channels import Channel, EmailChannel, OpsgenieChannel, PagerDutyChannel
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.notify.channels.email import EmailSender, password
from pipelines.notify.channels.http import key_of, target
from pipelines.notify.channels.ntfy import NtfySender
from pipelines.notify.channels.opsgenie import OpsgenieSender
from pipelines.notify.channels.pagerduty import PagerDutySender
from pipelines.notify.channels.sending import Sender
from pipelines.notify.channels.teams import TeamsSender
from pipelines.notify.channels.webhooks import AlertmanagerSender, SlackSender, WebhookSender

_SENDERS: dict[str, type[Sender[Any]]] = {
    "webhook": WebhookSender,
    "slack": SlackSender,
    "teams": TeamsSender,
    "ntfy": NtfySender,
    "pagerduty": PagerDutySender,
    "opsgenie": OpsgenieSender,
    "alertmanager": AlertmanagerSender,
    "email": EmailSender,
}


def sender(name: str, settings: NotifySettings) -> Sender[Any]:
    """The sender of a channel, given by its name in the settings."""
    return _SENDERS[settings.channels[name].kind](name, settings.channels[name], settings)


def is_limited(channel: Channel) -> bool:
    """Whether quiet hours and the rate apply to a channel, see `Sender`."""
    return _SENDERS[channel.kind].limited


def check(name: str, settings: NotifySettings) -> None:
    """Reads the secrets of a channel.

    Raises:
        NewnormalError: ``NOTIFY_SECRET`` if one cannot be read.
    """
    channel = settings.channels[name]
    if isinstance(channel, EmailChannel):
        password(name, channel)
    elif isinstance(channel, PagerDutyChannel | OpsgenieChannel):
        key_of(name, channel)
    else:
        target(name, channel)
