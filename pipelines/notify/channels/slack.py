"""Sends messages to Slack's incoming webhooks, and to what takes the same: Mattermost, Rocket.Chat and others."""

from __future__ import annotations

import re

from pipelines.contracts.settings.notify import SlackChannel
from pipelines.notify.channels.http import post
from pipelines.notify.channels.sending import Sender
from pipelines.notify.left import LeftMails
from pipelines.notify.message import Message

_COLORS = {"warning": "#7a7a7a", "minor": "#c9a400", "major": "#e07b00", "critical": "#c62828"}
_OVER = "#2e7d32"
_NOTHING = "\u200b"
"""A space without width."""
_MARKUP = re.compile(r"(?<![^\W_])@(?=\w)|\](?=[(\[:])|!(?=\[)|:(?=//)|\b(?:www|mailto|tel)(?=[.:])", re.IGNORECASE)
"""After which a space without width makes no link, picture or call of what follows."""


class SlackSender(Sender[SlackChannel]):
    """Sends each message as a title and an attachment whose colour says how severe it is."""

    def escape(self, text: str) -> str:
        """Escapes what Slack, Mattermost and Rocket.Chat take for links, pictures and people who are to be called.

        The latter two read Markdown, whose escapes Slack would show: so a space without width stands in between.

        >>> from pipelines.contracts.settings.notify import NotifySettings
        >>> sender = SlackSender("a", SlackChannel(kind="slack", url="https://a"), NotifySettings())
        >>> escaped = sender.escape("<!channel> & @all [a](b)")
        >>> escaped.replace(_NOTHING, "|")
        '&lt;!channel&gt; &amp; @|all [a]|(b)'
        """
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return _MARKUP.sub(lambda found: f"{found[0]}{_NOTHING}", text)

    def send(self, message: Message, left: LeftMails) -> str:
        """Posts the message; the deduplication id is in the last line of the attachment."""
        worst = max(message.news, key=lambda each: each.rank).incident.severity
        over = all(each.state == "resolved" for each in message.news)
        attachment = {"color": _OVER if over else _COLORS[worst], "text": message.text, "footer": message.id}
        body = {"text": message.title, "attachments": [{**attachment, "fallback": message.title}]}
        return post(self._name, self._channel, body, {})
