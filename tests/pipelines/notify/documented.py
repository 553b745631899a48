"""Receivers written from the public documentation of PagerDuty, Opsgenie, Microsoft Teams and ntfy, on loopback.

Each refuses what its documentation does not allow, as that says, and keeps what an operator would see there.
Sources: PagerDuty/api-schema, events-v2, and "Send an Alert Event"; docs.opsgenie.com, "Alert API";
learn.microsoft.com, "Create an Incoming Webhook" and adaptivecards.io, version 1.4; docs.ntfy.sh/publish.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import orjson

from tests.pipelines.notify.receivers import Answer, HttpReceiver, Request, http_receiver

PAGERDUTY_KEY, OPSGENIE_KEY = "e93facc04764012d7bfb002500d5d1a6", "eb243592-faa2-4ba2-a551-1afdf565c889"


@dataclass
class Alert:
    """An alert as an operator sees it."""

    title: str
    severity: str
    open: bool = True
    count: int = 1
    fields: dict[str, Any] = field(default_factory=dict)


def is_url(value: Any) -> bool:
    return isinstance(value, str) and urlsplit(value).scheme in ("http", "https") and bool(urlsplit(value).netloc)


class PagerDuty:
    """The Events API v2 of one service, and the alerts that it has."""

    def __init__(self) -> None:
        self.alerts: dict[str, list[Alert]] = {}

    def __call__(self, request: Request) -> Answer:
        if (request.method, request.path) != ("POST", "/v2/enqueue"):
            return 404, {}, ""
        if wrong := self._wrong(request.body, len(request.raw)):
            body = {"status": "invalid event", "message": "Event object is invalid", "errors": wrong}
            return 400, {}, orjson.dumps(body).decode()
        event = request.body
        known = self.alerts.setdefault(event["dedup_key"], [])
        standing = known[-1] if known and known[-1].open else None
        if event["event_action"] == "resolve":
            if standing:
                standing.open = False
        elif event["event_action"] == "trigger":
            payload = event["payload"]
            if standing:
                standing.count, standing.severity, standing.fields = standing.count + 1, payload["severity"], event
            else:
                known.append(Alert(payload["summary"], payload["severity"], fields=event))
        done = {"status": "success", "message": "Event processed", "dedup_key": event["dedup_key"]}
        return 202, {}, orjson.dumps(done).decode()

    def _wrong(self, event: Any, size: int) -> list[str]:
        if not isinstance(event, dict) or size > 512 * 1024:
            return ["JSON parse error"]
        wrong = []
        if len(event.get("routing_key", "")) != 32:
            wrong.append("Length of 'routing_key' is incorrect (should be 32 characters)")
        elif event["routing_key"] != PAGERDUTY_KEY:
            wrong.append("Invalid routing key")
        known = {"routing_key", "event_action", "dedup_key", "payload", "client", "client_url", "links", "images"}
        wrong += [f"{name} is unknown" for name in set(event) - known]
        if event.get("event_action") not in ("trigger", "acknowledge", "resolve"):
            wrong.append("'event_action' is invalid")
        if not 0 < len(event.get("dedup_key", "")) <= 255:
            wrong.append("'dedup_key' is missing or too long")
        if "client_url" in event and not is_url(event["client_url"]):
            wrong.append("'client_url' is invalid")
        wrong += ["'links' is invalid" for it in event.get("links", []) if not is_url(it.get("href"))]
        return wrong + (self._wrong_payload(event.get("payload")) if event.get("event_action") == "trigger" else [])

    def _wrong_payload(self, payload: Any) -> list[str]:
        if not isinstance(payload, dict):
            return ["'payload' is missing or blank"]
        texts = ("summary", "source", "severity", "timestamp", "component", "group", "class")
        wrong = [f"{name} is unknown" for name in set(payload) - {*texts, "custom_details"}]
        wrong += [f"'payload.{name}' is missing or blank" for name in texts[:3] if not payload.get(name)]
        if len(payload.get("summary", "")) > 1024:
            wrong.append("'payload.summary' is too long")
        if payload.get("severity") not in ("critical", "error", "warning", "info"):
            wrong.append("'payload.severity' is invalid (must be one of: critical, warning, error or info)")
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d{4})", payload.get("timestamp", "")):
            wrong.append("'payload.timestamp' is invalid")
        return wrong


LIMITS = {
    "message": 130, "alias": 512, "description": 15_000, "entity": 512, "source": 100, "user": 100, "note": 25_000,
}  # fmt: skip
"""The most characters of the fields of Opsgenie."""


class Opsgenie:
    """The alert API of one integration, and the alerts that it has."""

    def __init__(self) -> None:
        self.alerts: dict[str, list[Alert]] = {}

    def __call__(self, request: Request) -> Answer:
        if request.headers.get("Authorization") != f"GenieKey {OPSGENIE_KEY}":
            return 401, {}, '{"message":"Could not authenticate","took":0.0,"requestId":"1"}'
        parts, body = urlsplit(request.path), request.body
        if not isinstance(body, dict):
            return 400, {}, '{"message":"Could not parse request body","took":0.0,"requestId":"1"}'
        found = re.fullmatch(r"/v2/alerts(?:/([^/]+)/(close|priority|message))?", parts.path)
        by_alias = parse_qs(parts.query).get("identifierType") == ["alias"]
        if not found or (found[1] and not by_alias):
            return 404, {}, '{"message":"Alert does not exist","took":0.0,"requestId":"1"}'
        alias, act = unquote(found[1] or ""), found[2]
        if request.method != ("PUT" if act in ("priority", "message") else "POST"):
            return 405, {}, ""
        allowed = {
            None: {*LIMITS, "details", "priority", "tags"},
            "close": {"user", "source", "note"}, "priority": {"priority"}, "message": {"message"},
        }[act]  # fmt: skip
        details = body.get("details", {})
        wrong = set(body) - allowed or [n for n, most in LIMITS.items() if len(body.get(n, "")) > most]
        wrong = wrong or [n for n in ("message",) if act in (None, "message") and not body.get(n)]
        wrong = wrong or (["priority"] if body.get("priority", "P3") not in ("P1", "P2", "P3", "P4", "P5") else [])
        if wrong or not all(isinstance(it, str) for it in details.values()) or len(str(details)) > 8_000:
            return 422, {}, orjson.dumps({"message": "Request body is not processable", "errors": list(wrong)}).decode()
        self._apply(alias or body["alias"], act, body)
        return 202, {}, '{"result":"Request will be processed","took":0.302,"requestId":"43a29c5c"}'

    def _apply(self, alias: str, act: str | None, body: dict[str, Any]) -> None:
        known = self.alerts.setdefault(alias, [])
        standing = known[-1] if known and known[-1].open else None
        if act is None and standing:
            standing.count += 1
        elif act is None:
            known.append(Alert(body["message"], body["priority"], fields=body))
        elif standing:
            standing.open = standing.open and act != "close"
            standing.severity = body.get("priority", standing.severity)
            standing.title = body.get("message", standing.title)


class Teams:
    """A workflow that posts the card that it is sent, and the cards of the channel."""

    def __init__(self) -> None:
        self.cards: list[dict[str, Any]] = []

    def __call__(self, request: Request) -> Answer:
        if len(request.raw) > 28 * 1024:
            return 413, {}, "Request Entity Too Large"
        try:
            (attachment,) = request.body["attachments"]
            assert request.body["type"] == "message"
            assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
            card = attachment["content"]
            assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
            for block in card["body"]:
                assert block["type"] == "RichTextBlock"
                assert all(run["type"] == "TextRun" and isinstance(run["text"], str) for run in block["inlines"])
            assert len(card["actions"]) <= 6
            for act in card["actions"]:
                assert act["type"] == "Action.OpenUrl"
                assert act["title"]
                assert is_url(act["url"])
        except (AssertionError, KeyError, ValueError, TypeError) as error:
            return 400, {}, f"Bad payload received by generic incoming webhook: {error!r}"
        self.cards.append(card)
        return 202, {}, ""


class Ntfy:
    """A server of ntfy, and the notifications of its topics."""

    def __init__(self) -> None:
        self.notifications: list[dict[str, Any]] = []

    def __call__(self, request: Request) -> Answer:
        body = request.body
        known = {"topic", "message", "title", "tags", "priority", "actions", "click", "markdown", "icon"}
        if request.path not in ("", "/") or not isinstance(body, dict) or set(body) - known:
            return 400, {}, '{"code":40024,"http":400,"error":"invalid request: request body must be valid JSON"}'
        if not re.fullmatch("[-_A-Za-z0-9]{1,64}", body.get("topic", "")):
            return 400, {}, '{"code":40009,"http":400,"error":"invalid request: topic invalid"}'
        if len(body.get("message", "").encode()) > 4_096:
            return 413, {}, '{"code":41301,"http":413,"error":"attachment too large, or bandwidth limit reached"}'
        actions = body.get("actions", [])
        fine = len(actions) <= 3 and all(it["action"] == "view" and it["label"] and is_url(it["url"]) for it in actions)
        if not fine or body.get("priority", 3) not in range(1, 6) or ("click" in body and not is_url(body["click"])):
            return 400, {}, '{"code":40018,"http":400,"error":"invalid request: actions invalid"}'
        self.notifications.append(body)
        answer = {"id": "hwQ2YpKdmg", "time": 1, "event": "message", "topic": body["topic"]}
        return 200, {}, orjson.dumps(answer).decode()


@contextmanager
def documented(service: PagerDuty | Opsgenie | Teams | Ntfy) -> Iterator[HttpReceiver]:
    """A receiver that answers as a service does."""
    with http_receiver() as receiver:
        receiver.judges = service
        yield receiver
