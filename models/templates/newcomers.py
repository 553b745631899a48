"""Newcomers: errors that no entity of the fleet had before, and that come again in the windows after their first.

Most messages that are new come once or a few times: a rare path was taken. An error that comes window after window is
the beginning of something, such as a lost database, and each further window is further evidence of that. Messages that
are new and no errors are left to the other channels: a release brings many, and they go on.
"""

from __future__ import annotations

import numpy as np

from models.numbers.arrays import Array, Columns, Flags, Ints, Rows
from models.templates.config import TemplateConfig

PREFIX = "newcomers."
"""What the names of these columns begin with."""

_WORTH = 10.0
"""Newcomers that the prior of the chance is worth."""

_MOST = 50.0
"""Largest evidence of a newcomer, in nats."""


class Newcomers:
    """Evidence of templates that are new to the fleet and come again.

    The first window of such a template has the evidence of its arrival. Each later window in which it comes adds -ln of
    the chance that a newcomer comes in a window, which is learned from the newcomers of the fleet: where all of them
    come again, that says nothing. A template is a newcomer for `TemplateConfig.newcomer` windows, or until what is
    unusual of its entity has persisted and is learned.

    Args:
        config: The constants.

    >>> newcomers = Newcomers(TemplateConfig())
    >>> pairs, fleets, one = new_pairs(1), new_fleets(1), np.array([0])
    >>> pair, fleet = Rows(pairs, one, PREFIX), Rows(fleets, one, PREFIX)
    >>> newcomers.learn(pair, fleets, one, one, one, np.array([7.0]), np.array([False]))
    >>> for age in (1.0, 2.0, 3.0):
    ...     again = newcomers.nats(pair, fleet, np.array([age]), np.array([4.0]), one, np.array([4.0]))
    ...     newcomers.learn(pair, fleets, one, np.array([age]), again, again, np.array([False]))
    >>> again.round(1)  # 7 nats, and three times -ln of a tenth or a little more
    array([13.8])
    """

    def __init__(self, config: TemplateConfig) -> None:
        self.config = config

    def nats(self, pair: Rows, fleet: Rows, age: Array, count: Array, owner: Ints, errors: Array | None) -> Array:
        """Evidence of the templates that came as newcomers before and come again as errors; 0 of all others.

        Which template has which severity is not known: newcomers count as errors in windows in which their entity has
        at least as many lines of grave severities.

        Args:
            pair: The columns of n pairs of entity and template, with this prefix.
            fleet: The columns of the fleet of each, with this prefix.
            age: Windows since the template came to the entity first; shape (n,).
            count: Lines in this window, shape (n,).
            owner: Number of the entity of each pair, shape (n,).
            errors: Lines of grave severities of each entity, shape (m,); ``None``: none.
        """
        if errors is None:
            return np.zeros(len(count))
        chance = (_WORTH * self.config.comes_again + fleet["came"]) / (_WORTH + fleet["came"] + fleet["missed"])
        comes = self._is_newcomer(pair, age) & (count > 0)
        lines = np.bincount(owner, count * comes, len(errors))
        comes &= (errors >= lines)[owner]
        return np.where(comes, np.minimum(pair["nats"] - np.log(chance), _MOST), 0.0)

    def learn(
        self, pair: Rows, fleets: Columns, fleet: Ints, age: Array, again: Array, nats: Array, over: Flags
    ) -> None:
        """Learns how often newcomers come again, and what is known of each; changes the columns.

        Args:
            pair: See `nats`.
            fleets: The columns of all fleets.
            fleet: Row of the fleet of each pair, shape (n,).
            age: See `nats`.
            again: As from `nats`.
            nats: The same, and for templates that are new to the fleet the evidence of their arrival, if that is enough
                for a score of 50: to come again raises the score of an arrival, and is no alarm by itself; shape (n,).
            over: True where the template is no newcomer any longer, shape (n,).
        """
        counted = self._is_newcomer(pair, age) / max(self.config.newcomer, 1.0)
        keep, size = 1 - self.config.forget, len(fleets[f"{PREFIX}came"])
        for name, flags in (("came", again > 0), ("missed", again <= 0)):
            before: Array = fleets[f"{PREFIX}{name}"].astype(np.float64)
            fleets[f"{PREFIX}{name}"][:] = before * keep + np.bincount(fleet, counted * flags, size)
        pair["nats"] = np.where(over, 0.0, np.maximum(pair["nats"], nats))

    def _is_newcomer(self, pair: Rows, age: Array) -> Flags:
        flags: Flags = (pair["nats"] > 0) & (age <= self.config.newcomer)
        return flags


def new_fleets(n: int) -> Columns:
    """The columns for n fleets of which nothing is known."""
    return {f"{PREFIX}{name}": np.zeros(n) for name in ("came", "missed")}


def new_pairs(n: int) -> Columns:
    """The column for n pairs of entity and template: evidence of a newcomer in nats; 0: it is none."""
    return {f"{PREFIX}nats": np.zeros(n)}
