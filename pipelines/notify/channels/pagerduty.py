"""Sends incidents to PagerDuty, by its Events API v2: an alert for each, which it resolves when the incident is over.

Lengths are those of developer.pagerduty.com, "Send an Alert Event".
"""

from __future__ import annotations

from typing import Any

from engine.spec.duration import iso
from pipelines.contracts.records.severity import Severity
from pipelines.contracts.settings.channels import PagerDutyChannel
from pipelines.notify.channels.http import ask, key_of
from pipelines.notify.channels.sending import Sender, SendError, cut, cut_bytes
from pipelines.notify.left import LeftMails
from pipelines.notify.message import Message
from pipelines.notify.news import News

_SEVERITIES: dict[Severity, str] = {"warning": "info", "minor": "warning", "major": "error", "critical": "critical"}
_SUMMARY = 1024
_TEXT = 100_000
"""Most bytes of the text: an event may have 512 KB."""


class PagerDutySender(Sender[PagerDutyChannel]):
    """Sends an event for each incident. PagerDuty knows the alert of an incident by the incident's id."""

    limited = False

    def send(self, message: Message, left: LeftMails) -> str:
        """Triggers or resolves the alerts. An event that is sent again changes nothing."""
        return [self._send(self._event(news, message)) for news in message.news][-1]

    def _send(self, event: dict[str, Any]) -> str:
        key, url = key_of(self._name, self._channel), f"{str(self._channel.url).rstrip('/')}/v2/enqueue"
        try:
            return ask("POST", self._name, url, {"routing_key": key, **event}, {}, [key])
        except SendError as error:
            # it answers 400 to a wrong key too: that is no fault of the message, and ends when the key is corrected
            error.hopeless = error.hopeless and "routing" not in error.what.lower()
            raise

    def _event(self, news: News, message: Message) -> dict[str, Any]:
        incident = news.incident
        known = {"dedup_key": f"test:{incident.start}" if message.state == "test" else incident.id}
        if news.state == "resolved":
            return known | {"event_action": "resolve"}
        machine = incident.candidates[0].entity if incident.candidates else ""
        payload = {
            "summary": cut(message.title, _SUMMARY),
            "source": machine or incident.site,
            "severity": _SEVERITIES[incident.severity],
            "timestamp": iso(incident.start),
            "group": incident.site,
            "custom_details": {"text": cut_bytes(message.text, _TEXT), "id": news.id, "state": message.state},
        }
        links = [{"href": each.url, "text": each.title} for each in message.links]
        client = {"client": "newnormal"} | ({"client_url": links[0]["href"]} if links else {})
        return known | client | {"event_action": "trigger", "payload": payload, "links": links}
