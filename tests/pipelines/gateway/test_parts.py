"""One bad part of a request does not throw the rest away: what Kafka gets, and what the sender is told."""

from __future__ import annotations

import json

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from pipelines.formats.rules import Rules
from pipelines.gateway.influx import LOGS, Influx
from pipelines.gateway.otlp import LOGS as LOG_RECORDS
from pipelines.gateway.otlp import Otlp
from pipelines.gateway.protocol import Body, MalformedError, Taken
from tests.pipelines.formats.decoding import log_lines, samples
from tests.pipelines.formats.examples_times import NS, T0
from tests.pipelines.formats.otlp_requests import logs, record

GOOD = f"mem,host=a used=5i,free=1.5 {NS}"
MORE = f"cpu,host=b v=1 {NS}"


def taken(*given: str, **parameters: str) -> Taken:
    return Influx(Rules()).take(Body("\n".join(given).encode(), parameters=parameters))


@pytest.mark.parametrize(
    ("bad", "code", "why"),
    [
        ("mem,host=a used=", "LINE_INVALID", "a value is no number"),
        (f"mem,host=a used=x {NS}", "LINE_INVALID", "a value is no number"),
        ("mem,host used=1", "LINE_INVALID", "a tag has no name or no value"),
        (f"mem used=1 {NS}", "MACHINE_UNKNOWN", "no label that could name the machine"),
        (f"{'m' * 600},host=a used=1", "LINE_INVALID", "more than 512 characters"),
        (f"mem,host=a {'f' * 1100}=1", "FIELD_INVALID", "longer than 1024 characters"),
        ("mem,host=a used=1 1795220820", "GATEWAY_PRECISION", "1795220820 is no time in that unit"),
    ],
)
def test_a_bad_line_of_influx_is_left_out_and_told_and_the_others_are_written(bad: str, code: str, why: str) -> None:
    found = taken("# why", GOOD, bad, MORE, bad)
    assert (found.records, found.reply.status) == (3, 400)
    assert [(machine, metric, value) for _, machine, metric, value, _ in samples("influx", found.value)] == [
        ("a", "mem.used", 5.0), ("a", "mem.free", 1.5), ("b", "cpu.v", 1.0),
    ]  # fmt: skip
    told = json.loads(found.reply.content)["error"]
    assert told.startswith(f"{code}: partial write: 2 lines left out, the first because line 3: ")
    assert why in told
    with pytest.raises(MalformedError) as caught:
        taken("# why", bad)
    assert caught.value.error.code == code


def test_bad_lines_of_several_kinds_are_counted_together_and_times_are_still_read_in_their_unit() -> None:
    found = taken("m,host=a v=", f"m,host=a v=1 {T0 // 60_000}", f"m,host=a v=2 {T0}", precision="m")
    assert [(time, value) for time, *_, value, _ in samples("influx", found.value)] == [(T0 // 60_000 * 60_000, 1.0)]
    assert b"LINE_INVALID: partial write: 2 lines left out" in found.reply.content


def test_text_with_line_ends_stays_whole_beside_a_bad_line_and_a_quote_that_does_not_end_refuses_all() -> None:
    found = taken(f'm,host=a message="one\ntwo" {NS}', "m,host=a message=", bucket=LOGS)
    assert [text for *_, text in log_lines("influx-logs", found.value)] == ["one\ntwo"]
    assert found.reply.status == 400
    with pytest.raises(MalformedError, match="does not end"):
        taken(GOOD, 'm,host=a message="one', GOOD)


def test_what_is_right_is_written_as_it_came() -> None:
    given = (f"{GOOD}\r", "", "# why", f'cpu,host=b v=1,text="a,\\" b" {NS}')
    found = taken(*given)
    assert (found.value, found.records, found.reply.status) == ("\n".join(given).encode(), 3, 204)


def test_a_log_record_of_otlp_that_cannot_be_used_leaves_the_others_of_its_resource() -> None:
    told = logs(record("one"), record("x" * 70_000), record(" "), record("two"))
    told.resource_logs.add().scope_logs.add().log_records.add().body.string_value = "nobody's"
    found = Otlp(LOG_RECORDS, Rules()).take(Body(told.SerializeToString(), "application/x-protobuf"))
    assert [line[1:] for line in log_lines("otlp-logs", found.value)] == [
        ("a", "shop", 3, "one"),
        ("a", "shop", 3, "two"),
    ]
    part = ExportLogsServiceResponse.FromString(found.reply.content).partial_success
    assert (found.records, found.reply.status, part.rejected_log_records) == (2, 200, 3)
    assert part.error_message.startswith("FIELD_INVALID: 3 log records are left out, the first: ")
    assert "longer than 65536" in part.error_message
