"""Makes the sender of a channel from its settings."""

from __future__ import annotations

from pipelines.contracts.settings.notify import (
    AlertmanagerChannel,
    EmailChannel,
    NotifySettings,
    SlackChannel,
    WebhookChannel,
)
from pipelines.notify.channels.alertmanager import AlertmanagerSender
from pipelines.notify.channels.email import EmailSender, password
from pipelines.notify.channels.http import target
from pipelines.notify.channels.sending import Sender
from pipelines.notify.channels.slack import SlackSender
from pipelines.notify.channels.webhook import WebhookSender


def sender(name: str, settings: NotifySettings) -> Sender:
    """The sender of a channel, given by its name in the settings."""
    channel = settings.channels[name]
    if isinstance(channel, WebhookChannel):
        return WebhookSender(name, channel, settings)
    if isinstance(channel, SlackChannel):
        return SlackSender(name, channel)
    if isinstance(channel, AlertmanagerChannel):
        return AlertmanagerSender(name, channel, settings)
    return EmailSender(name, channel)


def check(name: str, settings: NotifySettings) -> None:
    """Reads the secrets of a channel.

    Raises:
        NewnormalError: ``NOTIFY_SECRET`` if one cannot be read.
    """
    channel = settings.channels[name]
    if isinstance(channel, EmailChannel):
        password(name, channel)
    else:
        target(name, channel)
