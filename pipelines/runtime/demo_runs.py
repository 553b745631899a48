"""The runs of the demo that share a state directory: they are one simulation, which goes on at each start."""

from __future__ import annotations

import json
from pathlib import Path

from datagen.simulator.config import DEMO_HISTORY_MS, DEMO_LIVE_VMS
from engine.files import write_whole
from engine.spec.duration import iso
from pipelines.contracts.records import Rule

_SIMULATED = ("host-???", "vm-?????")
"""Globs of the names of the simulated machines."""

_MOST = 60
"""The most earlier runs from which one goes on: each is computed again."""


class Runs:
    """The earlier runs of the demo, and how far they came; kept in a file.

    The site goes on from the earlier runs, with the time between as further history, unless the last one ended before
    the history of a new demo begins. Then the site starts anew: nothing is known of the time between. Of many runs the
    oldest are forgotten, as many at a time as change places with each other: then counters begin later, as after a
    reboot, and each run that is left has its surge and its outage on the machines on which they were.

    Args:
        file: The file.
        now: Instant at which the live part of this run begins, epoch milliseconds.

    Attributes:
        earlier: Instants at which the live parts of the runs began from which this one goes on, epoch milliseconds.
        until: The instant up to which earlier runs sent what arrived, epoch milliseconds; ``None`` without an earlier
            run.
    """

    def __init__(self, file: Path, now: int) -> None:
        self.file, self.now = file, now
        known = json.loads(file.read_text()) if file.exists() else {}
        self.until: int | None = known.get("until")
        goes_on = self.until is not None and self.until > now - DEMO_HISTORY_MS
        earlier = tuple(known.get("runs", ())) if goes_on else ()
        turns = len(DEMO_LIVE_VMS)
        self.earlier: tuple[int, ...] = earlier[-(-max(0, len(earlier) - _MOST) // turns) * turns :]

    def reach(self, until: int) -> None:
        """Notes how far this run has come, so that the next one goes on from there even if this one is killed."""
        write_whole(self.file, json.dumps({"runs": [*self.earlier, self.now], "until": until}))

    def pause(self, machine: str) -> list[Rule]:
        """The rules that nobody is told of the silence between the last run and this one; empty without a pause.

        Args:
            machine: This machine, whose agent is stopped between the runs. If the site starts anew, the simulated
                machines are silent too, until its history begins. Other machines, which are no part of the demo, are
                not muted.
        """
        if self.until is None or self.until >= self.now:
            return []
        until = self.until
        muted = {machine: self.now}
        if not self.earlier:
            muted |= dict.fromkeys(_SIMULATED, self.now - DEMO_HISTORY_MS)
        return [
            Rule(
                id=f"demo-pause-{iso(until)}-{name}",
                time=until,
                entity=name,
                start=until,
                end=end,
                skip_result=True,
                note="newnormal demo was stopped",
            )
            for name, end in muted.items()
        ]
