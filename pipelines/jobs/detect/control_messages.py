"""Control messages: the rules and labels that operators send, a second input of the detectors beside the features.

One input carries both to all shards; each message is one JSON text in a column. A shard keeps those that may still
affect a window.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import orjson
import polars as pl
import pyarrow as pa
import structlog
from pydantic import ValidationError

from engine.formats.dead_letters import payload_text
from engine.formats.json_decoder import JSON_MALFORMED
from engine.formats.refusals import explain
from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from engine.spec.duration import END_OF_TIME
from engine.spec.errors import NewnormalError
from engine.spec.record import Instant, Record
from engine.state.segments import ShardState
from pipelines.contracts.records import Label, Rule

LARGEST_CONTROL_MESSAGE = 65_536
"""Bytes of a rule or label at the most: it goes into the state of each shard."""

_NOTE = "notices"
R = TypeVar("R", bound=Record)
log = structlog.get_logger()


class ControlMessage(Record):
    """A rule or a label on its way to the shards."""

    identity: ClassVar[tuple[str, ...]] = ("window_end",)

    window_end: Instant
    """Event time. It has the name of the event-time column of the features, because both are inputs of one job."""
    rule: str | None = None
    label: str | None = None


def invalid_code(record: type[Record]) -> str:
    """The error code for a message that is not a valid rule, or not a valid label."""
    return "RULE_INVALID" if issubclass(record, Rule) else "LABEL_INVALID"


def accepted(record: type[R], raw: bytes | None) -> R:
    """The rule or label in a message: the one check for the jobs that apply it and the commands that write it.

    Raises:
        NewnormalError: ``JSON_MALFORMED``, ``RULE_INVALID`` or ``LABEL_INVALID``.
    """
    name = record.__name__.lower()
    if not raw:
        what = f"an empty message (a tombstone) says nothing; a {name} is withdrawn by a later one"
        raise NewnormalError(JSON_MALFORMED, what)
    if len(raw) > LARGEST_CONTROL_MESSAGE:
        raise NewnormalError(
            invalid_code(record), f"a message of {len(raw)} bytes; accepted: at most {LARGEST_CONTROL_MESSAGE}"
        )
    try:
        return record.model_validate(orjson.loads(raw))
    except ValidationError as error:
        raise NewnormalError(invalid_code(record), explain(error, record)) from None
    except ValueError as error:
        raise NewnormalError(JSON_MALFORMED, f"{error}: {payload_text(raw)[:80]}") from None


@dataclass(frozen=True)
class ControlMessageDecoder(Decoder):
    """JSON objects of one type, checked whole; refused are ``JSON_MALFORMED``, ``RULE_INVALID``, ``LABEL_INVALID``.

    Args:
        record: `Rule` or `Label`.
    """

    record: type[Rule] | type[Label]

    def decode(self, messages: Messages) -> Decoded:
        name = self.record.__name__.lower()
        rows, refused = [], []
        for row, value in enumerate(messages.values.to_pylist()):
            try:
                said = accepted(self.record, value)
            except NewnormalError as error:
                refused.append((row, error.code, error.what))
            else:
                rows.append({"window_end": said.said, name: said.to_json().decode(), ROW: row})
        schema = ControlMessage.arrow_schema().append(pa.field(ROW, pa.int32()))
        return Decoded(pa.Table.from_pylist(rows, schema), refused)


@dataclass(frozen=True)
class RuleInForce:
    """A version of a rule, and when it is in force: from ``start`` until ``end``, epoch milliseconds."""

    rule: Rule
    start: int
    end: int


@dataclass(frozen=True)
class LabelDue:
    """A label, and the instant (epoch milliseconds) after whose windows it takes effect."""

    label: Label
    takes_effect: int


@dataclass
class ControlMessages:
    """The rules and labels that may still matter to a window, as a note in the state of a shard.

    Args:
        state: The shard's state.
    """

    state: ShardState
    versions: list[tuple[int, Rule]] = field(init=False)
    labels: list[LabelDue] = field(init=False)

    def __post_init__(self) -> None:
        kept = self.state.notes.get(_NOTE, {})
        self.versions = [(start, rule) for start, text in kept.get("rules", []) for rule in _kept(Rule, text)]
        self.labels = [LabelDue(label, at) for at, text in kept.get("labels", []) for label in _kept(Label, text)]

    def take(self, news: pl.DataFrame, base: int, before: int) -> tuple[list[tuple[int, Rule]], list[LabelDue]]:
        """Takes in what arrived, once; of what would change windows that cannot be judged again it counts from now on.

        Args:
            news: Columns ``rule`` and ``label``.
            base: Windows up to this instant are not judged again.
            before: The watermark so far.

        Returns:
            The rules that are new, with their beginnings, and the labels that are.
        """
        if not news.height:
            return [], []
        known = {rule.to_json() for _, rule in self.versions} | {due.label.to_json() for due in self.labels}
        texts = [sorted(set(news[name].drop_nulls().to_list())) for name in ("rule", "label")]
        rules = [Rule.from_json(text) for text in texts[0] if text.encode() not in known]
        begins = [max(rule.time, rule.time if rule.start is None else rule.start) for rule in rules]
        versions = [(start if start >= base else before, rule) for start, rule in zip(begins, rules, strict=True)]
        labels = [Label.from_json(text) for text in texts[1] if text.encode() not in known]
        dues = [LabelDue(label, label.said if label.said > base else before) for label in labels]
        self.versions += versions
        self.labels += dues
        return versions, dues

    def globs(self, name: str) -> set[str]:
        """The machines that any version of a rule is about, as globs."""
        return {rule.entity for _, rule in self.versions if rule.id == name}

    def in_force(self) -> list[RuleInForce]:
        """All versions of rules that are ever in force; a newer version of an id ends the older ones at its start."""
        result, until = [], dict[str, int]()
        for start, rule in sorted(self.versions, key=lambda v: (v[1].time, v[1].to_json()), reverse=True):
            end = min(END_OF_TIME if rule.end is None else rule.end, until.get(rule.id, END_OF_TIME))
            until[rule.id] = min(start, until.get(rule.id, END_OF_TIME))
            if rule.active and start < end:
                result.append(RuleInForce(rule, start, end))
        return sorted(result, key=lambda r: (r.rule.id, r.rule.time, r.rule.to_json()))

    def due(self, after: int, until: int) -> list[LabelDue]:
        """The labels that take effect in (after, until], in order."""
        return sorted(
            (d for d in self.labels if after < d.takes_effect <= until),
            key=lambda d: (d.takes_effect, d.label.to_json()),
        )

    def save(self, base: int) -> None:
        """Keeps the rules and labels that may still affect windows that end after ``base``."""
        in_force = {(r.rule.id, r.rule.time) for r in self.in_force() if r.end > base}
        self.versions = [
            (start, rule) for start, rule in self.versions if start > base or (rule.id, rule.time) in in_force
        ]
        self.labels = [due for due in self.labels if due.takes_effect > base]
        rules = [[start, rule.to_json().decode()] for start, rule in self.versions]
        labels = [[due.takes_effect, due.label.to_json().decode()] for due in self.labels]
        if rules or labels:
            self.state.notes[_NOTE] = {"rules": rules, "labels": labels}
        else:
            self.state.notes.pop(_NOTE, None)


def split(batch: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The features of a batch, and its control messages."""
    if "rule" not in batch.columns:
        return batch, pl.DataFrame()
    said = batch["rule"].is_not_null() | batch["label"].is_not_null()
    if not said.any():
        return batch.drop("rule", "label"), pl.DataFrame()
    return batch.filter(~said).drop("rule", "label"), batch.filter(said).select("rule", "label")


def _kept(record: type[R], text: str) -> list[R]:
    """A rule or label read from the state; an empty list if an older version accepted what this one refuses."""
    try:
        return [accepted(record, text.encode())]
    except NewnormalError as error:
        log.warning("a rule or label of an older version is left out", code=error.code, reason=error.what)
        return []
