"""How the panes of one window relate (Akidau et al., "The Dataflow Model", VLDB 2015, section 2.3)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Accumulation:
    """What a pane holds."""


@dataclass(frozen=True)
class Discarding(Accumulation):
    """The records since the last pane; one without records is not emitted. The sum of all panes is the result."""


@dataclass(frozen=True)
class Accumulating(Accumulation):
    """All records of the window so far. The last pane is the result."""


ACCUMULATING = Accumulating()
"""What panes are unless said otherwise."""


@dataclass(frozen=True)
class AccumulatingAndRetracting(Accumulation):
    """All records so far, and ahead of it the row before once more with ``retraction`` true: to be taken back.

    So a consumer that groups results otherwise can subtract, and a session that was merged into another goes away.
    """
