"""How severe an incident is: how sure and how large its novelties are, in how many series, and what has sent nothing.

All is weighed on the scale of evidence, on which 1 is what the detector reports (`Episode.evidence`):

- a novelty weighs its evidence, times 1 more than a third of log2(1 + d) for a value d widths of the band beyond it
  (`Episode.beyond`), times 1.3 if it had news in more than one window;
- its evidence is less by 0.25 ln(m / n) if n of the m metrics of its machine are novel in the incident: the strongest
  of many comes by chance m times as often as one, the n-th strongest m / n times (Simes 1986);
- an incident weighs as much as its heaviest novelty, times 0.63 for a single series and a sixteenth of log2(n) more for
  n series (0.88 for 16, 1.13 for 256); of `FLEET` machines or more, the heaviest of many, which is heavy by chance,
  counts as a single series, and for all of them the heaviest novelty of the machine in the middle;
- what does not say what is wrong counts 0.6: a machine that is unusual as a whole, and lines of a log that are no
  errors; errors in a log count in full, whose writer has judged them, too;
- a machine that has sent nothing weighs 1; so one is `major`, and three, which are no coincidence, are `critical`.

The larger of the last two, w, gives the score 100 w / (1 + w), as evidence gives the score of a novelty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log2

from pipelines.contracts.records.novelty import JOINED, judged_metric
from pipelines.jobs.incidents.bursts import Rules
from pipelines.jobs.incidents.episode import LOGS, STRONG, Episode

_ONE, _DOUBLED, _SIZE = 0.63, 1 / 16, 1 / 3
"""Weight of a single series; what each doubling of their number adds; what each doubling of the deviation adds."""

BARE = _ONE
"""What a single series weighs that is just unusual enough to be reported by the detector at its default settings."""

_AGAIN = 1.3
"""What a novelty counts that had news in a later window, too: most that come by chance have not."""

_VAGUE = 0.6
"""What counts that does not say what is wrong: a machine unusual as a whole, and lines of a log that are no errors."""

FLEET = 5
"""So many machines are judged by the one in the middle, and told as a number of machines."""

_MINOR = 25
"""Severity from which many series are an incident."""

_NO_CHANCE = 10
"""So many machines are not novel together by chance, however many false incidents a site has."""

_STOPPED = 50.0
"""A series that has stopped is an incident if its absence has this score."""


def severity_score(episodes: Sequence[Episode]) -> int:
    """The severity of an incident, 0 to 100.

    >>> far = Episode("a", "m", 0, 1, 1, None, 69.0, actual=5000.0, lower=44.0, upper=56.0)
    >>> severity_score([far]), severity_score([Episode("a", "m", 0, 1, 1, None, 69.0)])
    (85, 58)
    >>> silent = [Episode(name, "_machine", 0, 1, 1, None, 51.0, absent=True) for name in "abc"]
    >>> severity_score(silent[:1]), severity_score(silent)
    (50, 75)
    """
    return round(points(weight(episodes)))


def weight(episodes: Sequence[Episode]) -> float:
    """What an incident weighs."""
    series = {(e.entity, judged_metric(e.metric)) for e in episodes if e.metric != JOINED}
    share = _ONE + _DOUBLED * log2(max(len(series), 1))
    novel = Counter(entity for entity, _ in series)
    of_machines: dict[str, float] = {}
    alone = 0.0
    for e in episodes:
        own = weighed(e, novel[e.entity])
        of_machines[e.entity] = max(of_machines.get(e.entity, 0.0), own * (1.0 if e.error else share))
        alone = max(alone, own * (1.0 if e.error else _ONE))
    every = sorted(of_machines.values())
    heaviest = every[-1] if len(every) < FLEET else max(every[len(every) // 2], alone)
    return max(heaviest, float(len({e.entity for e in episodes if e.silent})))


def is_notable(episodes: Sequence[Episode], rules: Rules, level: float) -> bool:
    """Whether novelties are enough for an incident: by severity, by number of series, or as something has stopped.

    Args:
        episodes: The novelties.
        rules: The settings.
        level: The least severity, see `pipelines.jobs.incidents.false_pages`; where it is above `Rules.score`, the
            number of series does not suffice, but for that of `_NO_CHANCE` machines.
    """
    series = {(e.entity, judged_metric(e.metric)) for e in episodes if e.metric != JOINED}
    severity = severity_score(episodes)
    sure = len({e.entity for e in episodes if e.score >= STRONG}) >= _NO_CHANCE
    enough = max(len(series), 1) >= rules.series and min(_MINOR, rules.score) <= severity
    many = enough and (level <= rules.score or sure)
    return has_stopped(episodes) or many or severity >= level


def has_stopped(episodes: Iterable[Episode]) -> bool:
    """Whether a machine or a series has stopped, which does not come by chance."""
    return any(e.silent or (e.absent and e.score >= _STOPPED) for e in episodes)


def points(weight: float) -> float:
    """A weight on the scale from 0 to 100: 50 at 1, 75 at 3, 100 never quite."""
    return 100 * weight / (1 + weight)


def weighed(episode: Episode, novel: int = 1) -> float:
    """The evidence of an episode's worst verdict, more if it had news again, the more, the larger the deviation is.

    Args:
        episode: The episode.
        novel: How many metrics of its machine are novel in the incident.
    """
    vague = (episode.metric == LOGS and not episode.error) or (episode.metric == JOINED and not episode.absent)
    again = _AGAIN if episode.until > episode.reported else 1.0
    return (_VAGUE if vague else again) * episode.evidence_among(novel) * (1 + _SIZE * log2(1 + episode.beyond))
