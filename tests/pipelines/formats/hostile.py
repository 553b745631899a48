"""Messages that are made to cost much, and what decoding them costs; run as a process of its own.

It prints a line of JSON for each: name, bytes, peak of the memory above that before, seconds of CPU, records, codes.
"""

from __future__ import annotations

import ctypes
import json
import random
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from engine.formats.json_decoder import JsonDecoder
from engine.spec.decoder import Messages
from engine.spec.record import Record
from pipelines.contracts.records import Log, Telemetry
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.bounded import BoundedDecoder
from tests.pipelines.formats.decoding import RULES
from tests.pipelines.formats.remote_writes import field, series

ARRIVED = 1_795_220_900_000

Shape = tuple[str, type[Record], bytes, bytes, bytes]
"""(name, what it is to become, beginning, what is repeated, end)"""


def _kv(key: bytes, value: bytes) -> bytes:
    return field(1, key) + field(2, field(1, value))


_RESOURCE = field(1, field(1, _kv(b"host.name", b"a")))
_SAMPLE = b'{"@timestamp":1795220820013,"host.name":"a","metric":"m","value":1,"x":'
_LINE = b'{"@timestamp":1795220820013,"host.name":"a","program":"p","severity":6,"message":"m","x":'
_BEAT = b'{"@timestamp":"2026-11-21T00:27:00Z","host":{"name":"a"},"metricset":{"name":"x"},"s":'
_NAGIOS = b"DATATYPE::SERVICEPERFDATA\tTIMET::1795220820\tHOSTNAME::a\tSERVICEDESC::b"
_SYSLOG = b"<34>1 2026-11-21T00:27:00Z a p - - "

