"""How severe an incident is: how sure and how large its novelties are, in how many series, and what has sent nothing.

All is weighed on the scale of evidence on which a score of 50 is 1 and one of 75 is 3 (`Episode.evidence`):

- a novelty weighs its evidence, times 1 more than a third of log2(1 + d) for a value d widths of the band beyond it
  (`Episode.beyond`);
- an incident weighs as much as its heaviest novelty, times 0.4 for a single series and a sixteenth of log2(n) more for
  n series (0.65 for 16, 0.9 for 256); errors in a log count in full, whose writer has judged them, too;
- a machine that has sent nothing weighs 1; so one is `major`, and three, which are no coincidence, are `critical`.

The larger of the last two, w, gives the score 100 w / (1 + w), as evidence gives the score of a novelty.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.incidents.episode import Episode

_ONE, _DOUBLED, _SIZE = 0.4, 1 / 16, 1 / 3
"""Weight of a single series; what each doubling of their number adds; what each doubling of the deviation adds."""


def severity_score(episodes: Sequence[Episode]) -> int:
    """The severity of an incident, 0 to 100.

    >>> far = Episode("a", "m", 0, 1, 1, None, 69.0, actual=5000.0, lower=44.0, upper=56.0)
    >>> severity_score([far]), severity_score([Episode("a", "m", 0, 1, 1, None, 69.0)])
    (78, 47)
    >>> silent = [Episode(name, "_machine", 0, 1, 1, None, 51.0, absent=True) for name in "abc"]
    >>> severity_score(silent[:1]), severity_score(silent)
    (50, 75)
    """
    series = {(e.entity, e.metric) for e in episodes if e.metric != JOINED}
    share = _ONE + _DOUBLED * log2(max(len(series), 1))
    weight = max(weighed(e) * (1.0 if e.error else share) for e in episodes)
    silent = len({e.entity for e in episodes if e.silent})
    return round(points(max(weight, float(silent))))


def points(weight: float) -> float:
    """A weight on the scale from 0 to 100: 50 at 1, 75 at 3, 100 never quite."""
    return 100 * weight / (1 + weight)


def weighed(episode: Episode) -> float:
    """The evidence of an episode's worst verdict, the more, the farther its value lies beyond the band."""
    return episode.evidence * (1 + _SIZE * log2(1 + episode.beyond))
