"""Checks that incidents reach people: that a route takes them, and that the channels take messages."""

from __future__ import annotations

from engine.spec.errors import NewnormalError
from pipelines.contracts.quantities.words import duration
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.notify.channels.senders import check
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


_UNTAKEN = _kind(
    "NOTIFY_UNTAKEN",
    Severity.AT_RISK,
    "incidents last of which no route tells anybody",
    "a last `[[notify.routes]]` without conditions takes the rest, also with no channels if nobody shall be told; "
    "`newnormal notify try --draft FILE` says whom other routes would tell of the incidents of the last 30 days",
)
_UNNAMED = _kind(
    "NOTIFY_UNNAMED",
    Severity.NOTE,
    "no route names a channel, so that it is told of nothing new",
    "name it in `notify.routes`, or remove it",
)
_SECRET = _kind(
    "NOTIFY_SECRET",
    Severity.AT_RISK,
    "the secret of a channel cannot be read here: `newnormal notify run` would not start on this machine",
    "correct the file or variable that is named; where another machine notifies, this is none of its concern",
)


def failing(context: Context) -> list[Finding]:
    """Finds channels that have failed for long, and incidents of which nobody is told."""
    process, now = notifier(context.settings), context.clock()
    findings = []
    for channel in process.channels if process else ():
        if channel.failing_since is not None and now - channel.failing_since >= _LONG_MS:
            lasts = duration(now - channel.failing_since)
            what = f"{channel.name} has failed for {lasts}, {channel.waiting} incidents wait: {channel.reason}"
            findings.append(Finding(_FAILING, what, f"notify.channels.{channel.name}"))
    if process and process.untaken:
        what = f"{process.untaken} incident{'s last' if process.untaken > 1 else ' lasts'} that no route takes"
        findings.append(Finding(_UNTAKEN, what, "notify.routes"))
    return findings


def unheard(context: Context) -> list[Finding]:
    """Finds channels without their secret, and channels that no route names."""
    settings, findings = context.settings.notify, []
    named = {name for route in settings.all_routes for name in route.named()}
    for name in settings.channels:
        try:
            check(name, settings)
        except NewnormalError as error:
            findings.append(Finding(_SECRET, f"{name}: {error.what}", error.where))
        if name not in named:
            findings.append(Finding(_UNNAMED, f"no route names {name}", "notify.routes"))
    return findings
