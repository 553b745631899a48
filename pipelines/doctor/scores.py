"""Checks that the scores which views push are taken."""

from __future__ import annotations

from pipelines.contracts.quantities.words import duration
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.query.view.scores.sent import all_sent

_kind = subject("Scores for Prometheus")
_LONG_MS = 600_000
"""For how long a receiver does not answer before that is said, milliseconds: receivers restart, networks blink."""
_LATELY_MS = 3_600_000

_FAILING = _kind(
    "SCORES_NOT_PUSHED",
    Severity.AT_RISK,
    "the receiver of remote write has not answered for ten minutes or longer; windows that the view forgets meanwhile "
    "(`view.windows`) are not pushed",
    "start it, or correct `scores.remote_write_url` and restart `newnormal view`",
)
_REFUSED = _kind(
    "SCORES_REFUSED",
    Severity.AT_RISK,
    "the receiver of remote write has refused samples in the last hour: they are not sent again",
    "see what it says: often the header (`scores.remote_write_authorization_file`), the tenant, or a limit on series",
)
_NOBODY = _kind(
    "SCORES_NOBODY_PUSHES",
    Severity.NOTE,
    "`scores.remote_write_url` is set, but no `newnormal view` of this machine has pushed anything yet",
    "start `newnormal view`",
)


def scores_pushed(context: Context) -> list[Finding]:
    """Finds receivers that do not answer, or refuse samples, and that nobody pushes."""
    if not context.settings.scores.remote_write_url:
        return []
    now, findings, where = context.clock(), [], "scores.remote_write_url"
    views = list(all_sent(context.settings))
    for folder, far in views:
        if far.failing_since is not None and now - far.failing_since >= _LONG_MS:
            what = f"{far.receiver} has not answered for {duration(now - far.failing_since)}: {far.reason}"
            findings.append(Finding(_FAILING, what, str(folder)))
        if far.refused_at is not None and now - far.refused_at < _LATELY_MS:
            what = f"{far.receiver} has refused {far.refused:,} samples so far: {far.reason}"
            findings.append(Finding(_REFUSED, what, str(folder)))
    return findings if views else [Finding(_NOBODY, "nothing was pushed yet", where)]
