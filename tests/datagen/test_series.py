"""CSV files as people export them: every form of number, time and column that a first week of use brings."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from datagen.series import Reading, SeriesReport, read_files, read_labels, read_series
from engine.spec.errors import NewnormalError

HEAD = "2026-11-01 12:0"


def _file(tmp_path: Path, text: str | bytes, name: str = "a.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def _values(
    tmp_path: Path, cells: list[str], reading: Reading | None = None, separator: str = ";"
) -> list[float | None]:
    lines = [f"{HEAD}{number}:00{separator}{cell}" for number, cell in enumerate(cells)]
    path = _file(tmp_path, "\n".join([f"time{separator}value", *lines]))
    return read_series(path, reading or Reading(), keep_missing=True)[0]["value"].to_list()


def _times(tmp_path: Path, *times: str, reading: Reading | None = None) -> tuple[list[str], SeriesReport]:
    path = _file(tmp_path, "\n".join(["time;value", *(f"{time};1" for time in times)]))
    frame, report = read_series(path, reading or Reading())
    return [datetime.fromtimestamp(ms / 1000, UTC).isoformat()[:19] for ms in frame["time"]], report


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1,5", "2,25", "-3", "1.234,5", "1 234,5", "1.234.567"], [1.5, 2.25, -3, 1234.5, 1234.5, 1_234_567]),
        (
            ["1.5", "1,234.5", "1'234.5", "1\u202f234.5", "1,234", "+2", ".5", "1e3"],
            [1.5, *[1234.5] * 3, 1234, 2, 0.5, 1e3],
        ),
        (["53.1 %", "53.2%", "\u22121.5"], [53.1, 53.2, -1.5]),
        (["0,123", "1,234"], [0.123, 1.234]),
        (["1.234", "2.345"], [1.234, 2.345]),
        (["1.5", "", "NaN", "n/a", "inf", "-", "null"], [1.5, *[None] * 6]),
        (["1e300", "1e-300", "5"], [1e300, 1e-300, 5]),
    ],
)
def test_numbers_are_read_as_they_were_meant(tmp_path: Path, cells: list[str], numbers: list[float]) -> None:
    assert _values(tmp_path, cells) == numbers


def test_a_comma_that_may_group_thousands_or_be_the_decimal_mark_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(NewnormalError, match=r"line 3: '1,234' may be 1234 or 1\.234[\s\S]*--decimal"):
        _values(tmp_path, ["5", "1,234"])
    assert _values(tmp_path, ["5", "1,234"], Reading(decimal=",")) == [5, 1.234]
    assert _values(tmp_path, ["5", "1,234"], Reading(decimal=".")) == [5, 1234]


def test_decimal_commas_between_commas_are_no_second_column(tmp_path: Path) -> None:
    quoted = _values(tmp_path, ['"1,5"', '"2,5"'], separator=",")
    assert quoted == [1.5, 2.5]
    with pytest.raises(NewnormalError, match=r"lines with more fields than the header: 2 \(lines 2, 3"):
        _values(tmp_path, ["1,5", "2,5"], separator=",")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_recognised(tmp_path: Path, separator: str) -> None:
    assert _values(tmp_path, ["1.5", "2"], separator=separator) == [1.5, 2]


def test_a_separator_that_the_user_names_is_taken(tmp_path: Path) -> None:
    path = _file(tmp_path, "time value\n1700000000 5\n")
    assert read_series(path, Reading(separator=" "))[0]["value"].to_list() == [5]
    path = _file(tmp_path, "time\tb,c\n1700000000\t2,5\n")
    frame, _ = read_series(path, Reading(separator="tab"))
    assert frame.select("metric", "value").rows() == [("b,c", 2.5)]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-11-01T12:30:15.250Z", "2026-11-01T12:30:15"),
        ("2026-11-01 12:30:15,250", "2026-11-01T12:30:15"),
        ("2026-11-01T12:30+0200", "2026-11-01T10:30:00"),
        ("2026-11-01T12:30:00-03:30", "2026-11-01T16:00:00"),
        ("2026-11-01 12:30 UTC", "2026-11-01T12:30:00"),
        ("2026/11/01 12:30", "2026-11-01T12:30:00"),
        ("01.11.2026", "2026-11-01T00:00:00"),
        ("01.11.26 12:30", "2026-11-01T12:30:00"),
        ("1.11.2026, 12:30:15", "2026-11-01T12:30:15"),
        ("11/01/2026 1:30 PM", "2026-11-01T13:30:00"),
        ("11/01/2026 12:30:00 a.m.", "2026-11-01T00:30:00"),
        ("20261101", "2026-11-01T00:00:00"),
        ("20261101123015", "2026-11-01T12:30:15"),
        ("1793536215", "2026-11-01T12:30:15"),
        ("1793536215250", "2026-11-01T12:30:15"),
        ("1793536215250000000", "2026-11-01T12:30:15"),
    ],
)
def test_times_are_read_as_they_were_meant(tmp_path: Path, written: str, meant: str) -> None:
    assert _times(tmp_path, written)[0] == [meant]


@pytest.mark.parametrize(
    ("times", "day_first", "first", "said"),
    [
        (("01.11.2026", "02.11.2026"), None, "2026-11-01", "01.11.2026 are read day first; nothing in the file proves"),
        (("01.11.2026", "02.11.2026"), False, "2026-01-11", "01.11.2026 are read month first"),
        (("01/11/2026", "02/11/2026"), None, "2026-01-11", "01/11/2026 are read month first; nothing in the file"),
        (("01/11/2026", "13/11/2026"), None, "2026-11-01", "01/11/2026 are read day first"),
        (("01.11.2026", "01.13.2026"), None, "2026-01-11", "01.11.2026 are read month first"),
    ],
)
def test_the_order_of_day_and_month_is_decided_and_said(
    tmp_path: Path, times: tuple[str, ...], day_first: bool | None, first: str, said: str
) -> None:
    read, report = _times(tmp_path, *times, reading=Reading(day_first=day_first))
    assert read[0][:10] == first
    assert any(said in note for note in report.notes)
    assert len(read) == len(times)


def test_local_times_are_those_of_the_time_zone_and_others_keep_their_offset(tmp_path: Path) -> None:
    zone = Reading(timezone="Europe/Stockholm")
    read, report = _times(tmp_path, "2026-07-01 12:00", "2026-11-01 12:00", "2026-11-01 12:00Z", reading=zone)
    assert read == ["2026-07-01T10:00:00", "2026-11-01T11:00:00", "2026-11-01T12:00:00"]
    assert "times without an offset are taken as Europe/Stockholm" in report.notes
    skipped, report = _times(tmp_path, "2026-03-29 01:30", "2026-03-29 02:30", reading=zone)
    assert skipped == ["2026-03-29T00:30:00"] and report.bad_times == 1, "that hour did not exist"


def test_machines_in_one_file_are_told_apart_by_their_column(tmp_path: Path) -> None:
    path = _file(tmp_path, "ts,host,cpu\n1,a,1\n1,b,10\n2,a,2\n2,b,20\n")
    frame, report = read_series(path)
    assert frame.select("entity", "value").rows() == [("a", 1), ("b", 10), ("a", 2), ("b", 20)]
    assert (report.machines, report.duplicates, report.unsorted, report.step_ms) == (("a", "b"), 0, 0, 1000)
    renamed = _file(tmp_path, "ts,box,cpu\n1,a,1\n1,b,10\n", "b.csv")
    assert read_series(renamed, Reading(entity_column="box"))[0]["entity"].to_list() == ["a", "b"]


def test_columns_named_host_metric_and_value_are_a_series_of_each_metric(tmp_path: Path) -> None:
    path = _file(tmp_path, "time,host,metric,value\n1,a,cpu,1\n1,a,mem,5\n2,a,cpu,2\n")
    frame, report = read_series(path)
    assert frame.rows() == [(1000, "a", "cpu", 1.0), (1000, "a", "mem", 5.0), (2000, "a", "cpu", 2.0)]
    assert report.duplicates == 0
    both = _file(tmp_path, "time,metric,mean,max\n1,cpu,1,2\n", "b.csv")
    assert read_series(both)[0].select("metric", "value").rows() == [("cpu.mean", 1.0), ("cpu.max", 2.0)]


def test_columns_are_chosen_by_name_and_text_is_left_out(tmp_path: Path) -> None:
    path = _file(tmp_path, ",when,state,cpu,note,cpu\n0,2026-11-01,up,1,,3\n1,2026-11-02,slow,2,,4\n")
    frame, report = read_series(path, Reading(time_column="when"))
    assert frame["metric"].unique().sort().to_list() == ["cpu", "cpu_2"]
    assert "columns left out, as they hold no numbers: state, note" in report.notes
    assert report.whole
    chosen, _ = read_series(path, Reading(time_column="when", value_columns=("cpu_2",)))
    assert chosen["value"].to_list() == [3, 4]
    with pytest.raises(NewnormalError, match=r"--value-column: there is no column 'mem'[\s\S]*when, state, cpu"):
        read_series(path, Reading(time_column="when", value_columns=("mem",)))


@pytest.mark.parametrize(
    ("text", "code", "what"),
    [
        ("time,value\n", "SERIES_EMPTY", "only a header, line 1"),
        ("time,value\n\n\n", "SERIES_EMPTY", "only a header"),
        ("time,value\n1,abc\n2,def\n", "SERIES_EMPTY", r"values that are no numbers: 2 \(lines 2, 3, e.g. 'abc'\)"),
        ("time,value\nnever,1\n", "SERIES_EMPTY", r"lines without a time: 1 \(line 2, e.g. 'never'\)"),
        ("time,value\n1,\n2,nan\n", "SERIES_EMPTY", "no line has a value in value; the first is line 2"),
        ("time,value\n1,1e400\n", "SERIES_EMPTY", "line 2, e.g. '1e400'"),
        ("when,value\n1,2\n", "SERIES_UNREADABLE", "no time column among when, value[\\s\\S]*--time-column"),
        ("time,host\n1,a\n", "SERIES_UNREADABLE", "no value column"),
        ('time,value\n1,"2\n', "SERIES_UNREADABLE", "quotation mark"),
        (b"\x00\x01\x02", "SERIES_UNREADABLE", "binary"),
        (b"\x1f\x8b\x08broken", "SERIES_UNREADABLE", "SERIES"),
        ("", "SERIES_UNREADABLE", "empty"),
        ("\n\n", "SERIES_UNREADABLE", "empty"),
    ],
)
def test_a_file_of_no_use_is_an_error_with_the_line_and_what_is_accepted(
    tmp_path: Path, text: str | bytes, code: str, what: str
) -> None:
    with pytest.raises(NewnormalError, match=what) as caught:
        read_series(_file(tmp_path, text))
    assert caught.value.code == code
    assert caught.value.accepted


def test_lines_that_cannot_be_used_are_counted_and_named(tmp_path: Path) -> None:
    lines = ["1,1", "x,2", "", '"3",oops', "4,4,4", "5,", "6,6", *["7,bad"] * 9]
    _, report = read_series(_file(tmp_path, "\n".join(["time,value", *lines])))
    said = str(report)
    assert "skipped lines with more fields than the header: 1 (line 6, e.g. '4')" in said
    assert "skipped lines without a time: 1 (line 3, e.g. 'x')" in said
    assert "skipped values that are no numbers: 10 (lines 5, 9, 10, 11, 12, …, e.g. 'oops')" in said
    assert not report.whole


def test_lines_are_counted_as_an_editor_does(tmp_path: Path) -> None:
    text = 'sep=;\r\ntime;note;value\r\n1;"two\nlines";1\r\n2;x;oops\r\n'
    _, report = read_series(_file(tmp_path, text))
    assert report.skipped[0].lines == (5,)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "windows-1252"])
def test_the_encodings_of_spreadsheets_are_read(tmp_path: Path, encoding: str) -> None:
    frame, _ = read_series(_file(tmp_path, "time;Füllstand °C\n1;2\n".encode(encoding)))
    assert frame["metric"].to_list() == ["Füllstand °C"]


def test_folders_stand_for_their_files_and_one_of_no_use_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    _file(tmp_path, "time,value\n1,1\n", "web.csv")
    _file(tmp_path, "time\tvalue\n2\t2\n", "deep/db.tsv")
    _file(tmp_path, "time,value\n", "none.csv")
    _file(tmp_path, "not a table", "readme.md")
    frame, reports = read_files([tmp_path, tmp_path / "web.csv"])
    assert frame.select("entity", "value").rows() == [("web", 1), ("db", 2)]
    assert [report.failure[:12] for report in reports if not report.whole] == ["SERIES_EMPTY"]
    with pytest.raises(NewnormalError, match="no CSV file in this folder"):
        (tmp_path / "empty").mkdir()
        read_files([tmp_path / "empty"])
    with pytest.raises(NewnormalError, match="no such file"):
        read_files([tmp_path / "web.csv", tmp_path / "wbe.csv"])


def test_files_may_be_of_one_machine_if_the_user_says_so(tmp_path: Path) -> None:
    cpu = _file(tmp_path, "time,value\n1,1\n", "cpu.csv")
    net = _file(tmp_path, "time,in,out\n2,2,3\n", "net.csv")
    frame, _ = read_files([cpu, net], Reading(entity="pay-01"))
    assert frame.select("entity", "metric").rows() == [("pay-01", "cpu"), ("pay-01", "net.in"), ("pay-01", "net.out")]
    single, _ = read_files([net], Reading(entity="pay-01"))
    assert single["metric"].to_list() == ["in", "out"]


def test_files_of_one_name_in_folders_of_one_name_are_two_machines(tmp_path: Path) -> None:
    files = []
    for folder in ("x/a", "y/a"):
        (tmp_path / folder).mkdir(parents=True)
        files.append(_file(tmp_path, "time,v\n1,1\n", f"{folder}/cpu.csv"))
    assert read_files(files)[0]["entity"].to_list() == ["x/a/cpu", "y/a/cpu"]


@pytest.mark.parametrize(
    "given",
    [
        {"separator": ";;"},
        {"separator": ""},
        {"decimal": "x"},
        {"timezone": "Mars/Base"},
        {"timezone": "../x"},
        {"timezone": ""},
        {"entity": " "},
    ],
)
def test_a_wrong_option_is_refused_by_its_name(given: dict[str, str]) -> None:
    with pytest.raises(NewnormalError, match=f"SETTING_INVALID[\\s\\S]*--{next(iter(given))}"):
        Reading(**given)  # type: ignore[arg-type]


def test_labels_know_their_machine(tmp_path: Path) -> None:
    frame = read_labels(_file(tmp_path, "time;host;label\n2;a;0\n1;b;TRUE\n"))
    assert frame is not None
    assert frame.rows() == [(1000, "b", True), (2000, "a", False)]


def test_columns_of_text_that_alone_distinguish_rows_tell_series_apart_as_in_decode(tmp_path: Path) -> None:
    values = [(minute, name, value) for minute in range(3) for name, value in (("eth0", 1), ("eth1", 9))]
    lines = (f"2026-11-20T00:0{minute}:00Z,web-1,{name},remark {minute},{value}" for minute, name, value in values)
    frame, report = read_series(_file(tmp_path, "time,host,interface,note,rx\n" + "\n".join(lines) + "\n"))
    found = {metric: set(part["value"]) for (metric,), part in frame.group_by("metric")}
    assert found == {"rx{interface=eth0}": {1.0}, "rx{interface=eth1}": {9.0}}
    assert report.duplicates == 0
    assert "columns that tell series apart: interface" in report.notes
    assert "columns left out, as they hold no numbers: note" in report.notes


def test_a_column_of_text_that_does_not_change_along_a_series_is_a_label_of_it_as_in_decode(tmp_path: Path) -> None:
    frame, _ = read_series(_file(tmp_path, "time,host,unit,rx\n1,web-1,kB,5\n2,web-1,kB,6\n"))
    assert frame.rows() == [(1000, "web-1", "rx{unit=kB}", 5.0), (2000, "web-1", "rx{unit=kB}", 6.0)]
