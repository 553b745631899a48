"""CSV as programs export it, read alike as a message and as a file, against values worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from datagen.series import Reading, read_series
from pipelines.contracts.settings import load
from pipelines.formats.catalogue import BY_NAME, guess
from pipelines.formats.rules import Rules
from tests.pipelines.formats.decoding import decoded, rows

T = 1_795_132_800_000
"""2026-11-20T00:00:00Z."""
M = 60_000

ANNOTATED = """#group,false,false,true,true,false,false,true,true,true,true
#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string,string
#default,_result,,,,,,,,,east
,result,table,_start,_stop,_time,_value,_field,_measurement,host,site
,,0,2026-11-20T00:00:00Z,2026-11-21T00:00:00Z,2026-11-20T00:00:00Z,5.1,usage_idle,cpu,web-1,
,,0,2026-11-20T00:00:00Z,2026-11-21T00:00:00Z,2026-11-20T00:01:00Z,5.2,usage_idle,cpu,web-1,

#group,false,false,true,true,false,false,true,true,true,true
#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,long,string,string,string,string
#default,_result,,,,,,,,,
,result,table,_start,_stop,_time,_value,_field,_measurement,host,core
,,1,2026-11-20T00:00:00Z,2026-11-21T00:00:00Z,2026-11-20T00:00:00Z,7,load,sys,web-2,0
"""
SADF = """# hostname;interval;timestamp;CPU;%user;%idle
web-1;60;2026-11-20 00:00:00 UTC;-1;1,50;98,50
web-1;60;2026-11-20 00:00:00 UTC;0;2,50;97,50
web-1;-1;2026-11-20 00:00:30 UTC;LINUX-RESTART (2 CPU)
# hostname;interval;timestamp;tps
web-1;60;2026-11-20 00:01:00 UTC;3,25
"""
TYPEPERF = (
    '"(PDH-CSV 4.0) (W. Europe Standard Time)(-60)","\\\\WEB-1\\Processor(_Total)\\% Processor Time",'
    '"\\\\WEB-1\\Memory\\Available MBytes"\n"11/20/2026 01:00:00.250","12.5","2048"\n'
    '"11/20/2026 01:01:00.250"," ","2047"\n'
)
_RX = [("a", 1.0), ("b", 9.0)]
CASES = {
    "kibana": ('"@timestamp","cpu"\n"Nov 20, 2026 @ 00:00:00.000",1\n"Nov 20, 2026 @ 00:01:00.000","1,234.5"\n',
        [(T, "edge", "cpu", 1.0), (T + M, "edge", "cpu", 1234.5)]),
    "date and time": ("Date,Time,Value\n11/20/2026,12:00:00 AM,1\n11/20/2026,12:01:00 AM,2\n",
        [(T, "edge", "Value", 1.0), (T + M, "edge", "Value", 2.0)]),
    "annotated": (ANNOTATED, [
        (T, "web-1", "cpu.usage_idle{site=east}", 5.1), (T + M, "web-1", "cpu.usage_idle{site=east}", 5.2),
        (T, "web-2", "sys.load{core=0}", 7.0),
    ]),
    "without annotations": ("".join(line for line in ANNOTATED.splitlines(True)[3:6]), [
        (T, "web-1", "cpu.usage_idle", 5.1), (T + M, "web-1", "cpu.usage_idle", 5.2),
    ]),
    "sadf": (SADF, [
        (T, "web-1", "%user{CPU=all}", 1.5), (T, "web-1", "%idle{CPU=all}", 98.5),
        (T, "web-1", "%user{CPU=0}", 2.5), (T, "web-1", "%idle{CPU=0}", 97.5), (T + M, "web-1", "tps", 3.25),
    ]),
    "typeperf": (TYPEPERF, [
        (T + 250, "WEB-1", "Processor.% Processor Time{instance=_Total}", 12.5),
        (T + 250, "WEB-1", "Memory.Available MBytes", 2048.0),
        (T + M + 250, "WEB-1", "Memory.Available MBytes", 2047.0),
    ]),
    "label column": ("time,host,interface,rx\n" + "".join(
        f"2026-11-20T00:0{minute}:00Z,web-1,{name}\n" for minute in (0, 1) for name in ("a,1", "b,9")
    ), [(T + at * M, "web-1", f"rx{{interface={name}}}", value) for at in (0, 1) for name, value in _RX]),
    "missing": ("time;host;cpu;mem\n1795132800;a;nil;1,5\n1795132800000;b;--;53,1 %\n20261120;c;2;-\n",
        [(T, "a", "mem", 1.5), (T, "b", "mem", 53.1), (T, "c", "cpu", 2.0)]),
}  # fmt: skip


def _as_message(text: str, **settings: str) -> list[tuple[int, str, str, float]]:
    rules = Rules.of(load(**{"input.default_machine": "edge", "input.left_out": "", **settings}).input)
    form = guess(text.encode(), rules=rules)
    assert form is not None
    assert form.name == "csv"
    found = decoded(BY_NAME["csv"].build(rules), text.encode(), arrived=T + 3_600_000)
    assert found.refused == []
    return [(row["time"], row["entity"], row["metric"], row["value"]) for row in rows(found)]


def _as_file(path: Path, text: str, reading: Reading) -> list[tuple[int, str, str, float]]:
    path.write_text(text, newline="")
    frame, report = read_series(path, reading)
    assert report.whole
    return [(time, entity or "edge", metric, value) for time, entity, metric, value in frame.rows()]


@pytest.mark.parametrize("name", CASES)
def test_an_export_is_read_alike_as_a_message_and_as_a_file(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    assert sorted(_as_message(text)) == sorted(expected)
    assert sorted(_as_file(tmp_path / "a.csv", text, Reading())) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "settings", "reading", "expected"),
    [
        ("time,host,v\n01/11/2026 00:00,a,1\n", {"csv_dates": "day-first"}, Reading(day_first=True), 1_793_491_200_000),
        ("time,host,v\n11/20/2026 01:00,a,1\n", {"timezone": "Europe/Berlin"}, Reading(timezone="Europe/Berlin"), T),
        ('time,host,v\n2026-11-20 00:00,a,"1"\n', {"csv_decimal": "comma"}, Reading(decimal=","), T),
    ],
)
def test_settings_and_options_say_the_same(
    text: str, settings: dict[str, str], reading: Reading, expected: int, tmp_path: Path
) -> None:
    found = _as_message(text, **{f"input.{name}": value for name, value in settings.items()})
    assert found == [(expected, "a", "v", 1.0)]
    assert _as_file(tmp_path / "a.csv", text, reading) == found


def test_a_number_that_may_be_meant_either_way_refuses_its_message_only() -> None:
    told = "time;host;v\n1795132800;a;1,234\n"
    proven = "time;host;v\n1795132800;b;1,234\n1795132801;b;1,5\n"
    found = decoded(BY_NAME["csv"].build(Rules()), told.encode(), proven.encode())
    assert [(row["entity"], row["value"]) for row in rows(found)] == [("b", 1.234), ("b", 1.5)]
    ((row, code, why),) = found.refused
    assert (row, code) == (0, "LINE_INVALID")
    assert "line 2" in why
    assert "input.csv_decimal" in why


def test_what_a_message_means_does_not_depend_on_those_that_are_read_with_it() -> None:
    texts = [text.encode() for text, _ in CASES.values()] * 2
    texts += [b"time,host,v\n13/11/2026,a,1\n", b"time,host,v\n12/11/2026,a,1\n", b'time,host,v\n1795132800,a,"1,5"\n']
    rules = Rules.of(load(**{"input.default_machine": "edge"}).input)
    decoder = BY_NAME["csv"].build(rules)
    alone = [row for text in texts for row in rows(decoded(decoder, text))]
    together = rows(decoded(decoder, *texts))
    assert [{**row, "__row": 0} for row in together] == alone