SHAPES: list[Shape] = [
    ("influx lines", Telemetry, b"", b"m,host=a v=1\n", b""),
    ("influx lines of two bytes", Telemetry, b"m,host=a v=1\n", b"x\n", b""),
    ("influx fields", Telemetry, b"m,host=a ", b"f=1,", b"g=1"),
    ("influx tags", Telemetry, b"m,host=a", b",b=c", b" v=1"),
    ("influx blanks", Telemetry, b"m,host=a v=1", b" ", b"x"),
    ("influx escapes", Telemetry, b'm,host=a v=1,t="', b'\\"', b'"'),
    ("influx quotes", Log, b'm,host=a t="', b'",u="', b'"'),
    ("influx line ends in quotes", Log, b'm,host=a t="', b"\n", b'"'),
    ("influx words", Log, b'm,host=a t="', b"a ", b'"'),
    ("prometheus lines", Telemetry, b"# TYPE a gauge\n", b"a 1\n", b""),
    ("prometheus labels", Telemetry, b'# TYPE a gauge\na{host="a"', b',b="c"', b"} 1\n"),
    ("prometheus long label", Telemetry, b'# TYPE a gauge\na{host="a",b="', b"x", b'"} 1\n'),
    ("prometheus escapes", Telemetry, b'# TYPE a gauge\na{host="a",b="', b"\\n", b'"} 1\n'),
    ("prometheus braces", Telemetry, b"# TYPE a gauge\na", b"{}", b" 1\n"),
    ("graphite lines", Telemetry, b"", b"a.b 1 1795220820\n", b""),
    ("graphite tags", Telemetry, b"a.b", b";c=d", b" 1 1795220820\n"),
    ("graphite path", Telemetry, b"a", b".b", b" 1 1795220820\n"),
    ("putval values", Telemetry, b'PUTVAL "a/b/c" N', b":1", b""),
    ("putval options", Telemetry, b'PUTVAL "a/b/c" ', b"a=1 ", b"N:1"),
    ("putval name", Telemetry, b'PUTVAL "a/b/', b"c", b'" N:1'),
    ("statsd lines", Telemetry, b"", b"a:1|c|#host:b\n", b""),
    ("statsd short lines", Telemetry, b"", b"a:1|c\n", b""),
    ("statsd values", Telemetry, b"a", b":1", b"|c|#host:b"),
    ("statsd values with types", Telemetry, b"a,host=b", b":1|c", b""),
    ("statsd tags", Telemetry, b"a:1|c|#host:b", b",c:d", b""),
    ("statsd fields", Telemetry, b"a:1|c", b"|x:y", b"|#host:b"),
    ("statsd checks", Log, b"", b"_sc|a|0|h:b\n", b""),
    ("flat json numbers", Telemetry, b'{"host":"a","n":[', b"1,", b"1]}"),
    ("flat json objects", Telemetry, b'[{"host":"a","n":1}', b',{"a":1}', b"]"),
    ("flat json depth", Telemetry, b'{"host":"a","n":1,"x":', b'{"a":', b"1"),
    ("flat json labels", Telemetry, b'{"host":"a","n":1', b',"a":"b"', b"}"),
    ("csv lines", Telemetry, b"time,host,cpu\n", b"1795220820,a,1\n", b""),
    ("csv commas", Telemetry, b"time,host,cpu\n1795220820,a,", b",", b""),
    ("csv quotes", Telemetry, b"time,host,cpu\n1795220820,a,", b'"', b""),
    ("csv numbers of doubtful marks", Telemetry, b"time;host;cpu\n", b"1795220820;a;1,234\n", b""),
    ("csv dates", Telemetry, b"time,host,cpu\n", b"11/21/2026 00:27,a,1.5 %\n", b""),
    (
        "csv of typeperf",
        Telemetry,
        b'"(PDH-CSV 4.0) (UTC)(0)"',
        b',"\\\\a\\b(c)\\d"',
        b'\n"11/21/2026 00:27:00.1","1"\n',
    ),
    ("csv of influx", Telemetry, b"", b"#group,\n,_time,_field,_value,host\n,1795220820,f,1,a\n", b""),
    ("csv of sadf", Telemetry, b"# hostname;interval;timestamp;CPU;x\n", b"a;1;1795220820;-1;1\n", b""),
    ("gelf fields", Log, b'{"version":"1.1","host":"a","short_message":"m"', b',"_a":1', b"}"),
    ("gelf text", Log, b'{"version":"1.1","host":"a","short_message":"', b"x ", b'"}'),
    ("splunk events", Log, b"", b'{"event":"m","host":"a"}', b""),
    ("splunk list of events", Log, b'[{"event":"m","host":"a"}', b',{"event":"m","host":"a"}', b"]"),
    (
        "splunk metrics",
        Telemetry,
        b'{"event":"metric","host":"a","fields":{"metric_name:a":1',
        b',"metric_name:b":1',
        b"}}",
    ),
    (
        "datadog series",
        Telemetry,
        b'{"series":[{"metric":"a","host":"b","points":[[1795220820,1]]}',
        b',{"metric":"a","host":"b","points":[[1795220820,1]]}',
        b"]}",
    ),
    ("datadog points", Telemetry, b'{"series":[{"metric":"a","host":"b","points":[[1,1]', b",[1,1]", b"]}]}"),
    (
        "datadog tags",
        Telemetry,
        b'{"series":[{"metric":"a","host":"b","points":[[1795220820,1]],"tags":["c:d"',
        b',"c:d"',
        b"]}]}",
    ),
    (
        "cloudwatch lines",
        Telemetry,
        b"",
        b'{"metric_stream_name":"s","metric_name":"m","namespace":"n",'
        b'"dimensions":{"InstanceId":"i"},"timestamp":1795220820000,"value":{"max":1,"min":1,"sum":1,"count":1}}\n',
        b"",
    ),
    (
        "cloudwatch values",
        Telemetry,
        b'{"MetricDataResults":[{"Id":"a","Label":"b","Timestamps":[1795220820],"Values":[1',
        b",1",
        b"]}]}",
    ),
    (
        "zabbix tags",
        Telemetry,
        b'{"host":{"host":"a","name":"a"},"itemid":1,"name":"n","clock":1795220820,"type":0,'
        b'"value":1,"item_tags":[{"tag":"a","value":"b"}',
        b',{"tag":"a","value":"b"}',
        b"]}",
    ),
    (
        "zabbix lines",
        Telemetry,
        b"",
        b'{"host":{"host":"a"},"itemid":1,"name":"n","clock":1795220820,"type":0,"value":1}\n',
        b"",
    ),
    ("nagios values", Telemetry, _NAGIOS + b"\tSERVICEPERFDATA::", b"a=1 ", b""),
    ("nagios fields", Telemetry, _NAGIOS + b"", b"\ta::b", b"\tSERVICEPERFDATA::a=1"),
    (
        "nagios lines",
        Telemetry,
        b"",
        b"DATATYPE::HOSTPERFDATA\tTIMET::1795220820\tHOSTNAME::a\tHOSTPERFDATA::a=1\n",
        b"",
    ),
    (
        "prometheus api results",
        Telemetry,
        b'{"data":{"resultType":"vector","result":[{"metric":{"instance":"a"},"value":[1,"1"]}',
        b',{"metric":{"instance":"a"},"value":[1,"1"]}',
        b"]}}",
    ),
    (
        "prometheus api values",
        Telemetry,
        b'{"data":{"resultType":"matrix","result":[{"metric":{"instance":"a"},"values":[[1,"1"]',
        b',[1,"1"]',
        b"]}]}}",
    ),
    ("logfmt fields", Log, b"level=info msg=x", b" a=b", b""),
    ("logfmt quotes", Log, b'level=info msg="', b'\\"', b'"'),
    ("logfmt lines", Log, b"", b"level=info msg=x\n", b""),
    ("web log lines", Log, b"", b'1.2.3.4 - - [21/Nov/2026:00:27:00 +0000] "GET / HTTP/1.1" 200 1\n', b""),
    ("web log request", Log, b'1.2.3.4 - - [21/Nov/2026:00:27:00 +0000] "GET /', b"\\x", b' HTTP/1.1" 200 1'),
    ("cri lines", Log, b"", b"2026-11-21T00:27:00Z stdout F x\n", b""),
    ("cri parts", Log, b"", b"2026-11-21T00:27:00Z stdout P x\n", b""),
    ("docker json lines", Log, b"", b'{"log":"x\\n","stream":"stdout","time":"2026-11-21T00:27:00Z"}\n', b""),
    (
        "docker json attributes",
        Log,
        b'{"log":"x","stream":"stdout","time":"2026-11-21T00:27:00Z","attrs":{"a":"b"',
        b',"a":"b"',
        b"}}",
    ),
    ("statsd events", Log, b"", b"_e{1,1}:a|b|h:c\n", b""),
    ("statsd event's tags", Log, b"_e{1,1}:a|b|h:c|#a", b",b:c", b""),
    ("log file lines", Log, b"", b"Nov 21 00:27:00 a p: x\n", b""),
    ("log file lines with zones", Log, b"", b"2026-11-21T00:27:00+00:00 a p: x\n", b""),
    ("nxlog fields", Log, b'{"EventTime":"2026-11-21 00:27:00","Hostname":"a","Message":"m"', b',"a":1', b"}"),
    (
        "nxlog list",
        Log,
        b'[{"EventTime":"2026-11-21 00:27:00","Hostname":"a","Message":"m"}',
        b',{"EventTime":"2026-11-21 00:27:00","Hostname":"a","Message":"m"}',
        b"]",
    ),
    ("csv header", Telemetry, b"time,host", b",c", b"\n1795220820,a,1\n"),
    ("collectd lists", Telemetry, b'[{"dstypes":["gauge"],"dsnames":["value"]}', b",{}", b"]"),
    ("metricbeat fields", Telemetry, _BEAT + b"[", b"{},", b"0]}"),
    ("metricbeat depth", Telemetry, _BEAT, b'{"a":', b"1"),
    ("own samples", Telemetry, _SAMPLE + b"[", b"0,", b"0]}"),
    ("own samples depth", Telemetry, _SAMPLE, b"[", b""),
    ("own lines", Log, _LINE + b"[", b"[],", b"0]}"),
    ("own lines of a rare letter", Log, _LINE + '"\U0001f600'.encode(), b"x", b'"}'),
    ("shipped lines", Log, b'[{"message":"m","host":"a"}', b',{"log":"m"}', b"]"),
    ("syslog data", Log, _SYSLOG + b'[x a="', b"x", b'"] text'),
    ("syslog elements", Log, _SYSLOG, b"[x]", b" text"),
    ("syslog quotes", Log, _SYSLOG + b"[", b'"a" ', b'"'),
    ("syslog escapes", Log, _SYSLOG + b'[x a="', b"\\]", b'"] text'),
    ("syslog text of a rare letter", Log, _SYSLOG + "- \U0001f600".encode(), b"x ", b""),
    ("otlp resources", Telemetry, b"", b"\n\x00", b""),
    ("otlp logs of two bytes", Log, b"", b"\n\x02\x12\x00", b""),
    ("remote write series", Telemetry, field(1, series({"__name__": "up", "instance": "a"})[2:]), b"\n\x00", b""),
    ("symbols", Telemetry, b'"\x00', b'"\x00', b""),
]
"""Shapes of messages that repeat something small."""


