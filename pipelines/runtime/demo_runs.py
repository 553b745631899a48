"""The runs of the demo that share a state directory: they are one simulation, which goes on at each start."""

from __future__ import annotations

import json
from pathlib import Path

from datagen.simulator.config import DEMO_HISTORY_MS
from engine.spec.duration import iso
from pipelines.contracts.records import Rule


class Runs:
    """The earlier runs of the demo, and how far they came; kept in a file.

    The site goes on from the earlier runs, with the time between as further history, unless the last one ended before
    the history of a new demo begins. Then the site starts anew: nothing is known of the time between.

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
        self.earlier: tuple[int, ...] = tuple(known.get("runs", ())) if goes_on else ()

    def reach(self, until: int) -> None:
        """Notes how far this run has come, so that the next one goes on from there even if this one is killed."""
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps({"runs": [*self.earlier, self.now], "until": until}))
        part.replace(self.file)

    def pause(self, machine: str) -> Rule | None:
        """The rule that nobody is told of the silence between the last run and this one; ``None`` without a pause.

        Args:
            machine: This machine, whose agent is stopped between the runs. If the site starts anew, all machines are
                silent until its history begins.
        """
        end = self.now if self.earlier else self.now - DEMO_HISTORY_MS
        if self.until is None or self.until >= end:
            return None
        return Rule(
            id=f"demo-pause-{iso(self.until)}",
            time=self.until,
            entity=machine if self.earlier else "*",
            start=self.until,
            end=end,
            skip_result=True,
            note="newnormal demo was stopped",
        )
