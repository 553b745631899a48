"""What the topics hold of a series around an instant: bounded reads, of the partition of its machine only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson
import polars as pl
from confluent_kafka import KafkaException

from engine.columns.partitioning import slots
from engine.formats import columnar
from engine.formats.heartbeat import HEARTBEAT
from engine.kafka.admin import partition_counts
from engine.kafka.content import between
from engine.kafka.offsets import KafkaOffsets
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Incident, Label
from pipelines.contracts.records.novelty import judged_metric, sent_metric
from pipelines.contracts.settings import Settings
from pipelines.jobs.detectors.metrics.judging import rows_to_judge
from pipelines.jobs.detectors.rules import effects, withheld
from pipelines.jobs.detectors.rules_in_force import RuleInForce
from pipelines.query import incidents as stored
from pipelines.query import tables
from pipelines.query.control_topics import labels, rules_over_time
from pipelines.query.dead_letters.letters import Letter, letters
from pipelines.query.told import SentMessage, ToldFiles

MOST_MESSAGES = 20_000
"""How many messages of a topic are read at most."""

LOG = "logs"
"""The metric of verdicts on a machine's log."""
_TEMPLATE = "log.template."
_NAMED = 20
_SECONDS = 30.0


@dataclass(frozen=True)
class Evidence:
    """What is known of a series around an instant.

    Attributes:
        machine: The machine.
        metric: The metric.
        start: The instant at which something happened, epoch milliseconds.
        end: Until when it is looked for.
        windows: The windows of the series that overlap this time: judged value, mean, min, max, count.
        watermark: The event time up to which the windows of the machine are complete; ``None``: none are.
        late: Number of samples and windows that came too late to be judged.
        letters: Messages that name the machine and could not be used.
        verdicts: The verdicts on these windows that are stored, by the end of the window.
        belief: What the detector last believed of the series before the end; empty if that is not kept.
        known: Metrics of the machine, or names of machines like it, if the series is not known.
        rules: Ids of the rules that keep one of these windows from being reported.
        labels: The labels of the series or its machine that were given before its end.
        incidents: The incidents with the machine in this time.
        told: Messages that channels took of these incidents.
        complete: False if a topic has more messages than are read.
    """

    machine: str
    metric: str
    start: int
    end: int
    windows: Sequence[Mapping[str, Any]] = ()
    watermark: int | None = None
    late: int = 0
    letters: Sequence[Letter] = ()
    verdicts: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    belief: Mapping[str, Any] = field(default_factory=dict)
    known: Sequence[str] = ()
    rules: Sequence[str] = ()
    labels: Sequence[Label] = ()
    incidents: Sequence[Incident] = ()
    told: Sequence[SentMessage] = ()
    complete: bool = True


def evidence(settings: Settings, machine: str, metric: str, start: int, end: int) -> Evidence:
    """Reads what the topics of a version hold of a series around an instant.

    Args:
        settings: The settings of the version, with the address of Kafka filled in.
        machine: The machine.
        metric: The metric, with the labels if the series has some; also one that only verdicts have, as what is said
            beside its peers (`_peers.`), and of when it is full (`~full`): values and beliefs are those of the metric.
        start: When something happened, epoch milliseconds.
        end: Until when it is looked for, epoch milliseconds.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE``, ``KAFKA_READ_FAILED``; ``USAGE_INVALID`` if a name is no text.
    """
    try:
        f"{machine}{metric}".encode()
    except UnicodeEncodeError:
        what = f"{machine[:60]!r} or {metric[:60]!r} is no UTF-8"
        raise NewnormalError("USAGE_INVALID", what, "machine and metric", "names as they are sent") from None
    reader = _Reader(settings, machine, max(0, start - duration_ms(settings.watermark.max_ahead)))
    until = end + settings.window.open_for_ms
    sent = sent_metric(metric)
    windows, watermark = (_log_windows if sent == LOG else _windows)(reader, machine, sent, start, end, until)
    late = sum(each.height for each in _late(reader, machine, sent, start, end))
    beliefs = [
        each for each in reader.json(topics.STATE, whole=True)
        if each.get("host.name") == machine and "metric" in each and isinstance(each.get("@timestamp"), int)
    ]  # fmt: skip
    mine = [each for each in beliefs if each.get("metric") == sent]
    before = [each for each in mine if each["@timestamp"] <= end] or mine[:1]
    found = [
        each for each in _or_nothing(lambda: stored.incidents(settings))
        if stored.concerns(each, machine) and each.start < end and (each.end is None or each.end > start)
    ]  # fmt: skip
    ids = {each.id for each in found}
    verdicts, belief = _verdicts(reader, machine, metric, start, end), before[-1] if before else {}
    told = ToldFiles(settings.common_folder("notify")).read()
    return Evidence(
        machine, metric, start, end, windows, watermark, late,
        letters=_letters(settings, machine, start) if not windows else (),
        verdicts=verdicts, belief=belief,
        known=sorted({each["metric"] for each in beliefs})[:_NAMED] if not mine else (),
        rules=muting(rules_over_time(settings), [{**each, "metric": metric} for each in windows], verdicts, belief),
        labels=[
            each for each in labels(settings) if each.effective_from < end
            and each.entity == machine and each.metric in (metric, judged_metric(metric), "_machine")
        ],
        incidents=found, told=[each for each in told if ids & set(each.incidents)], complete=reader.complete,
    )  # fmt: skip


