"""CSV in wide and in long form, against expectations worked out by hand."""

from __future__ import annotations

import pytest

from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import load
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.catalogue import BY_NAME, guess
from pipelines.formats.rules import Rules
from tests.pipelines.formats.decoding import decoded, decoder, refusals, rows, samples

S = 1_795_220_820
T = S * 1000


def by(**settings: str) -> list[tuple[str, float, str]]:
    """(metric, value, kind) of the samples of the message ``text`` by some settings of the section input."""
    text = settings.pop("text").encode()
    rules = Rules.of(load(**{f"input.{name}": value for name, value in settings.items()}).input)
    found = decoded(BY_NAME["csv"].build(rules), text)
    assert found.refused == []
    return [(row["metric"], row["value"], row["kind"]) for row in rows(found)]


def test_in_wide_form_each_column_of_numbers_is_a_metric() -> None:
    found = samples("csv", f"time,host,cpu,mem\n{S},a,0.5,17\n{S + 1},b,,18\n".encode())
    assert found == [
        *((T, "a", "cpu", 0.5, "gauge"), (T, "a", "mem", 17.0, "gauge"), (T + 1000, "b", "mem", 18.0, "gauge")),
    ]


def test_in_long_form_a_column_names_the_metric() -> None:
    text = f"timestamp;entity;metric;value;max\n{S};a;cpu;0.5;0.9\n{S};a;mem;17;\n"
    assert by(text=text) == [("cpu", 0.5, "gauge"), ("cpu.max", 0.9, "gauge"), ("mem", 17.0, "gauge")]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (f"{S}", T),
        (f"{S}.25", T + 250),
        (f"{T}", T),
        (f"{T}013", T),
        (f"{T}013999", T),
        ("2026-11-21T00:27:00Z", T),
        ("2026-11-21 01:27:00.5+01:00", T + 500),
        ("2026-11-21T00:27", T),
    ],
)
def test_times_are_epochs_of_any_unit_or_iso_8601(written: str, expected: int) -> None:
    ((time, *_),) = samples("csv", f"time,host,cpu\n{written},a,1\n".encode())
    assert time == expected


def test_columns_of_text_tell_series_apart_and_so_does_a_port() -> None:
    text = f"time,instance,interface,rx\n{S},a:9100,eth0,1\n{S},a:9100,eth1,2\n"
    assert by(text=text) == [
        *(("rx{interface=eth0,port=9100}", 1.0, "gauge"), ("rx{interface=eth1,port=9100}", 2.0, "gauge")),
    ]


def test_text_in_a_column_of_numbers_is_a_dead_letter_beside_the_numbers() -> None:
    found = decoded(BY_NAME["csv"].build(Rules()), f"time,host,cpu\n{S},a,1\n{S},a,broken\n{S},a,n/a\n".encode())
    assert [row["value"] for row in rows(found)] == [1.0]
    ((_, code, why),) = found.refused
    assert (code, "csv.cpu" in why) == ("TEXT_FIELD", True)


def test_the_settings_say_what_the_columns_are() -> None:
    names = {"csv_time": "zeit", "csv_machine": "knoten", "csv_labels": "kern", "counters": "la*"}
    written = {"csv_separator": "pipe", "csv_decimal": "comma"}
    found = by(text=f"zeit|knoten|kern|last\n{S}|a|0|1,5\n", **names, **written)
    assert found == [("last{kern=0}", 1.5, "counter")]
    assert by(text=f"time,host,what,n\n{S},a,x,1\n", csv_metric="what") == [("x.n", 1.0, "gauge")]


