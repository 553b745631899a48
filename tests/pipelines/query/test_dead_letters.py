"""Dead letters on a real Kafka: counted, shown, and sent again once, without doubling records that were used before."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.columns.partitioning import slots
from engine.formats import columnar
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.kafka.admin import delete_topics, ensure_topics
from engine.kafka.content import content
from engine.runtime import reading
from engine.spec.decoder import Decoder, Messages
from engine.spec.errors import NewnormalError
from engine.spec.source import Source
from pipelines.contracts import topics
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings, load
from pipelines.formats.catalogue import BY_NAME
from pipelines.formats.collectd import CollectdDecoder
from pipelines.formats.influx import InfluxDecoder
from pipelines.formats.measurement import TextRule
from pipelines.formats.rules import Rules
from pipelines.formats.telegraf import TelegrafDecoder
from pipelines.query.dead_letters.again import sendings
from pipelines.query.dead_letters.letters import Letter, LetterFilter, homes, letters, summary
from pipelines.query.dead_letters.readers import Readers
from pipelines.query.dead_letters.retry import Retried, Retry
from pipelines.versions.plan import planned
from pipelines.versions.version import Version

servers = pytest.mark.servers
NOW = int(time.time() * 1000)
T0 = NOW - 60_000
_NAMES = (f"letters{number}." for number in itertools.count(NOW))


def read(
    decoder: Decoder, value: bytes, topic: str = "t", job: str = "normalizer"
) -> tuple[list[Any], list[DeadLetter]]:
    """The values that a job takes from a message, and the letters about the rest."""
    messages = Messages(topic, 0, pa.array([value], pa.binary()), np.zeros(1, np.int64), np.full(1, NOW))
    table, _, dead = reading.read(Source({topic: decoder}, Telemetry), messages, job)
    return table.column("value").to_pylist(), dead


def telegraf(**fields: Any) -> bytes:
    return json.dumps({"fields": fields, "name": "mem", "tags": {"host": "a"}, "timestamp": T0}).encode()


def collectd(*values: list[Any]) -> bytes:
    return json.dumps(
        [
            {
                "values": some, "dstypes": ["gauge"] * len(some), "dsnames": [f"v{at}" for at in range(len(some))],
                "time": T0 / 1000, "host": "a", "plugin": f"p{number}", "type": "t",
            }
            for number, some in enumerate(values)
        ]
    ).encode()  # fmt: skip


def batch(*values: float, entity: str = "a", watermark: int = T0) -> bytes:
    rows = [{"time": T0, "entity": entity, "metric": "m", "value": value, "kind": "gauge"} for value in values]
    return columnar.encode(pa.Table.from_pylist(rows, Telemetry.arrow_schema()), watermark)


PARTLY_REFUSED = {
    "telegraf": (TelegrafDecoder(), telegraf(a=1.0, note="text", b=1e200, ok=True, c=3.0, d=2e200)),
    "collectd": (CollectdDecoder(), collectd([1.0, None, 1e200], [3.0], [2e200])),
    "columnar": (ColumnarDecoder(Telemetry), batch(1.0, 1e200, 3.0, 2e200)),
}


@pytest.mark.parametrize("form", PARTLY_REFUSED)
def test_a_letter_says_which_records_were_refused_and_the_message_is_divided_into_these(form: str) -> None:
    decoder, value = PARTLY_REFUSED[form]
    used, found = read(decoder, value)
    assert used == [1.0, 3.0]
    (letter,) = [each for each in found if each.code != "TEXT_FIELD"]
    assert (letter.code, letter.records, letter.refused) == ("VALUE_INVALID", 4, "1,3")
    part = decoder.only(value, [1, 3])
    assert part is not None
    found = decoder.decode(Messages("t", 0, pa.array([part], pa.binary()), np.zeros(1), np.zeros(1))).records
    assert found.column("value").to_pylist() == [1e200, 2e200]
    assert found.column("entity").to_pylist() == ["a", "a"]


def test_a_part_of_a_columnar_message_promises_no_watermark() -> None:
    part = ColumnarDecoder(Telemetry).only(batch(1.0, 2.0, watermark=T0), [0])
    assert part is not None
    assert columnar.watermark(part) is None


def test_a_message_that_cannot_be_read_is_refused_as_a_whole() -> None:
    _, (letter,) = read(TelegrafDecoder(), b"{")
    assert (letter.records, letter.refused) == (None, None)


BESIDE = {
    "telegraf": (TelegrafDecoder(), telegraf(used=5.0, state="up")),
    "influx": (InfluxDecoder(), b'mem,host=a used=5,state="up"'),
}


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("form", BESIDE)
def test_numbers_that_were_used_beside_a_refused_text_are_not_sent_again(form: str, force: bool) -> None:
    decoder, value = BESIDE[form]
    used, (letter,) = read(decoder, value)
    assert used == [5.0]
    assert (letter.code, letter.records, letter.refused) == ("TEXT_FIELD", 1, "")
    letter = DeadLetter.from_json(letter.to_json())
    left_out = InfluxDecoder(text=TextRule(("mem.state",)))  # the setting that lets the job take the message now
    message = SimpleNamespace(value=lambda: value, key=lambda: None, headers=lambda: None)
    with pytest.raises(NewnormalError) as error:
        sendings(letter, message, Source({"t": left_out}, Telemetry), NOW, force=force)  # type: ignore[arg-type]
    assert error.value.code == "LETTER_USED"


@pytest.mark.parametrize("changed", [{"csv_labels": "slot"}, {"csv_separator": "semicolon"}, {"csv_time": "start"}])
def test_what_is_read_otherwise_since_its_settings_changed_is_not_divided(changed: dict[str, str]) -> None:
    """Positions in the letter are those of the job that refused: with other settings they name other records."""
    value = f"time,host,cpu,slot\n{T0 // 1000},a,1e200,3\n{T0 // 1000},b,2,4\n".encode()
    as_it_was = BY_NAME["csv"].build(Rules())
    _, (letter,) = read(as_it_was, value)
    assert (letter.records, letter.refused) == (4, "0")
    message: Any = SimpleNamespace(value=lambda: value, key=lambda: None, headers=lambda: None)
    (part,) = sendings(letter, message, Source({"t": as_it_was}, Telemetry), NOW, force=True)
    assert b"1e200" in part.value and b"b,2" not in part.value
    now = BY_NAME["csv"].build(Rules.of(load(**{f"input.{name}": to for name, to in changed.items()}).input))
    with pytest.raises(NewnormalError) as error:
        sendings(letter, message, Source({"t": now}, Telemetry), NOW, force=True)
    assert error.value.code == "LETTER_INDIVISIBLE"


def test_a_message_with_nothing_but_text_is_refused_as_a_whole() -> None:
    used, (letter,) = read(TelegrafDecoder(), telegraf(state="up"))
    assert (used, letter.code, letter.records, letter.refused) == ([], "TEXT_FIELD", None, None)


@pytest.fixture
def settings(endpoints: Endpoints, tmp_path: Any) -> Iterator[Settings]:
    """Settings with topics of the test's own, each of two partitions."""
    addresses: dict[str, Any] = {"kafka.bootstrap": endpoints.bootstrap, "kafka.partitions": 2}
    made = load(namespace=next(_NAMES), state_dir=tmp_path, **addresses)
    delete_topics(endpoints.bootstrap, homes(made))  # letters of other tests' own jobs would be among them
    names = (topics.RAW_JSON, topics.RAW_TELEGRAF, topics.TELEMETRY, topics.NOVELTIES, topics.DEADLETTER)
    ensure_topics(endpoints.bootstrap, {made.topic(name): topics.config(name) for name in names}, 2, 1)
    ensure_topics(endpoints.bootstrap, {made.topic(f"{topics.DEADLETTER}-v2"): {}}, 1, 1)
    yield made


