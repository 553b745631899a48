"""What holds for every input format: nothing crashes it, each message is accounted for, neighbours do not matter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.contracts.records import Log, Telemetry
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.catalogue import BY_NAME, FORMATS, guess
from tests.pipelines.formats.decoding import RULES, decoded, decoder, expected_schema, fates, rows
from tests.pipelines.formats.examples import GOOD

SILENT = {
    "collectd": "values of null: the agent has no value yet",
    "influx": "text that the settings leave out",
    "telegraf": "no fields, or flags alone",
}
"""Formats some of whose messages hold no value by right; all other messages are records or dead letters."""

PIECES = [
    *(b"", b" ", b"\n", b"{", b"}", b"[", b"]", b'"', b"\\", b",", b"=", b":", b"#", b"\x00", b"\xff", b"\xc3", b"0"),
    *(
        b"-",
        b"1e999",
        b"NaN",
        b"null",
        b"true",
        b"[]",
        b"{}",
        b'"a"',
        b"1795220820013",
        b"99999999999999999999",
        b" x ",
        b"[]:91",
    ),
]


def mutated(good: bytes) -> st.SearchStrategy[bytes]:
    """The message with one piece of it replaced by something else, cut off, or doubled."""
    place = st.integers(0, len(good))
    return st.builds(
        lambda at, length, piece: good[:at] + piece + good[at + length :],
        place,
        st.integers(0, 12) | place,
        st.sampled_from(PIECES) | st.binary(max_size=6),
    )


def anything(name: str) -> st.SearchStrategy[bytes | None]:
    others = st.sampled_from([good for messages in GOOD.values() for good in messages])
    mine = st.sampled_from(GOOD[name])
    return st.one_of(mine, mine.flatmap(mutated), others, st.binary(max_size=40), st.none())


def test_each_format_has_an_example_and_a_row_in_the_docs() -> None:
    assert set(GOOD) == set(BY_NAME)
    page = (Path(__file__).parents[3] / "docs" / "input.md").read_text(encoding="utf-8")
    named = {name for line in page.splitlines() if line.startswith("| `") for name in re.findall(r"`([^`]+)`", line)}
    assert set(BY_NAME) <= named, "add a row to docs/input.md"


@pytest.mark.parametrize("name", list(BY_NAME))
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_no_message_stops_a_decoder_and_each_is_records_or_a_dead_letter(name: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(anything(name), min_size=1, max_size=5))
    found = decoded(decoder(name), *values)
    assert found.records.schema.equals(expected_schema(name))
    used, refused, nothing = fates(found, len(values))
    assert used | refused | nothing == set(range(len(values)))
    assert not nothing or name in SILENT
    assert all(code and why for _, code, why in found.refused)


@pytest.mark.parametrize("name", list(BY_NAME))
def test_no_value_that_is_nested_as_deeply_as_json_may_be_stops_a_decoder(name: str) -> None:
    """As orjson reads it that is 1,024 levels, of which Python can show fewer than 1,000."""
    deep, value = b"[" * 1_000 + b"]" * 1_000, re.compile(rb'(?<=":)\s*("[^"]*"|-?[0-9.]+)')
    values = [good[: at.start()] + deep + good[at.end() :] for good in GOOD[name] for at in value.finditer(good)]
    for found in (decoded(decoder(name), *values), decoded(AnyFormatDecoder(BY_NAME[name].record, RULES), *values)):
        assert all(code and why for _, code, why in found.refused)


@pytest.mark.parametrize("name", list(BY_NAME))
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_a_message_becomes_the_same_whatever_its_neighbours(name: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(anything(name), min_size=1, max_size=4))
    together = decoded(decoder(name), *values)
    for at, value in enumerate(values):
        alone = decoded(decoder(name), value)
        mine = [row | {"__row": 0} for row in rows(together) if row["__row"] == at]
        assert mine == rows(alone)
        assert [(code, why) for row, code, why in together.refused if row == at] == [
            (code, why) for _, code, why in alone.refused
        ]


@pytest.mark.parametrize("name", list(BY_NAME))
def test_each_example_is_recognised_and_becomes_records(name: str) -> None:
    for good in GOOD[name]:
        form = guess(good, BY_NAME[name].record)
        assert form is not None
        assert form.name == name
        used, _, _ = fates(decoded(decoder(name), good), 1)
        assert used == {0}


@pytest.mark.parametrize("record", [Telemetry, Log])
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_mixed_formats_in_one_topic_become_what_each_becomes_alone(
    record: type[Telemetry] | type[Log], data: st.DataObject
) -> None:
    names = [form.name for form in FORMATS if form.record is record]
    values = data.draw(st.lists(st.sampled_from(names).flatmap(anything), min_size=1, max_size=6))
    found = decoded(AnyFormatDecoder(record, RULES), *values)
    for at, value in enumerate(values):
        form = guess(value, record)
        mine = [row | {"__row": 0} for row in rows(found) if row["__row"] == at]
        codes = [code for row, code, _ in found.refused if row == at]
        if form is None:
            assert (mine, codes) == ([], ["FORMAT_UNKNOWN"])
        else:
            alone = decoded(decoder(form.name), value)
            assert mine == rows(alone)
            assert codes == [code for _, code, _ in alone.refused]


@pytest.mark.parametrize("name", list(BY_NAME))
def test_a_message_divided_into_its_records_gives_these_records(name: str) -> None:
    for good in GOOD[name]:
        whole = rows(decoded(decoder(name), good))
        for at, row in enumerate(whole):
            part = decoder(name).only(good, [at])
            assert part is None or rows(decoded(decoder(name), part)) == [row]


FOLDED = {
    "influx": (b"n,host=a,request_id=%d v=%d 1795220820", b"m,host=a v=%d 1795220820"),
    "prometheus": (b'n{host="a",request_id="%d"} %d 1795220820000', b'm{host="a"} %d 1795220820000'),
    "graphite": (b"n;host=a;request_id=%d %d 1795220820", b"m;host=a %d 1795220820"),
}


@pytest.mark.parametrize("name", FOLDED)
def test_only_samples_of_folded_series_become_one_whatever_else_is_sent_with_them(name: str) -> None:
    folded, plain = FOLDED[name]
    twice = b"\n".join([plain % 7, plain % 8])
    together = b"\n".join([plain % 5, folded % (1, 2), plain % 6, folded % (2, 4)])
    found = decoded(decoder(name), twice, folded % (3, 9), together, twice)
    assert [(row["__row"], row["value"]) for row in rows(found)] == [
        *((0, 7.0), (0, 8.0), (1, 9.0)),
        *((2, 5.0), (2, 3.0), (2, 6.0)),
        *((3, 7.0), (3, 8.0)),
    ]


@pytest.mark.parametrize("name", FOLDED)
def test_a_message_whose_samples_were_combined_is_not_divided(name: str) -> None:
    folded, plain = FOLDED[name]
    combined = b"\n".join([folded % (1, 2), folded % (2, 4), plain % 5])
    assert decoder(name).only(combined, [1]) is None
    apart = b"\n".join([folded % (1, 2), plain % 5])
    part = decoder(name).only(apart, [1])
    assert part is not None
    assert [row["value"] for row in rows(decoded(decoder(name), part))] == [5.0]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (b"# a comment\n\n \t\r\n# another\ncpu,host=a v=1", "influx"),
        (b"m=n f=1\ncpu,host=a v=1", "influx"),
        (b"m=n f=1 1795220820000000000", "influx"),
        (b"a=1 b=2\na=1 b=2", None),
        (b"#\n\nweb-1.cpu.idle 97.5 1795220820", "graphite"),
        (b"# x\n\nPUTVAL a/load/load interval=10 1795220820:1:2:3", "putval"),
        (b"\n# x\n\nup 1", "prometheus"),
        (b"# only\n\n# comments", None),
        (b'{"ts":1795220820.5,"host":"a","msg":"x"}', "shipped-logs"),
        (b'{"ts":"2026-11-21T00:28:54Z","host":"a","msg":"x","program":"su"}', "rsyslog"),
        (b'{"ts":"2026-11-21T00:28:54Z","host":"a","msg":"x","severity":4}', "rsyslog"),
    ],
)
def test_a_message_is_recognised_by_what_stands_in_it(value: bytes, name: str | None) -> None:
    form = guess(value)
    assert (form.name if form else None) == name


def test_a_log_line_with_a_numeric_time_is_a_record() -> None:
    found = decoded(AnyFormatDecoder(Log), b'{"ts":1795220820.5,"host":"a","msg":"x"}')
    assert [(row["time"], row["entity"], row["message"]) for row in rows(found)] == [(1_795_220_820_500, "a", "x")]
    assert found.refused == []


def test_a_log_format_in_a_topic_of_metrics_is_told_where_it_belongs() -> None:
    ((_, code, why),) = decoded(AnyFormatDecoder(Telemetry), GOOD["rsyslog"][0]).refused
    assert code == "FORMAT_UNKNOWN"
    assert "rsyslog" in why
    assert "logs.agents" in why
