"""Sends messages to Microsoft Teams, through a workflow that posts the adaptive card that it is sent."""

from __future__ import annotations

from typing import Any

import orjson

from pipelines.contracts.records.severity import Severity
from pipelines.contracts.settings.channels import TeamsChannel
from pipelines.notify.channels.http import post
from pipelines.notify.channels.sending import Sender, SendError, cut_bytes
from pipelines.notify.left import LeftMails
from pipelines.notify.message import Message

_CARD = "application/vnd.microsoft.card.adaptive"
_COLORS: dict[Severity, str] = {"warning": "default", "minor": "warning", "major": "warning", "critical": "attention"}
_LARGEST = 28_000
"""Most bytes of a message: the documentation says 28 KB."""
_INSIDE = "returned HTTP error"
"""What a connector answers, with the status 200, if Teams did not take the message."""


class TeamsSender(Sender[TeamsChannel]):
    """Sends each message as one card. Its texts are runs of text, in which Teams looks for no markup."""

    def send(self, message: Message, left: LeftMails) -> str:
        """Posts the card; the deduplication id is its last line."""
        body, room = self._card(message, message.text), _LARGEST
        while len(orjson.dumps(body)) > _LARGEST:  # what JSON escapes is longer there
            room //= 2
            body = self._card(message, cut_bytes(message.text, room))
        answer = post(self._name, self._channel, body, {})
        if _INSIDE in answer:
            raise SendError("NOTIFY_UNREACHABLE", f"it answered: {answer.partition(_INSIDE)[2].strip()}", self._name)
        return answer

    def _card(self, message: Message, text: str) -> dict[str, Any]:
        worst = max(message.news, key=lambda each: each.rank).incident.severity
        over = all(each.state == "resolved" for each in message.news)
        title = _run(cut_bytes(message.title, 2_000), size="medium", weight="bolder")
        title |= {"color": "good" if over else _COLORS[worst]}
        lines = [_block(_run(line)) for line in text.splitlines() if line]
        last = _block(_run(message.id, size="small", isSubtle=True))
        content = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "body": [_block(title), *lines, last],
            "actions": [{"type": "Action.OpenUrl", "title": each.title, "url": each.url} for each in message.links],
        }
        return {"type": "message", "attachments": [{"contentType": _CARD, "contentUrl": None, "content": content}]}


def _run(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "TextRun", "text": text, **more}


def _block(run: dict[str, Any]) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [run]}