def send(settings: Settings, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None) -> None:
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap, "log_level": 0})
    for value in values:
        producer.produce(topic, value, key=key, partition=partition)
    assert producer.flush(30) == 0


def refuse(settings: Settings, job: str, topic: str, home: str, now: int = NOW) -> None:
    """Does what a job does with a topic: writes letters about what it refuses. ``now``: when the messages arrived."""
    source = Readers(settings, []).source(
        DeadLetter(time=0, job=job, code="", reason="", topic=topic, partition=0, offset=0)
    )
    assert source is not None
    for message in content(settings.kafka.bootstrap or "", topic):
        place = (topic, message.partition(), pa.array([message.value()], pa.binary()))
        _, _, dead = reading.read(source, Messages(*place, np.array([message.offset()]), np.array([now])), job)
        send(settings, home, *(letter.to_json() for letter in dead))


def retry(settings: Settings, versions: tuple[Version, ...] = (Version.first(),), **options: bool) -> Retried:
    known = Readers(settings, versions)
    return Retry(settings, known.source, known.others, **options).run(
        lambda: letters(settings), int(time.time() * 1000)
    )


def held(settings: Settings, name: str) -> list[tuple[int | None, bytes]]:
    return [(m.partition(), m.value() or b"") for m in content(settings.kafka.bootstrap or "", settings.topic(name))]


