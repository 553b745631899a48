"""A message that tries a channel, made like that of an incident."""

from __future__ import annotations

from dataclasses import replace

from engine.clock import now_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Incident
from pipelines.contracts.records.incident import AffectedMachine, Candidate
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.notify.channels.senders import sender
from pipelines.notify.left import LeftMails
from pipelines.notify.message import single
from pipelines.notify.news import News


def try_channel(name: str, settings: NotifySettings) -> str:
    """Sends a message to a channel; returns what it answered.

    Args:
        name: Name of the channel.
        settings: The settings of notifications.

    Raises:
        NewnormalError: ``NOTIFY_CHANNEL_UNKNOWN``, ``NOTIFY_SECRET``, ``NOTIFY_UNREACHABLE`` or ``NOTIFY_REFUSED``.
    """
    if name not in settings.channels:
        known = ", ".join(settings.channels) or "nothing: the settings name no channel"
        raise NewnormalError("NOTIFY_CHANNEL_UNKNOWN", f"there is no channel {name}", "notify.channels", known)
    now = now_ms()
    tried = sender(name, settings)
    news = News(_incident(now), "opened")
    message = single(news, settings.channels[name], settings, "test", tried.escape)
    identity, title = f"test:{now}", f"Test of newnormal notify: {message.title}"
    return tried.send(replace(message, id=identity, state="test", title=title), LeftMails())


def _incident(now: int) -> Incident:
    start, entity = now - 60_000, "example-1"
    return Incident(
        id="test",
        opened=start,
        site="test",
        status="open",
        severity="warning",
        severity_score=10,
        record_score=10,
        start=start,
        updated=now,
        message="a test message; nothing is wrong",
        machine_count=1,
        series_count=1,
        open_series=1,
        machines=[AffectedMachine(entity=entity, since=start, series=1, record_score=10)],
        candidates=[Candidate(entity=entity, metric="example", since=start, share=1.0, reason="this is a test")],
    )
