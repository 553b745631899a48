"""Checks that the channels take messages."""

from __future__ import annotations

from pipelines.contracts.quantities.words import duration
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.notify.status import notifier

_kind = subject("Notifications")
_LONG_MS = 600_000
"""For how long a channel fails before that is said, milliseconds: receivers restart, networks blink."""

_FAILING = _kind(
    "NOTIFY_FAILING",
    Severity.AT_RISK,
    "a channel has taken no message for ten minutes or longer: nobody is told there; messages are sent again",
    "correct what the reason names: address, account, secret; `newnormal notify test NAME` tries it (notifications.md)",
)


def failing(context: Context) -> list[Finding]:
    """Finds channels that have failed for long."""
    process, now = notifier(context.settings), context.clock()
    findings = []
    for channel in process.channels if process else ():
        if channel.failing_since is not None and now - channel.failing_since >= _LONG_MS:
            lasts = duration(now - channel.failing_since)
            what = f"{channel.name} has failed for {lasts}, {channel.waiting} incidents wait: {channel.reason}"
            findings.append(Finding(_FAILING, what, f"notify.channels.{channel.name}"))
    return findings
