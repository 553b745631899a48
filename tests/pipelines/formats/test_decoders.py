"""What agents really write is read; what nobody should write is a dead letter and harms no neighbour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.formats.dead_letters import DeadLetter
from engine.formats.heartbeat import HEARTBEAT
from engine.formats.instants import instant, instants
from engine.formats.json_decoder import JsonDecoder
from engine.runtime import reading
from engine.spec.decoder import Decoder, Messages
from engine.spec.source import Source
from pipelines.contracts.records import Telemetry
from pipelines.formats.collectd import CollectdDecoder
from pipelines.formats.telegraf import TelegrafDecoder

SAMPLES = Path(__file__).parents[4] / "shared" / "samples"
T0 = 1_795_220_820_013
DECODERS: dict[str, Decoder] = {
    "json": JsonDecoder(Telemetry),
    "telegraf": TelegrafDecoder(),
    "collectd": CollectdDecoder(),
}


def read(form: str, values: list[bytes | None]) -> tuple[list[dict[str, Any]], list[DeadLetter]]:
    n = len(values)
    messages = Messages(form, 0, pa.array(values, pa.binary()), np.arange(n), np.full(n, T0 + 60_000))
    table, _, dead = reading.read(Source(DECODERS, Telemetry), messages, "normalizer")
    table.validate(full=True)
    assert table.schema.equals(Telemetry.arrow_schema())
    return table.to_pylist(), dead


def line(**changed: Any) -> bytes:
    fields = {"@timestamp": T0, "host.name": "a", "metric": "m", "value": 1.5, "kind": "gauge"}
    return json.dumps({k: v for k, v in (fields | changed).items() if v is not ...}).encode()


HOSTILE: list[bytes | None] = [
    None,
    b"",
    b" ",
    b"{",
    b"}{",
    b"{}",
    b"[]",
    b"null",
    b"1",
    b'"text"',
    b"\xff\xfe",
    b"\x00" * 100,
    b"[" * 100_000,
    b'{"a":' * 100_000,
    line() + b"," + line(),
    line() + line(),
    line() + b"\n" + line(),
    line() + b"}",
    b"{" + line(),
    line()[:-1],
    line(**{"@timestamp": T0 + 0.5}),
    line(**{"@timestamp": 0}),
    line(**{"@timestamp": 4_102_444_800_000}),
    line(**{"@timestamp": 10**23}),
    line(**{"@timestamp": -(10**23)}),
    line(**{"@timestamp": "soon"}),
    line(**{"@timestamp": None}),
    line(**{"@timestamp": ...}),
    line(**{"host.name": ""}),
    line(**{"host.name": "x" * 513}),
    line(**{"host.name": {"a": 1}}),
    line(**{"host.name": ["a"]}),
    line(**{"host.name": None}),
    line(metric=""),
    line(metric=...),
    line(value=1e200),
    line(value=float("nan")),
    line(value=float("inf")),
    line(value="x"),
    line(value="1.5"),
    line(value=True),
    line(value=False),
    line(**{"@timestamp": True}),
    line(**{"@timestamp": "2026-02-30T00:00:00Z"}),
    line(**{"@timestamp": "2026-11-21"}),
    line(**{"@timestamp": "٣"}),
    line(**{"kind": ..., "Kind": "counter"}),
    line(**{"kind": ..., "knd": "counter"}),
    line(**{"host.name": ..., "entity": "a"}),
    line(value=[1]),
    line(value=None),
    line(metric=0.0),
    line(metric=True),
    line(**{"host.name": 5}),
    line().replace(b'"metric": "m"', b'"m\\u0065tric": 7'),
    line(kind="zzz"),
    line(kind=3),
    b'{"@timestamp":1795220820013,"host.name":"\\ud800","metric":"m","value":1}',
]
GOOD = [
    line(),
    line(value=-3),
    line(value=0),
    line(value=1e-300),
    line(kind=...),
    line(kind="counter"),
    line(kind=None),
    line(extra={"deep": [1, {"x": 2}]}),
    line(**{"host.name": 'häst\u2028\\"{}[],\n'}),
    b"  " + line() + b"\r\n",
    line(**{"host.name": "x" * 512}),
    line(value=123456789.123456789),
    line(**{"@timestamp": float(T0)}),
    line(**{"@timestamp": str(T0)}),
    line(**{"@timestamp": "2026-11-21T00:27:00.013Z"}),
    line(**{"@timestamp": "2026-11-21T01:27:00.013999999+01:00"}),
    line(**{"@timestamp": "2026-11-21 00:27"}),
    line(**{"@timestamp": "2026-11-21T00:27:00.5"}),
    line(**{"kind": ..., "wind": 3}),
    line(knd="another"),
    line(value=2**60 + 1),
    line(**{"host.name": "\U0001f600"}),
]


@pytest.mark.parametrize("bad", HOSTILE, ids=lambda b: repr(b)[:40])
def test_a_hostile_message_is_one_dead_letter_and_nothing_else(bad: bytes | None) -> None:
    rows, dead = read("json", [line(), bad, line(value=2)])
    assert [row["value"] for row in rows] == [1.5, 2.0]
    assert [letter.offset for letter in dead] == [1]
    assert dead[0].reason


@pytest.mark.parametrize("form", ["telegraf", "collectd"])
@pytest.mark.parametrize("bad", HOSTILE, ids=lambda b: repr(b)[:40])
def test_agents_formats_survive_hostile_messages_too(form: str, bad: bytes | None) -> None:
    rows, dead = read(form, [bad])
    assert rows == []
    assert len(dead) == (0 if (form, bad) == ("collectd", b"[]") else 1)


numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**18), 10**18)
odd_numbers = st.sampled_from(["1e5", "+1", " 1 ", "0x10", "1_000", "inf", "nan", "-0", ".5", "5.", "1.0", "٣"])
others = st.none() | st.booleans() | st.lists(st.integers(), max_size=2)
values = st.one_of(numbers, odd_numbers, st.text(max_size=5), others)
texts = st.text(st.characters(codec="utf-8"), max_size=10)
messages = st.one_of(
    st.sampled_from(GOOD),
    st.builds(lambda e, m, v: line(**{"host.name": e, "metric": m, "value": v}), texts, texts, numbers),
    st.builds(lambda name, v: line(**{name: v}), st.sampled_from(["@timestamp", "metric", "value", "kind"]), values),
)


US, NS = T0 * 1_000, T0 * 1_000_000


@pytest.mark.parametrize(
    ("bad", "code", "telling"),
    [
        (line(**{"@timestamp": T0 // 1_000}), "TIME_UNIT", "looks like seconds; epoch milliseconds are expected"),
        (line(**{"@timestamp": T0 / 1_000}), "FIELD_INVALID", "looks like seconds; epoch milliseconds are expected"),
        (line(**{"@timestamp": US}), "TIME_UNIT", "looks like microseconds; epoch milliseconds are expected"),
        (line(**{"@timestamp": NS}), "FIELD_INVALID", "looks like nanoseconds; epoch milliseconds are expected"),
        (line(**{"@timestamp": T0 - 10**12}), "TIME_TOO_EARLY", "a wrong clock"),
        (line(**{"@timestamp": T0 + 10**9}), "TIME_AHEAD", "a wrong clock"),
        (line(**{"@timestamp": "gestern"}), "FIELD_INVALID", "@timestamp: 'gestern' is no time; accepted: epoch"),
        (line(value="1.5"), "FIELD_INVALID", "value: '1.5' is text; accepted: a number, without quotes"),
        (line(value=True), "FIELD_INVALID", "value: 'True' is a flag; accepted: a number"),
        (
            line(**{"host.name": ..., "host": "a", "tags": []}), "FIELD_INVALID",
            "host.name is missing; 'host' is not a field of telemetry: did you mean host.name?; 'tags' is not a field",
        ),
        (line(**{"kind": ..., "Kind": "counter"}), "FIELD_INVALID", "'Kind' is not a field of telemetry: did you mean"),
    ],
    ids=lambda value: repr(value)[:60],
)  # fmt: skip
def test_the_reason_says_what_was_probably_meant(bad: bytes, code: str, telling: str) -> None:
    rows, (letter,) = read("json", [line(), bad])
    assert len(rows) == 1
    assert letter.code == code
    assert telling in letter.reason


@pytest.mark.parametrize(("stamp", "time"), [(T0, T0), (T0 // 1_000, T0 // 1_000 * 1_000), (US, T0), (NS, T0)])
def test_telegrafs_clock_may_be_in_seconds_milliseconds_microseconds_or_nanoseconds(stamp: int, time: int) -> None:
    message = json.loads(AGENTS["telegraf"]) | {"timestamp": stamp}
    rows, dead = read("telegraf", [json.dumps(message).encode()])
    assert {row["time"] for row in rows} == {time}
    assert dead == []


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("1970-01-01T00:00:00.001Z", 1),
        ("2026-11-21T00:27:00Z", 1_795_220_820_000),
        ("2026-11-21T00:27:00.0139Z", 1_795_220_820_013),
        ("2026-11-21T00:27:00.013999999Z", 1_795_220_820_013),
        ("2026-11-21T02:27:00+02:00", 1_795_220_820_000),
        ("2026-11-20T23:57:00-00:30", 1_795_220_820_000),
        ("2026-11-21 00:27:00", 1_795_220_820_000),
        ("2026-11-21T00:27Z", 1_795_220_820_000),
        ("2026-11-21T00:27:00,013Z", 1_795_220_820_013),
        ("1795220820013", 1_795_220_820_013),
    ],
)
def test_a_time_as_text_is_the_same_instant_alone_and_among_others(text: str, since: int) -> None:
    decoder, value = JsonDecoder(Telemetry), line(**{"@timestamp": text})
    for values in ([value], [value] * 3, [line(), value], [value, b"{"]):
        n = len(values)
        decoded = decoder.decode(Messages("json", 0, pa.array(values, pa.binary()), np.arange(n), np.zeros(n)))
        found = [row["time"] for row in decoded.records.to_pylist() if row["time"] != T0 or since == T0]
        assert set(found) == {since}


instants_as_text = st.builds(
    lambda when, mark, zone: when.isoformat().replace("T", mark) + zone,
    st.datetimes(),
    st.sampled_from(["T", " ", "t", "_"]),
    st.sampled_from(["", "Z", "z", "+01:00", "-23:59", "+0530", "+24:00", " UTC"]),
)


@settings(deadline=None, max_examples=200)
@given(text=instants_as_text | st.text(max_size=12) | st.integers().map(str))
def test_a_text_that_is_read_by_the_column_is_read_the_same_one_by_one(text: str) -> None:
    fast = pl.Series([text]).to_frame("t").select(instants(pl.col("t"))).item()
    if fast is not None:
        assert fast == instant(text)


@settings(deadline=None, max_examples=60)
@given(some=st.lists(messages, min_size=1, max_size=8), bad=st.lists(st.sampled_from(HOSTILE), max_size=2))
def test_a_message_means_the_same_whatever_its_neighbours(some: list[bytes], bad: list[bytes | None]) -> None:
    alone = [read("json", [value]) for value in some]
    rows, dead = read("json", [*some, *bad])
    assert rows == [row for found, _ in alone for row in found]
    refused = [i for i, (_, letters) in enumerate(alone) if letters]
    assert sorted({letter.offset for letter in dead}) == [*refused, *range(len(some), len(some) + len(bad))]


@pytest.mark.parametrize("form", ["json", "telegraf", "collectd"])
def test_a_micro_batch_of_heartbeats_alone_is_no_records_and_no_dead_letters(form: str) -> None:
    assert read(form, [HEARTBEAT, HEARTBEAT]) == ([], [])


def test_pieces_of_messages_are_never_put_together_to_one() -> None:
    two, head, tail = line() + b"," + line(), line()[:-1] + b',"x":[{}', b"{}]}"
    rows, dead = read("json", [two, head, tail, line()])
    assert [row["value"] for row in rows] == [1.5]
    assert [letter.offset for letter in dead] == [0, 1, 2]


@pytest.mark.parametrize("good", GOOD, ids=lambda b: repr(b)[:40])
def test_fast_and_slow_path_read_the_same(good: bytes) -> None:
    fast, _ = read("json", [good])
    slow, _ = read("json", [good, b"{"])
    assert len(fast) == 1
    assert fast == slow


@settings(deadline=None, max_examples=50)
@given(form=st.sampled_from(sorted(DECODERS)), some=st.lists(st.binary(max_size=60), min_size=1, max_size=3))
def test_random_bytes_are_dead_letters(form: str, some: list[bytes]) -> None:
    rows, dead = read(form, list(some))
    assert rows == []
    assert len(dead) == sum(value != HEARTBEAT for value in some)


def sample_lines(name: str) -> list[bytes]:
    path = SAMPLES / name
    if not path.exists():
        pytest.skip(f"{path} is not there: samples of real agents lie beside the repository, in ../shared/samples")
    return path.read_bytes().splitlines()


@pytest.mark.parametrize("form", ["telegraf", "collectd"])
def test_what_a_real_agent_wrote_is_read_whole(form: str) -> None:
    lines = sample_lines(f"{form}.json.ndjson")
    rows, dead = read(form, list(lines))
    assert dead == []
    assert len(rows) > 0.9 * len(lines), "all but what the agent had no value of"
    assert all(row["entity"] and "." in row["metric"] for row in rows)
    assert len({(row["entity"], row["metric"], row["time"]) for row in rows}) == len(rows), "no two samples are one"


@settings(deadline=None, max_examples=60)
@given(data=st.data(), form=st.sampled_from(["telegraf", "collectd"]))
def test_a_message_of_an_agent_with_anything_in_it_harms_no_neighbour(data: st.DataObject, form: str) -> None:
    good = json.loads(AGENTS[form])
    item = good[0] if form == "collectd" else good
    anything = st.recursive(
        st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
        max_leaves=4,
    )
    item[data.draw(st.sampled_from(sorted(item)))] = data.draw(anything)
    wanted = read(form, [AGENTS[form]])[0]
    rows, dead = read(form, [AGENTS[form], json.dumps(good).encode("utf-8", "surrogatepass"), AGENTS[form]])
    assert rows[: len(wanted)] == rows[-len(wanted) :] == wanted
    assert all(letter.offset == 1 for letter in dead)


AGENTS = {
    "telegraf": json.dumps(
        {"fields": {"used": 5, "free": 1.5}, "name": "mem", "tags": {"host": "a"}, "timestamp": 1_795_220_820}
    ).encode(),
    "collectd": json.dumps(
        [
            {
                "values": [5, 1.5],
                "dstypes": ["gauge", "derive"],
                "dsnames": ["value", "tx"],
                "time": 1_795_220_820.013,
                "host": "a",
                "plugin": "memory",
                "plugin_instance": "",
                "type": "memory",
                "type_instance": "used",
            }
        ]
    ).encode(),
}
