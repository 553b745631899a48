"""The state of the log models of a shard: tables by key, and the text and an example of each template."""

from __future__ import annotations

import numpy as np
import polars as pl

from models.evidence.repeats import NEVER
from models.numbers.arrays import Columns, Flags, Ints, prefixed
from models.series.feedback import Feedback
from models.templates.model import Templates
from models.templates.phases import ABSENT, Phases
from models.templates.tables import TemplateTables, new_fleets, new_pairs, new_templates
from pipelines.jobs.detectors.reported import new_column
from pipelines.jobs.detectors.state_table import StateTable, as_frame
from pipelines.jobs.templates.mining import SEVERITY

METRIC = "logs"
"""The metric of the verdicts on a machine's log."""

VIEWS = ("template", "severity")
TEMPLATES, SEVERITIES = range(2)
_TEMPLATES = 5
"""A template is kept for so many times as long as a machine: what is logged once a month is not new each time."""

_TEXTS = {"metric": pl.String, "template": pl.String, "example": pl.String, "severity": pl.Int64}


def view_of(metric: str) -> int:
    """The index in `VIEWS` of the view to which a log metric belongs."""
    return SEVERITIES if metric.startswith(SEVERITY) else TEMPLATES


class LogState:
    """The tables of the log models; keys get rows in order of first appearance.

    Args:
        model: The model of templates and severities; it defines columns of the tables.
        phases: The model of incidents; it defines columns of machines.
        feedback: The model of operators' feedback; it defines columns of machines.

    Attributes:
        judged_until: End of the last window that was judged, epoch milliseconds; ``None`` before the first.
        texts: For each log metric its template, the newest example, and the syslog severity of its newest window;
            ``None`` for what is not known, as state that an earlier version wrote has no severities.
        worst: For each machine with an incident, or one that may begin, the verdict on its worst window so far.
    """

    def __init__(self, model: Templates, phases: Phases, feedback: Feedback) -> None:
        def machines(n: int) -> Columns:
            feedback_columns = prefixed("feedback.", feedback.new_state(n))
            return phases.new_state(n) | feedback_columns | {"last": np.zeros(n, np.int64)} | new_column(n)

        def entities(n: int) -> Columns:
            return model.new_tables(entities=n).entities | {
                name: np.zeros(n, np.int64) for name in ("fleet", "machine")
            }

        def templates(n: int) -> Columns:
            return new_templates(n) | {"last": np.full(n, NEVER, np.int64)}

        def pairs(n: int) -> Columns:
            return new_pairs(n) | {name: np.zeros(n, np.int64) for name in ("owner", "template")}

        self.machines, self.entities = StateTable(("entity",), machines), StateTable(("entity", "view"), entities)
        self.templates, self.pairs = StateTable(("metric",), templates), StateTable(("entity", "metric"), pairs)
        self.fleets = StateTable(("view",), new_fleets)
        self.judged_until: int | None = None
        self.texts: dict[str, tuple[str | None, str | None, int | None]] = {}
        self.worst = pl.DataFrame()

    @property
    def named(self) -> dict[str, StateTable]:
        """The tables by name."""
        names = ("machines", "entities", "templates", "pairs", "fleets")
        return {name: getattr(self, name) for name in names}

    def tables(self) -> TemplateTables:
        """The tables in the form that the model expects."""
        if not len(self.fleets):
            self.fleets.rows((view,) for view in VIEWS)
        parts = (self.fleets, self.entities, self.templates, self.pairs)
        return TemplateTables(*(part.columns for part in parts))

    def take(self, part: pl.DataFrame) -> Ints:
        """Adds rows for machines, templates and pairs that are new in a window.

        Args:
            part: The counts of the window: columns ``entity``, ``metric``, ``window_end``, ``template``, ``example``,
                and perhaps ``severity``.

        Returns:
            For each count the row of its pair of machine and metric, shape (n,).
        """
        before = len(self.pairs)
        pairs = self.pairs.rows(part)
        if len(self.pairs) > before:
            self._begin(np.arange(before, len(self.pairs)))
        templates = self.pairs.columns["template"][pairs].astype(np.int64)
        self.templates.columns["last"][templates] = part["window_end"].to_numpy()
        for metric, *text in _texts(part).iter_rows():
            self.texts[metric] = tuple(text)
        return pairs

    def _begin(self, pairs: Ints) -> None:
        """Adds what new pairs are of: machines, their two views, and templates; says of each pair whose it is."""
        before, keys = len(self.machines), self.pairs.names_of(pairs)
        self.machines.rows((name,) for name in dict.fromkeys(entity for entity, _ in keys))
        machines = np.arange(before, len(self.machines))
        both = [(name, view) for (name,) in self.machines.names_of(machines) for view in VIEWS]
        rows = self.entities.rows(both)
        self.entities.columns["fleet"][rows] = np.tile([TEMPLATES, SEVERITIES], len(machines))
        self.entities.columns["machine"][rows] = np.repeat(machines, 2)
        owners = self.entities.rows((entity, VIEWS[view_of(metric)]) for entity, metric in keys)
        self.pairs.columns["owner"][pairs] = owners
        self.pairs.columns["template"][pairs] = self.templates.rows((metric,) for _, metric in keys)

    def has_active(self) -> bool:
        """True if any machine is known and not absent."""
        return bool((self.machines.columns["phase"][: len(self.machines)] != ABSENT).any())

    def active(self, pairs: Ints) -> Ints:
        """The rows of ``entities`` that are judged in a window: machines that are not absent, or have lines in it.

        Args:
            pairs: Rows of the pairs with lines in the window.
        """
        machine: Ints = self.entities.columns["machine"][: len(self.entities)].astype(np.int64)
        with_lines = np.zeros(len(self.machines), np.bool_)
        owner: Ints = self.pairs.columns["owner"].astype(np.int64)[pairs]
        with_lines[machine[owner]] = True
        phase = self.machines.columns["phase"][: len(self.machines)]
        return np.flatnonzero((with_lines | (phase != ABSENT))[machine])

    def tidy(self, faint: Flags, now: int, after: int) -> None:
        """Removes machines that have been silent for long, pairs whose counts have faded away, and old templates.

        Args:
            faint: Flags of the faded pairs, as from `Templates.faint`.
            now: End of the last window, epoch milliseconds.
            after: How long machines are kept that write no line, milliseconds.
        """
        last = self.machines.columns["last"][: len(self.machines)].astype(np.int64)
        machine = self.entities.columns["machine"][: len(self.entities)].astype(np.int64)
        owner = self.pairs.columns["owner"][: len(self.pairs)].astype(np.int64)
        machines = last > now - after
        entities = machines[machine]
        pairs = entities[owner] & ~faint[: len(self.pairs)]
        self.machines = self.machines.where(machines)
        self.entities, self.pairs = self.entities.where(entities), self.pairs.where(pairs)
        self.entities.columns["machine"] = (np.cumsum(machines) - 1)[self.entities.columns["machine"].astype(np.int64)]
        self.pairs.columns["owner"] = (np.cumsum(entities) - 1)[self.pairs.columns["owner"].astype(np.int64)]
        self._tidy_templates(now - _TEMPLATES * after)

    def _tidy_templates(self, since: int) -> None:
        template: Ints = self.pairs.columns["template"][: len(self.pairs)].astype(np.int64)
        last: Ints = self.templates.columns["last"][: len(self.templates)]  # type: ignore[assignment]
        last[last == NEVER] = self.judged_until or 0  # an earlier version did not note it
        kept = last > since
        kept[template] = True
        if kept.all():
            return
        self.templates = self.templates.where(kept)
        self.pairs.columns["template"][: len(self.pairs)] = (np.cumsum(kept) - 1)[template]
        known = set(self.templates.index.keys["metric"])
        self.texts = {metric: text for metric, text in self.texts.items() if metric in known}

    def join(self, other: LogState, chosen: Flags) -> None:
        """Adds some machines of another state, whose machines this one does not have.

        Templates that this state knows already, and what machines of one kind have in common, stay as they are here.

        Args:
            other: The other state.
            chosen: Flags of its machines.
        """
        machine = other.entities.columns["machine"][: len(other.entities)].astype(np.int64)
        entities = chosen[machine]
        owner = other.pairs.columns["owner"][: len(other.pairs)].astype(np.int64)
        template = other.pairs.columns["template"][: len(other.pairs)].astype(np.int64)
        pairs = entities[owner]
        templates, machines = other.templates.keys(), other.machines.keys()
        names = [name for (name,) in templates]
        fresh = ~self.templates.has((name,) for name in names)
        self.templates.replace(other.templates.where(fresh))
        if not len(self.fleets):
            self.fleets.replace(other.fleets)
        at_machines, at_entities, at_pairs = len(self.machines), len(self.entities), len(self.pairs)
        self.machines.replace(other.machines.where(chosen))
        self.entities.replace(other.entities.where(entities))
        self.pairs.replace(other.pairs.where(pairs))
        places = (np.cumsum(chosen) - 1 + at_machines)[machine[entities]]
        self.entities.columns["machine"][at_entities : len(self.entities)] = places
        own = slice(at_pairs, len(self.pairs))
        self.pairs.columns["owner"][own] = (np.cumsum(entities) - 1 + at_entities)[owner[pairs]]
        self.pairs.columns["template"][own] = self.templates.rows((names[row],) for row in template[pairs])
        self.texts = other.texts | self.texts
        ends = [state.judged_until for state in (self, other) if state.judged_until is not None]
        self.judged_until = max(ends, default=None)
        kept = [name for (name,), mine in zip(machines, chosen, strict=True) if mine]
        worst = other.worst.filter(pl.col("entity").is_in(kept)) if other.worst.height else other.worst
        frames = [frame for frame in (self.worst, worst) if frame.height]
        self.worst = pl.concat(frames, how="diagonal_relaxed") if frames else self.worst

    def to_frames(self) -> dict[str, pl.DataFrame]:
        """The whole state, as frames by name."""
        frames = {name: as_frame(table.to_arrow()) for name, table in self.named.items()}
        rows = [(metric, *text) for metric, text in self.texts.items()]
        judged = pl.DataFrame({"end": [self.judged_until]}, {"end": pl.Int64})
        frames |= {"worst": self.worst} if self.worst.height else {}
        return frames | {"texts": pl.DataFrame(rows, _TEXTS, orient="row"), "judged": judged}

    def fill(self, frames: dict[str, pl.DataFrame]) -> None:
        """The inverse of `to_frames`; this state must be empty.

        Raises:
            NewnormalError: ``STATE_INVALID`` if a frame does not fit its table.
        """
        for name, table in self.named.items():
            table.fill(frames[name].to_arrow())
        self.texts = {metric: tuple(text) for metric, *text in _texts(frames["texts"]).iter_rows()}
        self.judged_until = frames["judged"]["end"][0]
        self.worst = frames.get("worst", self.worst)


def _texts(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns `_TEXTS` of a frame; the severity is null where there is none."""
    severity = "severity" if "severity" in frame.columns else pl.lit(None, pl.Int64).alias("severity")
    return frame.select("metric", "template", "example", severity)
