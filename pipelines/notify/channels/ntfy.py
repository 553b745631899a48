"""Sends messages to a topic of ntfy, which brings them to phones. Lengths are those of docs.ntfy.sh, "Limitations"."""

from __future__ import annotations

from typing import Any

from pipelines.contracts.records.severity import Severity
from pipelines.contracts.settings.channels import NtfyChannel
from pipelines.notify.channels.http import post
from pipelines.notify.channels.sending import Sender, cut_bytes
from pipelines.notify.left import LeftMails
from pipelines.notify.message import Message

_PRIORITIES: dict[Severity, int] = {"warning": 3, "minor": 3, "major": 4, "critical": 5}
_TAGS = {"resolved": "white_check_mark", "critical": "rotating_light"}
_TEXT, _TITLE = 4_096, 1_000
_BUTTONS = ("acknowledge", "maintenance", "runbook", "dashboard")
_MOST_BUTTONS = 3


class NtfySender(Sender[NtfyChannel]):
    """Sends each message as one notification. Its text is plain, and its end is quiet."""

    def send(self, message: Message, left: LeftMails) -> str:
        """Publishes the message as JSON; a tap opens the incident."""
        worst = max(message.news, key=lambda each: each.rank).incident.severity
        over = all(each.state == "resolved" for each in message.news)
        urls = {each.kind: each for each in message.links}
        buttons = [urls[kind] for kind in _BUTTONS if kind in urls][:_MOST_BUTTONS]
        body: dict[str, Any] = {
            "topic": self._channel.topic,
            "title": cut_bytes(message.title, _TITLE),
            "message": cut_bytes(message.text, _TEXT),
            "priority": _PRIORITIES["warning" if over else worst],
            "tags": [_TAGS["resolved"] if over else _TAGS.get(worst, "warning")],
            "actions": [{"action": "view", "label": each.title, "url": each.url} for each in buttons],
        }
        body |= {"click": urls["link"].url} if "link" in urls else {}
        return post(self._name, self._channel, body, {"X-Newnormal-Id": message.id})