class _Reader:
    """Reads the partition of a machine, from the messages on that could hold an event time.

    Args:
        settings: The settings.
        machine: The machine.
        arrived: What Kafka got earlier is not read, epoch milliseconds.

    Attributes:
        complete: False if a topic has more messages than were read.
        reached: The watermark that `until` has come to; ``None``: none yet.
    """

    reached: int | None = None

    def __init__(self, settings: Settings, machine: str, arrived: int) -> None:
        self._settings, self._machine, self._arrived = settings, machine, arrived
        self.complete = True

    def values(self, name: str, *, whole: bool = False) -> Iterator[bytes]:
        """The messages of a topic; of all that it has the newest; of a topic that does not exist none."""
        topic, bootstrap = self._settings.reads(name), self._settings.kafka.bootstrap or ""
        if not partition_counts(bootstrap, [topic], _SECONDS):
            return
        offsets = KafkaOffsets(bootstrap, [topic], _SECONDS)
        try:
            starts, ends = offsets.starts(), offsets.ends()
            since = starts if whole else {**ends, **offsets.since(self._arrived)}
        except (KafkaException, TimeoutError) as error:  # to say that nothing is there would be a wrong answer
            raise NewnormalError("KAFKA_UNREACHABLE", str(error), topic, "a broker that answers") from None
        place = topic, int(slots(pl.Series([self._machine]), len(starts))[0])
        first = max(since[place], starts[place], ends[place] - MOST_MESSAGES if whole else 0)
        self.complete = self.complete and not (whole and first > starts[place])
        span = {place: (first, ends[place])}
        with closing(between(bootstrap, span)) as messages:  # type: ignore[type-var]
            for message in islice(messages, MOST_MESSAGES):
                if (value := message.value()) and value != HEARTBEAT:
                    yield value
            self.complete = self.complete and next(messages, None) is None

    def tables(self, name: str, *, whole: bool = False) -> Iterator[pl.DataFrame]:
        """The records of a columnar topic, a table for each message."""
        for value in self.values(name, whole=whole):
            yield tables.frame(name, [value])[0]

    def until(self, name: str, until: int) -> Iterator[pl.DataFrame]:
        """The tables of a columnar topic, up to the one whose watermark lies behind an instant; notes how far it is."""
        for value in self.values(name):
            mark = columnar.watermark(value)
            if mark is not None and (self.reached is None or mark > self.reached):
                self.reached = mark
            yield tables.frame(name, [value])[0]
            if self.reached is not None and self.reached > until:
                return

    def json(self, name: str, *, whole: bool = False) -> Iterator[dict[str, Any]]:
        """The records of a topic of JSON objects; others are left out, as the sink does."""
        for value in self.values(name, whole=whole):
            with suppress(orjson.JSONDecodeError):
                each = orjson.loads(value)
                if isinstance(each, dict):
                    yield each


def _windows(
    reader: _Reader, machine: str, metric: str, start: int, end: int, until: int
) -> tuple[list[dict[str, Any]], int | None]:
    """The windows of a series within a time, each as its last revision tells it; and the watermark behind them."""
    newest: dict[int, dict[str, Any]] = {}
    for table in reader.until(topics.FEATURES, until):
        rows = table.filter(_of(metric, machine) & _during(start, end))
        if rows.height:
            values = rows_to_judge(rows)["value"]
            for each in rows.with_columns(value=values).sort("count").to_dicts():
                newest[each["window_end"]] = each
    return [newest[at] for at in sorted(newest)], reader.reached


