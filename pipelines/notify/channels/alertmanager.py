"""Sends incidents to Prometheus' Alertmanager (API v2), which groups, silences and forwards them by its own rules."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from engine.clock import now_ms
from engine.spec.duration import iso
from pipelines.contracts.records.severity import Severity
from pipelines.contracts.settings.notify import AlertmanagerChannel
from pipelines.notify.channels.http import post
from pipelines.notify.channels.sending import Sender
from pipelines.notify.left import LeftMails
from pipelines.notify.message import Message, link, single
from pipelines.notify.news import News

_STANDS_MS = 3_600_000
"""An alert ends by itself so long after it was last sent, milliseconds; `repeat` sends it again long before."""

_TEST_STANDS_MS = 60_000
"""The same for the alert of a test."""


class AlertmanagerSender(Sender[AlertmanagerChannel]):
    """Sends each incident as one alert. Its labels, by which Alertmanager knows it, have the severity."""

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
            "annotations": {"summary": message.title, "description": message.text},
            "startsAt": iso(incident.start),
            "endsAt": iso(max(now, incident.start + 1) if ended else now + stands),
            **({"generatorURL": address} if address else {}),
        }
