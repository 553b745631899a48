"""The state of the log models of a shard: tables by key, and an example of each template."""

from __future__ import annotations

import numpy as np
import polars as pl

from models.arrays import Columns, Flags, Ints, prefixed
from models.feedback import Feedback
from models.templates.model import Templates
from models.templates.phases import ABSENT, Phases
from models.templates.tables import TemplateTables, new_fleets, new_pairs, new_templates
from pipelines.jobs.detect.reported import new_column
from pipelines.jobs.detect.state_table import StateTable, as_frame
from pipelines.jobs.mine_logs.mining import SEVERITY

METRIC = "logs"
"""The metric of the verdicts on a machine's log."""

VIEWS = ("template", "severity")
TEMPLATES, SEVERITIES = range(2)
_KEPT_MS = 7 * 86_400_000
"""A machine without a line for so long is forgotten."""

_TEXTS = {"metric": pl.String, "template": pl.String, "example": pl.String}


def view_of(metric: str) -> int:
    """Which of `VIEWS` a log metric belongs to."""
    return SEVERITIES if metric.startswith(SEVERITY) else TEMPLATES


class LogState:
    """Tables that grow; rows are handed out in order of first appearance.

    Args:
        model: Whose columns they hold.
        phases: Likewise.
        feedback: Likewise.

    Attributes:
        judged: End of the last window judged, epoch milliseconds; ``None`` at first.
        texts: Of each log metric its template, and the newest example.
        worst: Of the unrest of each machine that may be a change of state, the verdict on its worst window so far.
    """

    def __init__(self, model: Templates, phases: Phases, feedback: Feedback) -> None:
        def machines(n: int) -> Columns:
            said = prefixed("feedback.", feedback.new_state(n))
            return phases.new_state(n) | said | {"last": np.zeros(n, np.int64)} | new_column(n)

        def entities(n: int) -> Columns:
            return model.new_tables(entities=n).entities | {
                name: np.zeros(n, np.int64) for name in ("fleet", "machine")
            }

        def pairs(n: int) -> Columns:
            return new_pairs(n) | {name: np.zeros(n, np.int64) for name in ("owner", "template")}

        self.machines, self.entities = StateTable(("entity",), machines), StateTable(("entity", "view"), entities)
        self.templates, self.pairs = StateTable(("metric",), new_templates), StateTable(("entity", "metric"), pairs)
        self.fleets = StateTable(("view",), new_fleets)
        self.judged: int | None = None
        self.texts: dict[str, tuple[str | None, str | None]] = {}
        self.worst = pl.DataFrame()

    @property
    def named(self) -> dict[str, StateTable]:
        """The tables by name."""
        names = ("machines", "entities", "templates", "pairs", "fleets")
        return {name: getattr(self, name) for name in names}

    def tables(self) -> TemplateTables:
        """The tables in the form that the model takes."""
        self.fleets.rows((view,) for view in VIEWS)
        parts = (self.fleets, self.entities, self.templates, self.pairs)
        return TemplateTables(*(part.columns for part in parts))

    def take(self, part: pl.DataFrame) -> Ints:
        """Adds rows for what is new in a window; returns the row of the pair of each of its counts."""
        known = len(self.pairs), len(self.machines)
        keys = part.select("entity", "metric").rows()
        pairs = self.pairs.rows(keys)
        names = list(dict.fromkeys(entity for entity, _ in keys))
        self.machines.rows((name,) for name in names)
        both = [(name, view) for (name,) in self.machines.keys()[known[1] :] for view in VIEWS]
        rows = self.entities.rows(both)
        self.entities.columns["fleet"][rows] = np.tile([TEMPLATES, SEVERITIES], len(both) // 2)
        self.entities.columns["machine"][rows] = np.repeat(np.arange(known[1], len(self.machines)), 2)
        new = self.pairs.keys()[known[0] :]
        at = np.arange(known[0], len(self.pairs))
        owners = self.entities.rows((entity, VIEWS[view_of(metric)]) for entity, metric in new)
        self.pairs.columns["owner"][at] = owners
        self.pairs.columns["template"][at] = self.templates.rows((metric,) for _, metric in new)
        for metric, template, example in part.select("metric", "template", "example").iter_rows():
            self.texts[metric] = template, example
        return pairs

    def has_active(self) -> bool:
        """Whether any machine is known and not absent."""
        return bool((self.machines.columns["phase"][: len(self.machines)] != ABSENT).any())

    def active(self, pairs: Ints) -> Ints:
        """Rows of the entities that are judged in a window: not absent, or with lines in it."""
        machine: Ints = self.entities.columns["machine"][: len(self.entities)].astype(np.int64)
        with_lines = np.zeros(len(self.machines), np.bool_)
        owner: Ints = self.pairs.columns["owner"].astype(np.int64)[pairs]
        with_lines[machine[owner]] = True
        phase = self.machines.columns["phase"][: len(self.machines)]
        return np.flatnonzero((with_lines | (phase != ABSENT))[machine])

    def tidy(self, faint: Flags, now: int) -> None:
        """Drops machines that have long been silent and pairs that are as good as unseen.

        Args:
            faint: As from `Templates.faint`, for all rows of the pairs.
            now: End of the last window.
        """
        last = self.machines.columns["last"][: len(self.machines)].astype(np.int64)
        machine = self.entities.columns["machine"][: len(self.entities)].astype(np.int64)
        owner = self.pairs.columns["owner"][: len(self.pairs)].astype(np.int64)
        machines = last > now - _KEPT_MS
        entities = machines[machine]
        pairs = entities[owner] & ~faint[: len(self.pairs)]
        self.machines = self.machines.where(machines)
        self.entities, self.pairs = self.entities.where(entities), self.pairs.where(pairs)
        self.entities.columns["machine"] = (np.cumsum(machines) - 1)[self.entities.columns["machine"].astype(np.int64)]
        self.pairs.columns["owner"] = (np.cumsum(entities) - 1)[self.pairs.columns["owner"].astype(np.int64)]

    def to_frames(self) -> dict[str, pl.DataFrame]:
        """Everything, as tables by name."""
        frames = {name: as_frame(table.to_arrow()) for name, table in self.named.items()}
        rows = [(metric, *text) for metric, text in self.texts.items()]
        judged = pl.DataFrame({"end": [self.judged]}, {"end": pl.Int64})
        frames |= {"worst": self.worst} if self.worst.height else {}
        return frames | {"texts": pl.DataFrame(rows, _TEXTS, orient="row"), "judged": judged}

    def fill(self, frames: dict[str, pl.DataFrame]) -> None:
        """Inverse of `to_frames`, into an empty state.

        Raises:
            NewnormalError: ``STATE_INVALID`` if a table is not of this kind.
        """
        for name, table in self.named.items():
            table.fill(frames[name].to_arrow())
        self.texts = {metric: (template, example) for metric, template, example in frames["texts"].iter_rows()}
        self.judged = frames["judged"]["end"][0]
        self.worst = frames.get("worst", self.worst)
