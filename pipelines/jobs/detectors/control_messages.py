"""Control messages: the rules and labels of operators. They are the second input of the detectors.

The input carries rules and labels to all shards, each as JSON text in a column. A shard keeps the control messages that
may still affect a window.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import polars as pl
import structlog

from engine.spec.errors import NewnormalError
from engine.spec.record import Instant, Record
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from pipelines.contracts.records import Label, Rule
from pipelines.jobs.detectors.rules_in_force import RuleInForce, begins, standing
from pipelines.jobs.detectors.said_ends import SaidEnds
from pipelines.jobs.operator_messages import accepted

_NOTE = "notices"
_RECORDED = 86_400_000
_COLUMNS = ("rule", "label", "change")
R = TypeVar("R", Rule, Label)
log = structlog.get_logger()


class ControlMessage(Record):
    """A rule, a label, or a change that ends machines, on its way to the shards."""

    identity: ClassVar[tuple[str, ...]] = ("window_end",)

    window_end: Instant
    """Event time. It has the name of the event-time column of the features, because both are inputs of one job."""
    rule: str | None = None
    label: str | None = None
    change: str | None = None
    came: Instant | None = None
    """When Kafka took the message in."""


@dataclass(frozen=True)
class LabelDue:
    """A label, and the event times (epoch milliseconds) of its effects: after the windows that end up to then.

    Attributes:
        label: The label.
        takes_effect: When it takes effect. If that is before the watermark, windows are judged again.
        beside: When it takes effect on what is said beside peers, of which nothing is judged again: not before Kafka
            took it in, which the watermark has not passed when it is read. So a replay finds the same. A label of more
            than `_RECORDED` before it came is one of recorded data, whose times have nothing to do with Kafka's.
    """

    label: Label
    takes_effect: int
    beside: int = -1


@dataclass
class ControlMessages:
    """The rules and labels of a shard that may still affect a window; kept as a note in the shard's state.

    Args:
        state: The state of the shard.

    Attributes:
        versions: Each version of a rule with the event time from which on it is in force, epoch milliseconds.
        late: When versions of rules arrived that came too late, by their JSON, epoch milliseconds: they count as given
            then.
        labels: The labels, with the event time of their effect.
        ends: Which machines were ended on purpose; those that came with this micro-batch are new.
    """

    state: ShardState
    versions: list[tuple[int, Rule]] = field(init=False)
    late: dict[str, int] = field(init=False)
    labels: list[LabelDue] = field(init=False)
    ends: SaidEnds = field(init=False)

    def __post_init__(self) -> None:
        kept = self.state.notes.get(_NOTE, {})
        self.versions = [(start, rule) for start, text in kept.get("rules", []) for rule in _kept(Rule, text)]
        self.late = {text: at for at, text in kept.get("late", [])}
        self.labels = [
            LabelDue(label, at, beside[0] if beside else at)
            for at, text, *beside in kept.get("labels", [])
            for label in _kept(Label, text)
        ]
        self.ends = SaidEnds(kept, self.state)

    def take(
        self, news: pl.DataFrame, base: int, before: int, now: int
    ) -> tuple[list[tuple[int, Rule]], list[LabelDue]]:
        """Adds control messages that have arrived; those already known are ignored.

        A message whose effect would begin so early that it changes windows which cannot be judged again takes effect at
        the watermark instead.

        Args:
            news: The messages: columns ``rule``, ``label`` and perhaps ``change``, JSON text or null.
            base: Windows that end at this instant or earlier cannot be judged again, epoch milliseconds.
            before: The watermark before this micro-batch, epoch milliseconds.
            now: The watermark after it.

        Returns:
            The new rules, each with the instant from which on it may change verdicts: it is in force, or replaces an
            older version; and the new labels.
        """
        self.ends.take(news, now)
        if not news.height:
            return [], []
        held = {rule.to_json() for _, rule in self.versions} | {due.label.to_json() for due in self.labels}
        texts = [sorted(set(news[name].drop_nulls().to_list())) for name in ("rule", "label")]
        rules = [Rule.from_json(text) for text in texts[0] if text.encode() not in held]
        versions = [(start if (start := begins(rule)) >= base else before, rule) for rule in rules]
        self.late |= {rule.to_json().decode(): before for rule in rules if rule.time < base}
        came = _came(news)
        labels = [(Label.from_json(text), came.get(text, 0)) for text in texts[1] if text.encode() not in held]
        dues = [_due(label, came, base, before) for label, came in labels]
        self.versions += versions
        self.labels += dues
        replaced = Counter(rule.id for _, rule in self.versions)
        changed = [
            (min(start, self._given(rule)) if replaced[rule.id] > 1 else start, rule) for start, rule in versions
        ]
        return changed, dues

    def globs(self, name: str) -> set[str]:
        """The globs of machines of all versions of the rule with an id."""
        return {rule.entity for _, rule in self.versions if rule.id == name}

    def in_force(self) -> list[RuleInForce]:
        """All versions of rules with the time in which they are in force; see `rules_in_force`."""
        versions = [each for each in standing(self.versions, self._given) if each.rule.active and each.start < each.end]
        return sorted(versions, key=lambda r: (r.rule.id, r.rule.time, r.rule.to_json()))

    def _given(self, rule: Rule) -> int:
        return self.late.get(rule.to_json().decode(), rule.time)

    def due(self, after: int, until: int) -> list[LabelDue]:
        """The labels that take effect in (after, until], epoch milliseconds, in the order of their effect."""
        return sorted(
            (d for d in self.labels if after < d.takes_effect <= until),
            key=lambda d: (d.takes_effect, d.label.to_json()),
        )

    def due_beside(self, after: int, until: int) -> list[LabelDue]:
        """Likewise those that take effect on what is said beside peers."""
        return sorted(
            (d for d in self.labels if after < d.beside <= until), key=lambda d: (d.beside, d.label.to_json())
        )  # fmt: skip

    @staticmethod
    def rescale(states: Rescaling) -> None:
        """Gives the new shards of a job the rules and labels that the old ones know."""

        def merged(parts: list[dict[str, list[list[Any]]]]) -> dict[str, list[list[Any]]]:
            return {
                name: [list(row) for row in dict.fromkeys(tuple(row) for each in parts for row in each.get(name, []))]
                for name in ("rules", "labels", "late", "ends", "endings")
            }

        states.note(_NOTE, merged)
        SaidEnds.rescale(states)

    def save(self, base: int) -> None:
        """Keeps in the state only the rules and labels that may still affect windows that end after ``base``."""
        versions = reversed(standing(self.versions, self._given))
        self.versions = [(r.start, r.rule) for r in versions if r.start > base or (r.rule.active and r.end > base)]
        self.labels = [due for due in self.labels if max(due.takes_effect, due.beside) > base]
        rules = [[start, rule.to_json().decode()] for start, rule in self.versions]
        labels = [[due.takes_effect, due.label.to_json().decode(), due.beside] for due in self.labels]
        ends = self.ends.kept(base)
        if rules or labels or any(ends.values()):
            late = [[self.late[text], text] for _, text in rules if text in self.late]
            self.state.notes[_NOTE] = {"rules": rules, "labels": labels, "late": late, **ends}
        else:
            self.state.notes.pop(_NOTE, None)


def split(batch: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Splits a batch of both inputs into (features, control messages)."""
    columns = [name for name in _COLUMNS if name in batch.columns]
    if not columns:
        return batch, pl.DataFrame()
    is_control = batch.select(pl.any_horizontal(pl.col(columns).is_not_null())).to_series()
    every = [*columns, *({"came"} & set(batch.columns))]
    if not is_control.any():
        return batch.drop(every), pl.DataFrame()
    return batch.filter(~is_control).drop(every), batch.filter(is_control).select(every)


def _came(news: pl.DataFrame) -> dict[str, int]:
    """When Kafka first took in each of the labels that are new, epoch milliseconds."""
    if "came" not in news.columns:
        return {}
    return dict(news.drop_nulls(["label", "came"]).group_by("label").agg(pl.col("came").cast(pl.Int64).min()).rows())


def _due(label: Label, came: int, base: int, before: int) -> LabelDue:
    at = label.effective_from
    beside = came if at < came <= at + _RECORDED else at
    return LabelDue(label, at if at > base else before, max(beside, before + 1))


def _kept(record: type[R], text: str) -> list[R]:
    """Reads a rule or label from the state; an empty list if this version refuses what an older one accepted."""
    try:
        return [accepted(record, text.encode())]
    except NewnormalError as error:
        log.warning("ignoring a rule or label that an older version accepted", code=error.code, reason=error.what)
        return []