def sample(ahead: int) -> bytes:
    return json.dumps({"@timestamp": NOW + ahead, "host.name": "a", "metric": "m", "value": 1.0}).encode()


def codes(done: Retried) -> list[str]:
    return [error.code for _, error in done.refused]


@servers
def test_a_message_is_sent_again_once_and_its_letter_is_marked(settings: Settings) -> None:
    """The clock of the sender was ahead when the message arrived; by now that time has passed."""
    raw, home = settings.topic(topics.RAW_JSON), settings.topic(topics.DEADLETTER)
    send(settings, raw, sample(0), key=b"a")
    refuse(settings, "normalizer", raw, home, now=NOW - 3_600_000)
    (before,) = letters(settings)
    assert (before.letter.code, before.mark) == ("TIME_AHEAD", None)
    done = retry(settings)
    assert [(each.place, again) for each, again in done.sent] == [(f"{raw}/0@0", f"{raw}/0@1")]
    assert held(settings, topics.RAW_JSON) == [(0, sample(0))] * 2
    again = retry(settings)
    assert (again.sent, codes(again)) == ([], ["LETTER_RETRIED"])
    assert len(held(settings, topics.RAW_JSON)) == 2
    (row,) = summary(letters(settings))
    assert (row["job"], row["code"], row["letters"], row["sent again"]) == ("normalizer", "TIME_AHEAD", 1, 1)
    assert len(retry(settings, force=True).sent) == 1
    assert len(held(settings, topics.RAW_JSON)) == 3


@servers
def test_what_would_be_refused_again_is_not_sent_unless_forced(settings: Settings) -> None:
    raw, home = settings.topic(topics.RAW_JSON), settings.topic(topics.DEADLETTER)
    send(settings, raw, b"{no json", sample(7_200_000))
    refuse(settings, "normalizer", raw, home)
    done = retry(settings)
    assert codes(done) == ["LETTER_STILL_WRONG"] * 2
    assert len(held(settings, topics.RAW_JSON)) == 2
    assert len(retry(settings, force=True).sent) == 2


@servers
def test_only_the_refused_samples_of_a_message_are_sent_again(settings: Settings) -> None:
    raw, home = settings.topic(topics.RAW_TELEGRAF), settings.topic(topics.DEADLETTER)
    send(settings, raw, telegraf(a=1.0, b=1e200))
    refuse(settings, "normalizer", raw, home)
    retry(settings, force=True)
    first, second = (json.loads(value)["fields"] for _, value in held(settings, topics.RAW_TELEGRAF))
    assert (first, second) == ({"a": 1.0, "b": 1e200}, {"b": 1e200})


