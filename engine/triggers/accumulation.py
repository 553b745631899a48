"""How the panes of one window relate (Akidau et al., "The Dataflow Model", VLDB 2015, section 2.3)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Accumulation:
    """How the panes of one window relate to each other."""


@dataclass(frozen=True)
class Discarding(Accumulation):
    """A pane holds the records since the last pane. The sum of all panes is the result; no pane is empty."""


@dataclass(frozen=True)
class Accumulating(Accumulation):
    """A pane holds all records of the window so far. The last pane is the result."""


ACCUMULATING = Accumulating()
"""The default accumulation."""


@dataclass(frozen=True)
class AccumulatingAndRetracting(Accumulation):
    """A pane holds all records so far; before it the previous row is written once more with ``retraction`` true.

    A consumer that aggregates results further subtracts the retracted row. Sessions that were merged into another one
    are retracted too.
    """
