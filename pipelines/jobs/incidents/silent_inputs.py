"""Incidents of silence: nothing is received from all inputs of a site together, or from one that stopped alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from pipelines.contracts.quantities.words import duration, instant
from pipelines.contracts.records import Acknowledgement, Incident, Rule, Silence
from pipelines.contracts.records.severity import severity_of
from pipelines.jobs.incidents.affected import ZONE
from pipelines.jobs.incidents.grouping import GroupedIncident
from pipelines.jobs.incidents.maintenance import opens_at

_ALL, _ONE = 95, 60
"""Severity: the silence of everything is the worst outage there is; that of one input is `major`, as of one machine."""


def silent(
    site: str,
    silences: Iterable[Silence],
    rules: Iterable[Rule],
    acknowledgements: Mapping[str, Acknowledgement],
    last: int,
) -> list[GroupedIncident]:
    """The incidents of some silences; those that were over before they could be reported give none.

    Args:
        site: Name of the site.
        silences: The last message on each silence.
        rules: All versions of the rules that mute, or once muted, the whole site.
        acknowledgements: The last acknowledgement of each incident.
        last: Event time after which the version says nothing, epoch milliseconds.
    """
    rules = list(rules)
    grouped = []
    for each in silences:
        opened = opens_at(each.noticed, rules)
        seen_until = each.time if each.until is None else each.until
        if opened <= seen_until and opened <= last:
            grouped.append(_incident_of(site, each, opened, acknowledgements))
    return grouped


def _incident_of(
    site: str, silence: Silence, opened: int, acknowledgements: Mapping[str, Acknowledgement]
) -> GroupedIncident:
    name = blake2b("\0".join((site, "silence", silence.input, str(silence.since))).encode(), digest_size=8).hexdigest()
    acknowledgement = acknowledgements.get(name)
    taken = acknowledgement if acknowledgement and acknowledgement.active else None
    score = _ALL if silence.is_of_all else _ONE
    over = silence.until is not None
    incident = Incident(
        id=name,
        opened=opened,
        site=site,
        status="resolved" if over else "acknowledged" if taken else "open",
        severity=severity_of(score),
        severity_score=score,
        record_score=score,
        start=silence.since,
        end=silence.until,
        updated=max(opened, acknowledgement.time if acknowledgement else opened, silence.until or opened),
        message=_message(silence, opened),
        machine_count=0,
        series_count=0,
        open_series=0 if over else 1,
        acknowledged_by=(taken.by or None) if taken else None,
        note=(taken.note or None) if taken else None,
    )
    spoken = max(silence.time, acknowledgement.time if acknowledgement else 0)
    return GroupedIncident(
        incident, frozenset({name}), (), True, 0.0, silence.until, silence.until, spoken, heard=silence.time
    )


def _message(silence: Silence, opened: int) -> str:
    """What happened, in words.

    >>> quiet = Silence(input="*", since=1767571200000, noticed=1767571500000, time=1767571500000)
    >>> _message(quiet, quiet.noticed)
    'nothing has been received since 00:00:00 UTC'
    >>> _message(quiet.model_copy(update={"input": "telemetry.json", "until": 1767571650000}), quiet.noticed)
    'nothing was received from telemetry.json since 00:00:00 UTC; received again after 7 min 30 s'
    """
    source = "" if silence.is_of_all else f" from {silence.input}"
    since = instant(silence.since, opened, ZONE)
    if silence.until is None:
        return f"nothing has been received{source} since {since}"
    return f"nothing was received{source} since {since}; received again after {duration(silence.until - silence.since)}"
