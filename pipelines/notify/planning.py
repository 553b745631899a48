"""Which messages a channel gets now: quiet hours, the most messages within a time, and summaries. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from engine.spec.duration import duration_ms
from pipelines.contracts.records.severity import SEVERITIES
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.contracts.week_times import is_within
from pipelines.notify.news import News


@dataclass(frozen=True)
class Plan:
    """What is sent now.

    Attributes:
        single: News that each are a message, in this order.
        together: News that become one summary after them.
        held: Ids of the incidents that are held back.
    """

    single: tuple[News, ...] = ()
    together: tuple[News, ...] = ()
    held: frozenset[str] = frozenset()


def in_order(due: Iterable[News]) -> list[News]:
    """News in the order in which they are told: the most severe first, then what opened first."""
    return sorted(due, key=lambda one: (-one.rank, one.incident.opened, one.incident.id))


def plan(due: Sequence[News], settings: NotifySettings, now: int, sent: Sequence[int], held: Collection[str]) -> Plan:
    """Decides what of the news is sent now.

    News that were held back become one summary, unless they are alone. The most severe go first, and alone.

    Args:
        due: What the channel has to be told.
        settings: The settings of notifications.
        now: The present, epoch milliseconds.
        sent: When the channel got its last messages, epoch milliseconds.
        held: Ids of the incidents that were held back before.
    """
    through = SEVERITIES.index(settings.breakthrough)
    quiet, order = is_within(settings.quiet, settings.timezone, now), in_order(due)
    spoken = [one for one in order if one.rank >= through] if quiet else order
    free = settings.rate - sum(at > now - duration_ms(settings.per) for at in sent)
    waiting = {one.incident.id for one in spoken} & set(held)
    single = [one for one in spoken if one.rank >= through or len(waiting) < 2 or one.incident.id not in waiting]
    together = [one for one in spoken if one.rank < through and len(waiting) > 1 and one.incident.id in waiting]
    if len(single) + bool(together) > free:
        kept = max(0, free - 1)
        single, together = single[:kept], [*single[kept:], *together]
        if free <= 0:
            together = []
        elif len(together) == 1:
            single, together = [*single, *together], []
    chosen = {one.incident.id for one in (*single, *together)}
    return Plan(tuple(single), tuple(together), frozenset(one.incident.id for one in due) - chosen)