OTLP: dict[str, tuple[type[Record], bytes, tuple[int, ...]]] = {
    "otlp metrics": (Telemetry, b"\x12\x00", (2,)),
    "otlp points": (Telemetry, b"\n\x00", (5, 2, 2)),
    "otlp attributes": (Telemetry, b":\x00", (1, 5, 2, 2)),
    "otlp attributes by turns": (Telemetry, b"*\x00:\x00", (2, 2)),
    "otlp quantiles": (Telemetry, b"2\x00", (1, 11, 2, 2)),
    "otlp bounds": (Telemetry, bytes(8), (7, 1, 9, 2, 2)),
    "otlp records": (Log, b"\x12\x00", (2,)),
    "otlp records of text": (Log, field(2, field(5, field(1, b"x"))), (2,)),
    "otlp list in a body": (Log, b"\n\x00", (5, 5, 2, 2)),
}
"""Where in a request of OTLP something small is repeated: the numbers of the fields from the inside out."""


def _request(unit: bytes, numbers: tuple[int, ...], size: int) -> bytes:
    body = unit * (size // len(unit))
    for number in numbers[:-1]:
        body = field(number, body)
    return field(1, _RESOURCE + field(numbers[-1], body))


def messages(size: int, seed: int, more: int) -> Iterator[tuple[str, type[Record], bytes]]:
    """All shapes, and some others that are made at random.

    Args:
        size: Bytes of each.
        seed: Seed of the others.
        more: How many others.
    """
    for name, record, begin, unit, end in SHAPES:
        yield name, record, begin + unit * (size // len(unit)) + end
    for name, (record, unit, numbers) in OTLP.items():
        yield name, record, _request(unit, numbers, size)
    chance = random.Random(seed)
    tokens = [b'"', b"\\", b",", b"\n", b" ", b"{", b"}", b"[", b"]", b"=", b":", b"a", b"1", b"#", b";", b"\n\x00"]
    tokens += [b"\x12\x00", b"*\x00", b"\r", b"\t", "\U0001f600".encode(), b"|", b"0x", b"N:1", b"\x00"]
    for _ in range(more):
        name, record, begin, _, end = chance.choice(SHAPES)
        unit = b"".join(chance.choices(tokens, k=chance.randint(1, 5)))
        yield f"{name} with {unit!r}", record, begin + unit * (size // len(unit)) + end


def _peak() -> int:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _forget_peak() -> int:
    """Begins a new peak at the present memory, which is returned."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", "ascii")
    return _peak()


def main(size: int, seed: int, more: int, share: tuple[int, int]) -> None:
    """Decodes one of several shares of the messages, and prints what each costs."""
    decoders = {record: BoundedDecoder(AnyFormatDecoder(record, RULES), record) for record in (Telemetry, Log)}
    for record in (Telemetry, Log):
        BoundedDecoder(JsonDecoder(record), record).decode(_one(b"{}"))
        decoders[record].decode(_one(b"m,host=a v=1"))
    for name, record, value in islice(messages(size, seed, more), share[0], None, share[1]):
        before, began = _forget_peak(), time.process_time()
        found = decoders[record].decode(_one(value))
        cost = {"name": name, "bytes": len(value), "memory": _peak() - before, "cpu": time.process_time() - began}
        told = {"records": found.records.num_rows, "codes": [code for _, code, _ in found.refused]}
        print(json.dumps(cost | told), flush=True)


def _one(value: bytes) -> Messages:
    return Messages("topic", 0, pa.array([value], pa.binary()), np.zeros(1, np.int64), np.full(1, ARRIVED))


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    main(given[0], given[1], given[2], (given[3], given[4]))
