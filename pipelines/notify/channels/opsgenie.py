"""Sends incidents to Opsgenie, by its alert API: an alert for each, which it closes when the incident is over.

Lengths are those of docs.opsgenie.com, "Alert API". Jira Service Management takes the same at an address of its own.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from pipelines.contracts.records.severity import Severity
from pipelines.contracts.settings.channels import OpsgenieChannel
from pipelines.notify.channels.http import ask, key_of
from pipelines.notify.channels.sending import Sender, cut
from pipelines.notify.left import LeftMails
from pipelines.notify.message import Message
from pipelines.notify.news import News

_PRIORITIES: dict[Severity, str] = {"warning": "P4", "minor": "P3", "major": "P2", "critical": "P1"}
_MESSAGE, _DESCRIPTION, _NOTE, _ENTITY, _DETAIL = 130, 15_000, 25_000, 512, 1_000


class OpsgenieSender(Sender[OpsgenieChannel]):
    """Sends a request for each incident. Opsgenie knows the alert of an incident by its alias, the incident's id."""

    limited = False

    def send(self, message: Message, left: LeftMails) -> str:
        """Opens, changes or closes the alerts. An alert that is open is not opened again by the same request."""
        return [self._send(news, message) for news in message.news][-1]

    def _send(self, news: News, message: Message) -> str:
        incident, test = news.incident, message.state == "test"
        alias = f"test:{incident.start}" if test else incident.id
        mine, same = f"/{quote(alias, safe='')}", "?identifierType=alias"
        note = {"source": "newnormal", "note": cut(f"{message.title}\n\n{message.text}", _NOTE)}
        if news.state == "resolved":
            return self._ask("POST", f"{mine}/close{same}", note)
        opened = self._ask("POST", "", self._alert(alias, news, message))
        if news.state == "updated":  # an alert that is open keeps the priority and the message that it began with
            self._ask("PUT", f"{mine}/priority{same}", {"priority": _PRIORITIES[incident.severity]})
            self._ask("PUT", f"{mine}/message{same}", {"message": cut(message.title, _MESSAGE)})
        return opened

    def _alert(self, alias: str, news: News, message: Message) -> dict[str, Any]:
        incident = news.incident
        details = {"id": news.id, "severity": incident.severity, "site": incident.site}
        machine = incident.candidates[0].entity if incident.candidates else ""
        return {
            "message": cut(message.title, _MESSAGE),
            "alias": alias,
            "description": cut(message.text, _DESCRIPTION),
            "priority": _PRIORITIES[incident.severity],
            "source": "newnormal",
            "details": details | {each.kind: cut(each.url, _DETAIL) for each in message.links},
            **({"entity": cut(machine, _ENTITY)} if machine else {}),
        }

    def _ask(self, method: str, path: str, body: dict[str, Any]) -> str:
        key, url = key_of(self._name, self._channel), f"{str(self._channel.url).rstrip('/')}/v2/alerts"
        return ask(method, self._name, url + path, body, {"Authorization": f"GenieKey {key}"}, [key])