def test_a_message_with_a_broken_line_is_refused_as_a_whole_and_the_reason_names_the_line() -> None:
    bad = [
        f"time,host,cpu\n{S},a,1\n{S},a\n",
        f"time,host,cpu\n{S},a,1\nsoon,a,1\n",
        f'time,host,cpu\n{S},a,"1\n',
        f"time,host,cpu,CPU\n{S},a,1,2\n",
        f"when,host,cpu\n{S},a,1\n",
        f"time,where,cpu\n{S},a,1\n",
        f"time,host,cpu\n{S},,1\n",
        "time,host,cpu\n",
        f"time,host,cpu\n{S},a,-\n",
    ]
    codes = [*["LINE_INVALID"] * 5, *["MACHINE_UNKNOWN"] * 2, *["MESSAGE_EMPTY"] * 2]
    assert refusals("csv", *(text.encode() for text in bad)) == list(enumerate(codes))
    found = decoded(BY_NAME["csv"].build(Rules()), bad[0].encode(), bad[1].encode())
    assert [("line 3" in why, code) for _, code, why in found.refused] == [(True, "LINE_INVALID")] * 2


@pytest.mark.parametrize(
    "time",
    [
        "21-11-2026",
        "11/21/2026 00:27:00",
        "21.11.26 00:27",
        "20261121",
        "20261121002700",
        "Nov 21, 2026 @ 00:27:00.000",
    ],
)
def test_a_time_in_the_digits_of_another_script_is_no_time_and_ends_nothing(time: str) -> None:
    """Unicode has 60 sets of digits; each is one for regular expressions, but none for who reads a number from text."""
    others = time.translate({ord("0") + n: chr(0x0660 + n) for n in range(10)})
    for text in (others, time.replace("1", "\u0661", 1)):
        bad, good = (f'time,host,cpu\n"{each}",a,{n}\n' for n, each in ((1, text), (2, time)))
        found = decoded(decoder("csv"), bad.encode(), good.encode())
        assert [(row, code) for row, code, _ in found.refused] == [(0, "LINE_INVALID")]
        assert [row["value"] for row in found.records.to_pylist()] == [2.0]


def test_fields_in_quotes_may_hold_separators_quotes_and_line_ends() -> None:
    text = f'time,host,disk,used\n{S},a,"C:, ""x""\ny",1\n'
    assert by(text=text) == [('used{disk=C:, "x"\ny}', 1.0, "gauge")]


def test_text_that_is_no_csv_is_not_taken_for_it() -> None:
    assert guess(b"hello, world\ngood, bye\n") is None
    assert guess(b"1,2\n3,4\n") is None


def test_the_separator_is_the_one_that_divides_a_line_like_the_header_or_the_chosen_one() -> None:
    text = f"time|host|load, mean, 1 m, 5 m\n{S}|a|0.5\n".encode()
    rules = Rules.of(load(**{"input.csv_separator": "pipe"}).input)
    plain = guess(text)
    assert plain is not None, "though the header has more commas"
    assert plain.name == "csv"
    found = guess(text, rules=rules)
    assert found is not None
    assert found.name == "csv"
    mixed = decoded(AnyFormatDecoder(Telemetry, rules), text, b"cpu,host=a idle=1 1795220820")
    assert [row["metric"] for row in rows(mixed)] == ["load, mean, 1 m, 5 m", "cpu.idle"]
    assert mixed.refused == []


def test_a_part_of_a_message_holds_the_refused_numbers_with_their_labels_and_nothing_else() -> None:
    text = f'time;host;disk;used;free;note\n{S};a;"x;y";1;2;ok\n{S};b;;3;;\n{S + 9};a;z;4;full;5\n'.encode()
    whole = decoded(decoder("csv"), text)
    assert [row["metric"] for row in rows(whole)] == [
        *("used{disk=x;y}", "free{disk=x;y}", "used", "used{disk=z}", "note{disk=z}"),
    ]
    part = decoder("csv").only(text, [1, 3])
    again = decoded(decoder("csv"), part)
    assert rows(again) == [rows(whole)[1], rows(whole)[3]]
    assert again.refused == [], "the text of another column is in the letter that tells of it"


def test_a_message_is_not_divided_where_a_part_would_be_read_otherwise() -> None:
    text = f"time,host,disk,used\n{S},a,-,1\n{S},a,x,2\n".encode()
    assert [row["metric"] for row in rows(decoded(decoder("csv"), text))] == ["used{disk=-}", "used{disk=x}"]
    assert decoder("csv").only(text, [0]) is None, "alone the first line would have no label"
    assert decoder("csv").only(text, [1]) is not None
