"""Sends messages as JSON to any URL."""

from __future__ import annotations

from typing import Any

import orjson

from pipelines.contracts.settings.notify import WebhookChannel
from pipelines.notify.channels.http import post
from pipelines.notify.channels.sending import Sender
from pipelines.notify.left import LeftMails
from pipelines.notify.message import Message, link
from pipelines.notify.news import News


class WebhookSender(Sender[WebhookChannel]):
    """Sends each message as one JSON object: docs/notifications.md has its fields."""

    def send(self, message: Message, left: LeftMails) -> str:
        """Posts the message; the deduplication id is also in the header ``Idempotency-Key``."""
        body: dict[str, Any] = {"id": message.id, "state": message.state, "title": message.title, "text": message.text}
        body |= {"incidents": [self._incident(each) for each in message.news]}
        return post(self._name, self._channel, body, {"Idempotency-Key": message.id})

    def _incident(self, news: News) -> dict[str, Any]:
        known = {"id": news.id, "state": news.state, "incident": orjson.loads(news.incident.to_json())}
        return known | ({"link": link(news.incident, self._settings)} if self._settings.console else {})