@servers
def test_records_in_the_wrong_partition_are_sent_to_that_of_their_key(settings: Settings) -> None:
    names = [f"host-{at}" for at in range(6)]
    rows = [{"time": T0, "entity": name, "metric": "m", "value": 1.0, "kind": "gauge"} for name in names]
    astray = [name for name, slot in zip(names, slots(pa.chunked_array([names]), 2), strict=True) if slot == 1]
    topic, home = settings.topic(topics.TELEMETRY), settings.topic(topics.DEADLETTER)
    send(settings, topic, columnar.encode(pa.Table.from_pylist(rows, Telemetry.arrow_schema()), T0))
    refuse(settings, "extractor", topic, home)
    assert len(retry(settings).sent) == 1
    decoded = {p: columnar.decode(v, Telemetry.arrow_schema())[0] for p, v in held(settings, topics.TELEMETRY)}
    assert 0 < len(astray) < 6
    assert decoded[1].column("entity").to_pylist() == astray


@servers
def test_a_message_that_another_job_has_used_is_not_sent(settings: Settings) -> None:
    """v2 reads the topic of agents too. What only v1 refused would count twice in v2; what both refused counts once."""
    second = planned("v2", Version.first(), "normalizer", None, None, {}, NOW)
    versions = (Version.first(), second)
    raw, home = settings.topic(topics.RAW_JSON), settings.topic(topics.DEADLETTER)
    other = settings.topic(f"{topics.DEADLETTER}-v2")
    send(settings, raw, sample(0))
    refuse(settings, "normalizer", raw, home, now=NOW - 3_600_000)
    assert codes(retry(settings, versions)) == ["LETTER_SHARED"]
    refuse(settings, "normalizer", raw, other, now=NOW - 3_600_000)
    assert len(retry(settings, versions).sent) == 1
    assert codes(retry(settings.of(second.names), versions)) == ["LETTER_RETRIED"]
    assert len(held(settings, topics.RAW_JSON)) == 2


@servers
def test_a_letter_whose_message_was_deleted_says_so(settings: Settings) -> None:
    place = {"topic": settings.topic(topics.RAW_JSON), "partition": 0, "offset": 7}
    letter = DeadLetter(time=NOW, job="normalizer", code="TIME_AHEAD", reason="", records=1, refused="0", **place)  # type: ignore[arg-type]
    send(settings, settings.topic(topics.DEADLETTER), letter.to_json())
    assert codes(retry(settings)) == ["LETTER_GONE"]


@servers
def test_a_letter_of_the_sink_is_sent_into_the_topic_of_verdicts(settings: Settings) -> None:
    """The sink keeps one document of each identity and revision, so a second message has no effect where it worked."""
    topic = settings.topic(topics.NOVELTIES)
    send(settings, topic, b'{"host.name": "a"}', partition=1)
    letter = DeadLetter(time=NOW, job="sink", code="DOCUMENT_REFUSED", reason="", topic=topic, partition=1, offset=0)
    send(settings, settings.topic(topics.DEADLETTER), letter.to_json())
    assert len(retry(settings).sent) == 1
    assert held(settings, topics.NOVELTIES) == [(1, b'{"host.name": "a"}')] * 2


@servers
def test_letters_of_own_jobs_are_among_them_and_their_partly_used_messages_need_the_file(settings: Settings) -> None:
    name = f"{settings.namespace.rstrip('.')}own"
    topic, home = f"{name}.in", f"{name}.deadletter"
    ensure_topics(settings.kafka.bootstrap or "", {topic: {}, home: {}}, 1, 1)
    send(settings, topic, b"whole", b"part")
    common = {"time": NOW, "job": name, "code": "VALUE_INVALID", "reason": "", "topic": topic, "partition": 0}
    whole, part = DeadLetter(**common, offset=0), DeadLetter(**common, offset=1, records=3, refused="0-1")  # type: ignore[arg-type]
    send(settings, home, whole.to_json(), part.to_json())
    found: list[Letter] = LetterFilter(jobs=(name,)).of(letters(settings))
    assert [each.home for each in found] == [home, home]
    known = Readers(settings, [Version.first()])
    done = Retry(settings, known.source, known.others).run(lambda: found, NOW)
    assert [each.letter.offset for each, _ in done.sent] == [0]
    assert codes(done) == ["LETTER_INDIVISIBLE"]
