"""Writes what operators say to its topic, and reads it from there: rules, labels, changes, placements.

Commands and the console write through this module, so that a message that is refused is refused before it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import TypeVar

import orjson
from confluent_kafka import KafkaError, Message, Producer

from engine.address import kafka_options
from engine.kafka import content as kafka_content
from engine.kafka.admin import ensure_topics
from engine.spec.duration import duration_ms, epoch_ms
from engine.spec.errors import NewnormalError
from engine.spec.record import Record
from pipelines.contracts import topics
from pipelines.contracts.records import Acknowledgement, Change, InferredPlacement, Label, Placement, Rule
from pipelines.contracts.records.site_messages import together
from pipelines.contracts.settings import Settings
from pipelines.jobs.detectors.rules_in_force import RuleInForce, begins, standing
from pipelines.jobs.operator_messages import OperatorMessage, accepted, invalid_code
from pipelines.jobs.sources import bounds

_SECONDS = 30.0
_NOTHING = "nothing was written"
LATEST = 253_402_300_799_999
"""The last instant of the year 9999, which is the last that `iso` can write."""
_PAGES = {Rule: "docs/rules.md", Label: "docs/rules.md", Change: "docs/changes.md"}
_TOPICS: dict[type[Record], str] = {
    Rule: topics.RULES,
    Label: topics.LABELS,
    Acknowledgement: topics.ACKNOWLEDGEMENTS,
    Placement: topics.TOPOLOGY,
    InferredPlacement: topics.PLACES,
    Change: topics.CHANGES,
}
R = TypeVar("R", Rule, Label, Acknowledgement, Placement, InferredPlacement, Change)
P = TypeVar("P", Placement, InferredPlacement)


def checked(record: type[R], fields: Mapping[str, object], settings: Settings, now: int) -> R:
    """Makes a record from the fields that an operator gave, and checks it; absent fields get their defaults.

    Args:
        record: `Rule`, `Label`, `Acknowledgement`, `Placement` or `Change`.
        fields: Values by the name of the field in Python or JSON; ``None`` means absent.
        settings: The settings; they bound the event times that are accepted.
        now: The present, epoch milliseconds.

    Raises:
        NewnormalError: ``RULE_INVALID``, ``LABEL_INVALID``, ``ACKNOWLEDGEMENT_INVALID``, ``PLACEMENT_INVALID`` or
            ``CHANGE_INVALID``, ``TIME_AHEAD``, ``TIME_TOO_EARLY`` or ``TIME_UNIT``: the code with which the job would
            reject the record.
    """
    name, nothing = record.__name__.lower(), _NOTHING
    try:
        if any(isinstance(value, float) and not isfinite(value) for value in fields.values()):
            raise TypeError  # orjson would write nothing in its place: a rule without its limit
        raw = orjson.dumps({key: value for key, value in fields.items() if value is not None})
        parsed = accepted(record, raw)
    except TypeError:
        what = "it has a text or number that JSON cannot hold"
        raise NewnormalError(invalid_code(record), what, name, "UTF-8, and numbers of 64 bits", nothing) from None
    except NewnormalError as error:
        raise NewnormalError(error.code, error.what, name, f"see {_page(record)}", nothing) from None
    if refusal := bounds(settings).refusal(parsed.effective_from, now, "--at"):
        raise NewnormalError(*refusal, name, f"the present or a past time, see {_page(record)}", nothing)
    return parsed


def instant(text: str | None, now: int, where: str) -> int | None:
    """Reads an instant: ISO 8601, ``now``, or a time from now such as ``+2h`` or ``-10m``; returns epoch milliseconds.

    Args:
        text: The text; ``None`` gives ``None``.
        now: The present, epoch milliseconds.
        where: The option that holds the text, for error messages.

    Raises:
        NewnormalError: If the text is no such instant.

    >>> instant("now", 5, "--from"), instant("+1m", 5, "--from"), instant("-5ms", 5, "--from"), instant(None, 5, "")
    (5, 60005, 0, None)
    """
    if text is None or text == "now":
        return None if text is None else now
    relative = text[:1] in ("+", "-")
    found = now + (1 if text[0] == "+" else -1) * duration_ms(text[1:], where) if relative else epoch_ms(text)
    if not 0 <= found <= LATEST:
        raise NewnormalError("TIME_INVALID", f"{text[:60]!r} lies outside of all calendars", where, "1970 to 9999")
    return found


def write(settings: Settings, *records: OperatorMessage) -> None:
    """Writes records to their topic, and waits until Kafka has accepted them; creates the topic if it does not exist.

    Args:
        settings: The settings, with the address of Kafka filled in.
        records: The records, at least one; all of one type.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE``, or ``NOTICE_NOT_WRITTEN`` if Kafka does not accept a record.
    """
    bootstrap, name = settings.kafka.bootstrap or "", topic_of(type(records[0]))
    topic = settings.topic(name)
    ensure_topics(bootstrap, {topic: topics.config(name)}, settings.kafka.partitions, settings.kafka.replication)
    answers: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        answers.append(error)

    options = {
        "message.timeout.ms": int(_SECONDS * 1000),
        "queue.buffering.max.messages": max(len(records), 1_000),
        "partitioner": "murmur2_random",  # as all other writers: a key has one partition
    }
    producer = Producer({**kafka_options(bootstrap), "log_level": 0, **options})
    for record in records:
        producer.produce(topic, record.to_json(), key=_key(record), on_delivery=delivered)
    if producer.flush(_SECONDS) or any(answers):
        why = next((error.str() for error in answers if error), f"no answer within {_SECONDS:g} s")
        done = sum(error is None for error in answers)
        now = f"{done} of {len(records)} were written; it does no harm to write these again" if done else _NOTHING
        raise NewnormalError("NOTICE_NOT_WRITTEN", why, topic, "a reachable broker", now)


def rules(settings: Settings) -> list[Rule]:
    """The newest version of each rule that is not withdrawn, sorted by id."""
    newest: dict[str, Rule] = {}
    for rule in sorted(_written(settings, Rule), key=lambda rule: (rule.time, rule.to_json())):
        newest[rule.id] = rule
    return [newest[name] for name in sorted(newest) if newest[name].active]


def withdrawn(settings: Settings, name: str, when: int, now: int) -> Rule:
    """The record that withdraws a rule.

    Args:
        settings: The settings, with the address of Kafka filled in.
        name: Name of the rule.
        when: From when on, epoch milliseconds; not before the rule was given.
        now: The present, epoch milliseconds.

    Raises:
        NewnormalError: ``RULE_UNKNOWN`` if there is no such rule; as `checked`.
    """
    known = {rule.id: rule for rule in rules(settings)}
    if name not in known:
        accepted = ", ".join(known) or "nothing: there are no rules"
        raise NewnormalError("RULE_UNKNOWN", f"there is no rule {name}", "rule remove", accepted, "nothing changed")
    old = known[name]
    fields = {"id": name, "time": max(when, old.time + 1), "active": False, "entity": old.entity, "metric": old.metric}
    return checked(Rule, fields, settings, now)


def rules_in_force(settings: Settings, now: int) -> list[Rule]:
    """The rules of `rules`, and the older versions that are in force, each with its end; sorted by id and time.

    Args:
        settings: The settings, with the address of Kafka filled in.
        now: The present, epoch milliseconds.
    """
    written, newest = _written(settings, Rule), rules(settings)
    older = [
        each.rule.model_copy(update={"end": each.end})
        for each in standing((begins(rule), rule) for rule in written)
        if each.rule.active and each.start <= now < each.end and each.rule not in newest
    ]
    return sorted([*newest, *older], key=lambda rule: (rule.id, rule.time))


def rules_over_time(settings: Settings) -> list[RuleInForce]:
    """All versions of rules, each with the time in which it is or was in force, as the detector takes them."""
    written = standing((begins(rule), rule) for rule in _written(settings, Rule))
    return [each for each in written if each.rule.active and each.start < each.end]


def labels(settings: Settings) -> list[Label]:
    """All labels, sorted by their start; if a novelty has several labels, only the last one."""
    newest: dict[tuple[str, str, int], Label] = {}
    for label in all_labels(settings):
        newest[label.entity, label.metric, label.start] = label
    return sorted(newest.values(), key=lambda label: (label.start, label.entity, label.metric))


def all_labels(settings: Settings) -> list[Label]:
    """All labels, as the detector takes them: several on one novelty count each."""
    return sorted(_written(settings, Label), key=lambda label: (label.effective_from, label.to_json()))


def placements(settings: Settings) -> dict[str, Placement]:
    """The last placement of each machine that a person gave, also where it says that it has no place any more."""
    return _last_places(settings, Placement)


def inferred_placements(settings: Settings) -> dict[str, InferredPlacement]:
    """The last placement of each machine that telemetry told, likewise."""
    return _last_places(settings, InferredPlacement)


def all_placements(settings: Settings) -> dict[str, Placement]:
    """The placement of each machine as the incidents job takes it: what people say, and else what telemetry tells."""
    said, inferred = placements(settings), inferred_placements(settings)
    return {name: together(said.get(name), inferred.get(name)) for name in sorted(said.keys() | inferred.keys())}


def _last_places(settings: Settings, record: type[P]) -> dict[str, P]:
    found = sorted(_written(settings, record), key=lambda each: (each.time, each.to_json()))
    return {each.entity: each for each in found}


def changes(settings: Settings) -> list[Change]:
    """The changes of the site, the oldest first; of those with one id the last one."""
    found = sorted(_written(settings, Change), key=lambda each: (each.time, each.to_json()))
    return sorted({each.id: each for each in found}.values(), key=lambda each: (each.time, each.id))


def acknowledgements(settings: Settings) -> list[Acknowledgement]:
    """What operators have said of incidents, the oldest first; of older ones Kafka keeps the last of each incident."""
    return sorted(_written(settings, Acknowledgement), key=lambda each: (each.time, each.to_json()))


def save(labels: list[Label], out: Path) -> None:
    """Writes labels to a file as JSON lines, for `newnormal evaluate`."""
    out.write_bytes(b"".join(label.to_json() + b"\n" for label in labels))


def topic_of(record: type[Record]) -> str:
    """The topic of a record type, without the namespace."""
    return _TOPICS[record]


def _key(record: OperatorMessage) -> bytes:
    """The key of the message. Topics are compacted: of rules and labels all stay, of the others the last one."""
    if isinstance(record, Acknowledgement):
        return record.incident.encode()
    if isinstance(record, Placement):
        return record.entity.encode()
    if isinstance(record, Change):
        return record.id.encode()
    return orjson.dumps([record.effective_from, *(getattr(record, name) for name in record.identity)])


def _page(record: type[Record]) -> str:
    return _PAGES.get(record, "docs/incidents.md")


def _written(settings: Settings, record: type[R]) -> list[R]:
    try:
        values = kafka_content.values(settings.kafka.bootstrap or "", settings.topic(topic_of(record)))
    except NewnormalError as error:
        if error.code == "TOPIC_UNKNOWN":
            return []
        raise
    found = []
    for value in values:
        with suppress(NewnormalError):  # a heartbeat, or a message that the detector rejects
            found.append(accepted(record, value))
    return found
