"""Influx line protocol and Telegraf's JSON, against expectations worked out by hand from their specifications."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest
import typer

from pipelines.cli.decode import decode
from pipelines.contracts.records import Telemetry
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.catalogue import guess
from pipelines.formats.influx import InfluxDecoder
from pipelines.formats.labels import LabelRule
from pipelines.formats.measurement import TextRule
from pipelines.formats.rules import RULES
from pipelines.gateway.influx import Influx
from pipelines.gateway.protocol import Body
from tests.pipelines.formats.decoding import (
    ARRIVED,
    decoded,
    decoder,
    log_lines,
    refusals,
    rows,
    sample_lines,
    samples,
)  # fmt: skip
from tests.pipelines.formats.examples_times import NS, T0, US


@pytest.mark.parametrize(
    ("line", "metric", "value"),
    [
        (b"m,host=a x=1", "m.x", 1.0),
        (b"m,host=a x=-1.5e3", "m.x", -1500.0),
        (b"m,host=a x=.5", "m.x", 0.5),
        (b"m,host=a x=7i", "m.x", 7.0),
        (b"m,host=a x=-7i", "m.x", -7.0),
        (b"m,host=a x=18446744073709551615u", "m.x", 18446744073709551615.0),
        *((b"m,host=a x=" + flag, "m.x", 1.0) for flag in (b"t", b"T", b"true", b"True", b"TRUE")),
        *((b"m,host=a x=" + flag, "m.x", 0.0) for flag in (b"f", b"F", b"false", b"False", b"FALSE")),
        (rb"my\ m,host=a,path=C:\dir\,x,k\=ey=v\ w fi\ eld\=s=1", r"my m.fi eld=s{k=ey=v w,path=C:\dir,x}", 1.0),
        (b'm"q",host=a x=1', 'm"q".x', 1.0),
        (b"m,host=a  x=1 ", "m.x", 1.0),
        (b"# a comment\nm,host=a x=1\r\n\n", "m.x", 1.0),
        ("mé,host=a ü=1".encode(), "mé.ü", 1.0),
    ],
)
def test_a_field_is_a_sample_by_the_rules_of_the_line_protocol(line: bytes, metric: str, value: float) -> None:
    assert samples("influx", line) == [(ARRIVED, "a", metric, value, "gauge")]


@pytest.mark.parametrize("stamp", [T0 // 1000, T0, US, NS])
@pytest.mark.parametrize("form", ["influx", "telegraf"])
def test_a_timestamp_may_be_in_seconds_to_nanoseconds(form: str, stamp: int) -> None:
    message = {"name": "m", "fields": {"x": 1}, "tags": {"host": "a"}, "timestamp": stamp}
    value = json.dumps(message).encode() if form == "telegraf" else f"m,host=a x=1 {stamp}".encode()
    ((time, *_),) = samples(form, value)
    assert time == (T0 // 1000 * 1000 if stamp == T0 // 1000 else T0)


def test_a_line_without_a_timestamp_has_the_time_of_its_arrival_and_others_keep_theirs() -> None:
    found = samples("influx", b"m,host=a x=1 %d\nm,host=a x=2" % NS)
    assert [(time, value) for time, _, _, value, _ in found] == [(T0, 1.0), (ARRIVED, 2.0)]


@pytest.mark.parametrize(
    "line",
    [
        *(b"m", b"m,host=a", b"m,host=a x", b"m,host=a x=", b"m,host=a =1", b",host=a x=1", b"m,host=a x=1,"),
        *(b"m,host x=1", b"m,host= x=1", b"m,=a,host=a x=1", b"m,host=a x=1 soon", b"m,host=a x=1 1 2"),
        *(b"m,host=a x=1 1.5", b"m,host=a x=abc", b"m,host=a x=1x", b"m,host=a x=1.5i", b"m,host=a x=NaN"),
        *(b"m,host=a x=inf", b'm,host=a x="open', b"m,host=a x=1=2", b'm,host=a x="a""b"', b"m,host=a x=1_000"),
    ],
)
def test_a_broken_line_refuses_its_message_and_no_other(line: bytes) -> None:
    good = b"m,host=a x=1"
    found = decoded(decoder("influx"), good, good + b"\n" + line, good)
    assert [row["__row"] for row in rows(found)] == [0, 2]
    ((row, code, why),) = found.refused
    assert (row, code) == (1, "LINE_INVALID")
    assert why.startswith("line 2: ")


def test_text_in_a_topic_of_metrics_is_a_dead_letter_and_the_numbers_beside_it_are_samples() -> None:
    line = rb'syslog,host=a severity_code=4i,message="a \"b\", c=d e",note="x" 1795220820'
    as_json = {"name": "syslog", "fields": {"severity_code": 4, "message": 'a "b", c=d e', "note": "x"}}
    as_json |= {"tags": {"host": "a"}, "timestamp": 1795220820}
    for form, value in (("influx", line), ("telegraf", json.dumps(as_json).encode())):
        found = decoded(decoder(form), value)
        assert [(row["metric"], row["value"]) for row in rows(found)] == [("syslog.severity_code", 4.0)]
        ((_, code, why),) = found.refused
        assert code == "TEXT_FIELD"
        assert "syslog.message, syslog.note" in why
        assert "logs.agents" in why


def test_text_that_nobody_needs_is_left_out_by_a_setting() -> None:
    line = b'docker,host=a n=1,container_id="x",state="up"'
    ((_, _, why),) = decoded(InfluxDecoder(text=TextRule(("*.container_id",))), line).refused
    assert "docker.state" in why
    assert "container_id" not in why.partition(";")[0]
    assert decoded(InfluxDecoder(text=TextRule(("docker.*",))), line).refused == []


def test_a_line_end_within_quotes_does_not_end_the_line() -> None:
    found = decoded(decoder("influx"), b'm,host=a log="one\ntwo",x=1 1795220820\nm,host=b x=2 1795220820')
    assert [(row["entity"], row["value"]) for row in rows(found)] == [("a", 1.0), ("b", 2.0)]
    assert [code for _, code, _ in found.refused] == ["TEXT_FIELD"]


def test_a_quote_in_a_comment_does_not_hide_the_lines_after_it() -> None:
    text = b'cpu,host=a v=0\n# it"s\ncpu,host=b v=1\n  # "\nlog,host=a w=2,m="x"\n# "one" "'
    found = decoded(decoder("influx"), text)
    assert [(row["metric"], row["value"]) for row in rows(found)] == [("cpu.v", 0.0), ("cpu.v", 1.0), ("log.w", 2.0)]
    assert [code for _, code, _ in found.refused] == ["TEXT_FIELD"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (b'cpu,host=a v=1"\ncpu,host=a v=2', 1),
        (b'cpu,host=a v=1\n\ncpu,host=a v=2"\n', 3),
        (b'm,host=a x="one\ntwo",y=1\nm,host=a x="open\nm,host=a y=2', 3),
    ],
)
def test_a_quote_that_does_not_end_refuses_the_message_and_names_its_line(text: bytes, number: int) -> None:
    good = b'm,host=a x="one\ntwo",y=1'
    found = decoded(decoder("influx"), good, text, good)
    assert [row["__row"] for row in rows(found)] == [0, 2]
    ((code, why),) = [(code, why) for row, code, why in found.refused if row == 1]
    assert code == "LINE_INVALID"
    assert why.startswith(f"line {number}: ")


@pytest.mark.parametrize(
    ("form", "value"),
    [
        *(("influx", b"cpu,host=a v=1 %d" % stamp) for stamp in (9_999_999_999_999_999_999, -(2**63) - 1)),
        *(("prometheus", b'v{host="a"} 1 ' + b"9" * digits + end) for digits, end in ((20, b""), (17, b"\n# EOF"))),
        ("influx-logs", b'm,host=a log="x" 9999999999999999999'),
    ],
)
def test_a_time_that_is_no_number_of_64_bits_is_not_taken_for_the_arrival(form: str, value: bytes) -> None:
    assert refusals(form, value) == [(0, "LINE_INVALID")]


def test_the_machine_is_the_first_label_of_the_rule_and_descriptive_labels_are_left_out() -> None:
    assert refusals("influx", b"m,rack=r x=1") == [(0, "MACHINE_UNKNOWN")]
    rule = LabelRule(("server", "host"), frozenset({"dc"}), frozenset({"session"}))
    line = b"m,host=a,server=s1,dc=x,session=8,port=1 x=3"
    ((row),) = rows(decoded(InfluxDecoder(rule), line))
    assert (row["entity"], row["metric"]) == ("s1", "m.x{host=a,port=1,session=*}")


def test_series_that_folding_makes_one_are_summed_if_they_count_and_averaged_otherwise() -> None:
    lines = [f"net,host=a,pod_uid={n} bytes_recv={n}i,speed={n} 1795220820" for n in (10, 30)]
    found = {(metric, value) for _, _, metric, value, _ in samples("influx", "\n".join(lines).encode())}
    assert found == {("net.bytes_recv{pod_uid=*}", 40.0), ("net.speed{pod_uid=*}", 20.0)}


def test_a_batch_of_telegrafs_json_is_read_and_divided() -> None:
    one = {"name": "m", "fields": {"x": 1, "y": 2}, "tags": {"host": "a"}, "timestamp": T0}
    batch = json.dumps({"metrics": [one, one | {"name": "n"}]}).encode()
    assert [metric for _, _, metric, _, _ in samples("telegraf", batch)] == ["m.x", "m.y", "n.x", "n.y"]
    part = decoder("telegraf").only(batch, [1, 2])
    assert [metric for _, _, metric, _, _ in samples("telegraf", part)] == ["m.y", "n.x"]


def test_what_a_real_telegraf_wrote_is_the_same_in_both_of_its_formats() -> None:
    both = [
        samples(form, *sample_lines(f"telegraf.{end}.ndjson"))
        for form, end in (("telegraf", "json"), ("influx", "influx"))
    ]
    assert sorted(both[0]) == sorted(both[1])
    assert len(both[0]) > 1000


LINES = [
    (rb"m,host=a,uri=/users/{id} x=1", "m.x{uri=/users/{id}}"),
    (rb"{m},host=a x=1", "{m}.x"),
    (rb"m,host=a,bucket=<100ms x=1i", "m.x{bucket=<100ms}"),
    (rb"<m,host=a x=1i", "<m.x"),
    (rb'm,host=a,mbean=name\="G1\ Old" x=5i', 'm.x{mbean=name="G1 Old"}'),
    (rb'm,host=a,size=5" x=1', 'm.x{size=5"}'),
    (rb'"m",host=a x=t', '"m".x'),
    (rb"m,host=a,d=C:\\ temp x=1", r"m.x{d=C:\ temp}"),
    (rb"m,host=a,d=\\,\,\=e x=1", r"m.x{d=\,,=e}"),
    (b"m,host=a,long=" + b"x" * 300 + b" x=1", "m.x{long=" + "x" * 300 + "}"),
    (b"m,host=a" + b",empty\\ name=" + b"z" * 400 + b" x=1 1795220820000000000", "m.x{empty name=" + "z" * 400 + "}"),
]
"""Lines with characters that are ordinary ones in measurement and tags, and the metric of each; source: the reference
of the line protocol. Of several backslashes only the last one stands before the character that it escapes."""


@pytest.mark.parametrize(("line", "metric"), LINES)
@pytest.mark.parametrize("order", [1, -1])
def test_the_topic_the_gateway_and_decode_read_a_line_of_the_protocol_alike_wherever_it_stands(
    line: bytes, metric: str, order: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = b"\n".join([line, b"mem,host=a used=5 1795220820000000000"][::order])
    in_topic = decoded(AnyFormatDecoder(Telemetry), message)
    assert in_topic.refused == []
    assert sorted(row["metric"] for row in rows(in_topic)) == sorted([metric, "mem.used"])
    taken = Influx(RULES).take(Body(message))
    assert (taken.records, taken.reply.status) == (2, 204)
    file = tmp_path / "messages.txt"
    file.write_bytes(line)
    with pytest.raises(typer.Exit) as ended:
        decode([str(file)], None, True)
    assert ended.value.exit_code == 0
    assert [row["metric"] for row in orjson.loads(capsys.readouterr().out)["samples"]] == [metric]


def test_the_name_of_a_file_does_not_tell_a_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "influx.csv"
    file.write_bytes(b"hello")
    with pytest.raises(typer.Exit):
        decode([str(file)], None, True)
    assert orjson.loads(capsys.readouterr().out)["format"] is None


@pytest.mark.parametrize(
    "text",
    [
        *(b'{"msg":"GET,/x=1 a=1"}', b'{"message":"a,b=c d=1 ","host":"h"}', b'[{"message":"a,b=c d=1 "}]'),
        *(b"level=3 code=4", b'ts=1795220820 msg="no"', b"level=info msg=hi", b"usage was a=1", b"a b=1 c"),
    ],
)
def test_json_and_pairs_of_keys_and_values_are_not_taken_for_line_protocol(text: bytes) -> None:
    form = guess(text)
    assert form is None or not form.name.startswith("influx")


def test_texts_have_the_escapes_of_the_line_protocol() -> None:
    ((*_, text),) = log_lines("influx-logs", rb'm,host=a message="a\nb\t\"c\" \\d \e"')
    assert text == 'a\nb\t"c" \\d \\e'
