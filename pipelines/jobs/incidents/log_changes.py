"""What changed in the logs of machines when their metrics began to be novel: what may explain an incident."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pipelines.contracts.records.incident import LogChange
from pipelines.jobs.incidents.bursts import Rules
from pipelines.jobs.incidents.episode import LOGS, Episode

MOST = 5
"""The most log changes of an incident."""

REMEMBERED = 3_600_000
"""A novelty that is dated back to a change of a log must be reported within this time after it, milliseconds."""


def log_changes(
    episodes: Iterable[Episode], new_lines: Mapping[str, Sequence[Episode]], rules: Rules
) -> list[LogChange]:
    """The log templates that may explain novelties of metrics, those on most machines first, then in order of onset.

    A change of a machine's log is one of them if a metric of that machine, or all its metrics together, began to be
    novel within `Rules.together` before or after it. A log that is novel by itself explains nothing.

    Args:
        episodes: The episodes of an incident, in any order.
        new_lines: For each machine its windows with lines that are new to it; they are no novelties.
        rules: The settings.

    >>> disk = Episode("db", "logs", 70_000, 80_000, 80_000, None, 90.0, template="disk <*> failed")
    >>> cpu = Episode("db", "cpu", 60_000, 80_000, 80_000, None, 90.0)
    >>> [(change.template, change.machines) for change in log_changes([cpu], {"db": [disk]}, Rules())]
    [('disk <*> failed', 1)]
    >>> log_changes([disk], {}, Rules())
    []
    """
    metrics, logs = defaultdict[str, list[Episode]](list), list[Episode]()
    for episode in episodes:
        (logs if episode.metric == LOGS else metrics[episode.entity]).append(episode)
    logs += [window for entity in metrics for window in new_lines.get(entity, ())]
    by_template = defaultdict[str, list[Episode]](list)
    for log in sorted(logs, key=lambda e: (e.since, e.entity)):
        if log.template and any(_explains(log, metric, rules) for metric in metrics.get(log.entity, ())):
            by_template[log.template].append(log)
    changes = [
        LogChange(
            template=template,
            example=same[0].example,
            entity=same[0].entity,
            since=same[0].since,
            machines=len({log.entity for log in same}),
        )
        for template, same in by_template.items()
    ]
    return sorted(changes, key=lambda change: (-change.machines, change.since, change.template))[:MOST]


def _explains(log: Episode, metric: Episode, rules: Rules) -> bool:
    return abs(log.since - metric.since) <= rules.together and metric.reported <= log.since + REMEMBERED
