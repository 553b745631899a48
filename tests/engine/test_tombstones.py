"""A compacted topic of JSON: a message with a key and without a value is a record of that key without anything else."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from engine import Instant, Record, Stream, TemporalJoin
from engine.formats.heartbeat import HEARTBEAT
from engine.kafka.binding import COMPACTED, READ
from engine.runtime.intake import KAFKA
from engine.spec.decoder import TOMBSTONE
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from engine.testing.driven import Driven
from tests.engine.advertisements import T0, Ad, View


class Needing(Record):
    time: Instant
    ad: str
    campaign: str


class Numbered(Record):
    time: Instant
    ad: int


def joined() -> Job:
    ads = Stream.read_json("ads", Ad, tombstones="ad")
    return Stream.read_json("views", View).key_by("ad").join(ads, TemporalJoin()).write("o")


def kafka(topic: str, *messages: tuple[int, bytes]) -> pa.Table:
    rows = [(value, topic, 0, T0 + at, T0 + at) for at, value in messages]
    return pa.Table.from_pylist([dict(zip(KAFKA.names, row, strict=True)) for row in rows], KAFKA)


def test_a_tombstone_deletes_its_key_from_its_arrival_on() -> None:
    ad = b'{"time": %d, "ad": "x", "campaign": "p"}' % (T0 + 5)
    views = [(at, b'{"time": %d, "ad": "x"}' % (T0 + at)) for at in (4, 5, 19, 20, 99)]
    ads = kafka("ads", (10, ad), (20, TOMBSTONE + b"x"), (21, TOMBSTONE + "å".encode()), (99, HEARTBEAT))
    end = [kafka("ads", (200, ad.replace(b"%d" % (T0 + 5), b"%d" % (T0 + 200)).replace(b'"x"', b'"y"')))]
    end.append(kafka("views", (200, b'{"time": %d, "ad": "y"}' % (T0 + 200))))
    run = Driven(joined()).kafka([ads, kafka("views", *views)]).kafka(end)
    assert [(row["time"] - T0, row["campaign"]) for row in run.rows] == [(5, "p"), (19, "p")]
    assert not run.dead


def test_a_tombstone_whose_key_is_no_text_is_a_dead_letter() -> None:
    run = Driven(joined()).kafka([kafka("ads", (1, TOMBSTONE + b"\xff"), (2, TOMBSTONE + b"x"))])
    assert [letter["error.code"] for letter in run.dead] == ["JSON_MALFORMED"]


@pytest.mark.parametrize(
    ("record", "key", "code"),
    [(Ad, "no_such", "COLUMN_UNKNOWN"), (Needing, "ad", "RECORD_INVALID"), (Numbered, "ad", "RECORD_INVALID")],
)
def test_a_record_type_that_no_tombstone_fits_is_refused(record: Any, key: str, code: str) -> None:
    with pytest.raises(NewnormalError) as refused:
        Stream.read_json("ads", record, tombstones=key)
    assert refused.value.code == code


def test_only_the_topic_with_tombstones_is_created_compacted() -> None:
    assert joined().compacted == {"ads"}
    assert READ.keys().isdisjoint(COMPACTED)
