"""Sends messages as JSON: to any URL, to what takes Slack's incoming webhooks, and to Prometheus' Alertmanager."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

import orjson

from engine.clock import now_ms
from engine.spec.duration import iso
from pipelines.contracts.records.severity import Severity
from pipelines.contracts.settings.channels import AlertmanagerChannel, SlackChannel, WebhookChannel
from pipelines.notify.channels.http import post, target
from pipelines.notify.channels.sending import Sender
from pipelines.notify.left import LeftMails
from pipelines.notify.links import link
from pipelines.notify.message import Message, single
from pipelines.notify.news import News

_COLORS = {"warning": "#7a7a7a", "minor": "#c9a400", "major": "#e07b00", "critical": "#c62828"}
_OVER = "#2e7d32"
_NOTHING = "\u200b"
"""A space without width."""
_MARKUP = re.compile(r"(?<![^\W_])@(?=\w)|\](?=[(\[:])|!(?=\[)|:(?=//)|\b(?:www|mailto|tel)(?=[.:])", re.IGNORECASE)
"""After which a space without width makes no link, picture or call of what follows."""
_STANDS_MS = 3_600_000
"""An alert ends by itself so long after it was last sent, milliseconds; `repeat` sends it again long before."""
_TEST_STANDS_MS = 60_000
"""The same for the alert of a test."""


class WebhookSender(Sender[WebhookChannel]):
    """Sends each message as one JSON object: docs/notifications.md has its fields."""

    def send(self, message: Message, left: LeftMails) -> str:
        """Posts the message; the deduplication id is also in the header ``Idempotency-Key``."""
        body: dict[str, Any] = {"id": message.id, "state": message.state, "title": message.title, "text": message.text}
        body |= {"links": [{"title": each.title, "url": each.url} for each in message.links]} if message.links else {}
        body |= {"incidents": [self._incident(each) for each in message.news]}
        return post(self._name, self._channel, body, {"Idempotency-Key": message.id})

    def _incident(self, news: News) -> dict[str, Any]:
        known = {"id": news.id, "state": news.state, "incident": orjson.loads(news.incident.to_json())}
        return known | ({"link": link(news.incident, self._settings)} if self._settings.console else {})


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
        attachment: dict[str, Any] = {
            "color": _OVER if over else _COLORS[worst],
            "text": message.text,
            "footer": message.id,
        }
        if self._has_buttons():
            buttons = [{"type": "button", "text": each.title, "url": each.url} for each in message.links]
            attachment |= {"actions": buttons} if buttons else {}
        body = {"text": message.title, "attachments": [{**attachment, "fallback": message.title}]}
        return post(self._name, self._channel, body, {})

    def _has_buttons(self) -> bool:
        """Whether it is Slack itself: Mattermost and Rocket.Chat have no buttons that open an address."""
        host = urlsplit(target(self._name, self._channel)[0]).hostname or ""
        return host == "slack.com" or host.endswith(".slack.com")


class AlertmanagerSender(Sender[AlertmanagerChannel]):
    """Sends each incident as one alert to Alertmanager (API v2), which groups, silences and forwards by its own rules.

    Its labels, by which Alertmanager knows it, have the severity.
    """

    limited, repeats = False, True

    def send(self, message: Message, left: LeftMails) -> str:
        """Posts the alerts. An alert of another severity that was sent before ends."""
        alerts = []
        for news in message.news:
            ended = news.state == "resolved"
            reports = (report for report in (news.before, news.tried) if report and report.state != "silent")
            for severity in dict.fromkeys(it.severity for it in reports if it.severity != news.incident.severity):
                alerts.append(self._alert(news, message, severity, ended=True))
            alerts.append(self._alert(news, message, news.incident.severity, ended))
        return self._post(alerts)

    def repeat(self, lasting: Collection[News]) -> None:
        """Posts incidents that last again, so that their alerts do not end."""
        if lasting:
            severe = [(each, each.before.severity if each.before else each.incident.severity) for each in lasting]
            messages = {each.id: single(each, self._channel, self._settings, "") for each in lasting}
            self._post([self._alert(each, messages[each.id], severity, ended=False) for each, severity in severe])

    def _post(self, alerts: list[dict[str, Any]]) -> str:
        return post(self._name, self._channel, alerts, {}, "/api/v2/alerts")

    def _alert(self, news: News, message: Message, severity: Severity, ended: bool) -> dict[str, Any]:
        incident, now = news.incident, now_ms()
        labels = {"alertname": "NewnormalIncident", "incident": incident.id, "site": incident.site}
        address, test = link(incident, self._settings), message.state == "test"
        stands = _TEST_STANDS_MS if test else _STANDS_MS
        return {
            "labels": labels | {"severity": severity} | ({"alertname": "NewnormalTest"} if test else {}),
            "annotations": {"summary": message.title, "description": message.text}
            | {f"{each.kind}_url": each.url for each in message.links if each.kind in ("dashboard", "runbook")},
            "startsAt": iso(incident.start),
            "endsAt": iso(max(now, incident.start + 1) if ended else now + stands),
            **({"generatorURL": address} if address else {}),
        }