def _log_windows(
    reader: _Reader, machine: str, metric: str, start: int, end: int, until: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Likewise the windows of a machine's log, with the number of their lines: no single value is judged."""
    found: list[pl.DataFrame] = []
    for table in reader.until(topics.LOG_FEATURES, until):
        template = pl.col("metric").cast(pl.String).str.starts_with(_TEMPLATE)
        found.append(
            table.filter(_of_machine(machine) & _during(start, end) & template).select(
                "window_start", "window_end", "count"
            )
        )
    if not found:
        return [], reader.reached
    lines = pl.concat(found).group_by("window_start", "window_end").agg(pl.col("count").sum()).sort("window_end")
    nothing = {"entity": machine, "metric": metric, "value": None}
    return [each | nothing for each in lines.to_dicts()], reader.reached


def _late(reader: _Reader, machine: str, metric: str, start: int, end: int) -> Iterator[pl.DataFrame]:
    """The samples, or lines, and the windows that came too late to be judged."""
    samples, windows = topics.FEATURES_LATE, topics.NOVELTIES_LATE
    if metric == LOG:
        samples, windows = topics.LOGS_LATE, topics.LOG_FEATURES_LATE
    of = _of_machine(machine) if metric == LOG else _of(metric, machine)
    for each in reader.tables(samples):
        yield each.filter(of & pl.col("time").is_between(start, end, "left"))
    for each in reader.tables(windows):
        its = each.filter(of & _during(start, end))
        yield its.unique("window_end") if metric == LOG else its


def _of_machine(machine: str) -> pl.Expr:
    return pl.col("entity").cast(pl.String) == machine


def _of(metric: str, machine: str) -> pl.Expr:
    return _of_machine(machine) & (pl.col("metric").cast(pl.String) == metric)


def _during(start: int, end: int) -> pl.Expr:
    return (pl.col("window_end") > start) & (pl.col("window_start") < end)


def _verdicts(reader: _Reader, machine: str, metric: str, start: int, end: int) -> dict[int, Mapping[str, Any]]:
    newest: dict[int, Mapping[str, Any]] = {}
    for each in reader.json(topics.NOVELTIES):
        if (each.get("host.name"), each.get("metric")) != (machine, metric):
            continue
        at, begin, revision = (each.get(name, 0) for name in ("@timestamp", "window_start", "revision"))
        if not all(type(number) is int for number in (at, begin, revision)) or "kind" not in each:
            continue  # the sink sends it to the dead letters
        if at > start and begin < end and newest.get(at, each).get("revision", 0) <= revision:
            newest[at] = {"record_score": 0.0} | each
    return newest


def _letters(settings: Settings, machine: str, start: int) -> list[Letter]:
    """The dead letters of that time or later that name a machine in what is kept of their payload."""
    return [
        each for each in _or_nothing(lambda: letters(settings))
        if each.letter.time >= start and machine in each.letter.payload
    ][:_NAMED]  # fmt: skip


def muting(
    rules: Sequence[RuleInForce],
    windows: Sequence[Mapping[str, Any]],
    verdicts: Mapping[int, Mapping[str, Any]],
    belief: Mapping[str, Any],
) -> list[str]:
    """The ids of the rules that keep a window from being reported."""
    if not windows:
        return []
    frame = pl.DataFrame(windows, infer_schema_length=None)
    effect = effects(rules, frame)
    if effect is None:
        return []
    typical = [verdicts.get(each["window_end"], belief).get("typical") for each in windows]
    usual = pl.Series(typical, dtype=pl.Float64).fill_null(float("nan")).to_numpy()
    value = frame["value"].fill_null(float("nan")).to_numpy()
    return [
        rule.id
        for rule, concerned in effect.concerned
        if (concerned & (rule.skip_result | withheld(rule, value, usual))).any()
    ]


def _or_nothing(read: Any) -> list[Any]:
    """What is read; nothing if its topic does not exist yet."""
    try:
        return list(read())
    except NewnormalError as error:
        if error.code == "TOPIC_UNKNOWN":
            return []
        raise
