"""CSV and Parquet: the samples are those of the same CSV from an agent; order and restarts do not matter."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import polars as pl
import pytest

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings
from pipelines.history import files
from pipelines.history.files import FileHistory, listed
from pipelines.history.intake import Intake, StoppedError
from tests.pipelines.history.samples import MINUTE, START, Row, rows

NOW = START + 400 * 86_400_000
DAY = 86_400_000


def lines(machine: str, minutes: range) -> list[str]:
    stamp = [datetime.fromtimestamp((START + m * MINUTE) / 1000, UTC).isoformat() for m in minutes]
    return [f"{t},{machine},eth{n % 2},{n}.5,{n * 3}" for n, t in zip(minutes, stamp, strict=True)]


def expected(machine: str, minutes: range) -> list[Row]:
    found = []
    for n in minutes:
        at, label = START + n * MINUTE, f"{{interface=eth{n % 2}}}"
        found += [(at, machine, f"rx{label}", n + 0.5, "gauge"), (at, machine, f"tx{label}", n * 3.0, "gauge")]
    return sorted(found)


HEADER = "time,host,interface,rx,tx"


def imported(settings: Settings, paths: list[Path], aside: Path, machine: str = "") -> tuple[list[Row], Intake]:
    source, intake = FileHistory(settings, paths, machine, aside, Event()), Intake(settings)
    span = source.arrange(NOW, intake)
    if span is None:
        return [], intake
    step = 7 * 3_600_000
    found = [
        row for at in range(span[0], span[1], step) for row in rows(source.read(at, min(at + step, span[1]), intake))
    ]
    assert len(found) == span[2]
    return sorted(found), intake


def test_files_of_csv_are_sorted_by_time_whatever_their_order_and_chunks(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_CHUNK_BYTES", 5_000)
    monkeypatch.setattr(files, "_SORTED_ROWS", 700)
    one, two = tmp_path / "b.csv", tmp_path / "a.csv"
    minutes = range(3_000)
    one.write_text("\n".join([HEADER, *reversed(lines("web-1", minutes))]))
    two.write_text("\n".join([HEADER, *lines("web-2", minutes)]) + "\n")
    found, intake = imported(settings, listed([str(tmp_path / "*.csv")]), tmp_path / "aside")
    assert found == sorted(expected("web-1", minutes) + expected("web-2", minutes))
    assert not intake.refused


def test_broken_lines_are_left_out_and_counted_and_no_other_is(settings: Settings, tmp_path: Path) -> None:
    text = [HEADER, *lines("web-1", range(500))]
    for at in (1, 77, 300, 301, 500):
        text[at] = "no time,web-1,eth0,1,2"
    (tmp_path / "a.csv").write_text("\n".join(text))
    found, intake = imported(settings, [tmp_path / "a.csv"], tmp_path / "aside")
    kept = [n for n in range(500) if n + 1 not in (1, 77, 300, 301, 500)]
    assert found == sorted(row for n in kept for row in expected("web-1", range(n, n + 1)))
    assert intake.refused == {"LINE_INVALID": 5}
    assert "no time" in intake.reasons["LINE_INVALID"]


def test_parquet_is_read_as_the_csv_that_it_would_be(settings: Settings, tmp_path: Path) -> None:
    """Instants with a zone, without one, and as integers of milliseconds; labels in a struct; lists are left out."""
    n = list(range(50))
    at = [START + m * MINUTE for m in n]
    rest = {
        "host": ["web-1"] * 50, "rx": [m + 0.5 for m in n], "tx": [m * 3 for m in n],
        "inside": [{"interface": f"eth{m % 2}"} for m in n], "list": [[1]] * 50,
    }  # fmt: skip
    stockholm = pl.Series(at).cast(pl.Datetime("ms", "UTC")).dt.convert_time_zone("Europe/Stockholm")
    for name, time in {"zone": stockholm, "naive": pl.Series(at).cast(pl.Datetime("ms")), "ms": pl.Series(at)}.items():
        pl.DataFrame({"time": time, **rest}).write_parquet(tmp_path / f"{name}.parquet")
        found, intake = imported(settings, [tmp_path / f"{name}.parquet"], tmp_path / "aside")
        assert found == expected("web-1", range(50)), (name, intake.reasons)


def test_files_of_an_archive_are_read_as_they_are(settings: Settings, tmp_path: Path) -> None:
    records = [(START + n, f"m-{n % 3}", "cpu{core=1}", n / 3, ("gauge", "counter")[n % 2]) for n in range(99)]
    frame = pl.DataFrame(records, schema=Telemetry.arrow_schema().names, orient="row")
    frame.with_columns(offset=pl.lit(5), partition=pl.lit(1)).write_parquet(tmp_path / "part.parquet")
    found, _ = imported(settings, [tmp_path / "part.parquet"], tmp_path / "aside")
    assert found == sorted(records)


@pytest.mark.parametrize(
    ("machine", "default", "name"), [("", "", "web-9"), ("", "site-1", "site-1"), ("told", "site-1", "told")]
)
def test_a_row_that_names_no_machine_is_of_the_one_that_is_told_else_of_the_setting_else_of_the_file(
    settings: Settings, tmp_path: Path, machine: str, default: str, name: str
) -> None:
    given = settings.input.model_copy(update={"default_machine": default})
    (tmp_path / "web-9.csv").write_text(f"time,cpu\n{START},0.5\n")
    found, _ = imported(
        settings.model_copy(update={"input": given}), [tmp_path / "web-9.csv"], tmp_path / "aside", machine
    )
    assert found == [(START, name, "cpu", 0.5, "gauge")]


def test_a_start_after_a_kill_reads_only_the_files_that_were_not_sorted_yet_or_have_changed(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{n}.csv" for n in range(3)]
    for n, path in enumerate(paths):
        path.write_text("\n".join([HEADER, *lines(f"web-{n}", range(20)), "broken"]))
    stop, read = Event(), list[str]()
    tables = FileHistory.tables

    def noted(self: FileHistory, file: Path, *rest: object) -> object:
        read.append(file.name)
        if len(read) == 2:
            stop.set()
        return tables(self, file, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(FileHistory, "tables", noted)
    with pytest.raises(StoppedError):
        FileHistory(settings, paths, "", tmp_path / "aside", stop).arrange(NOW, Intake(settings))
    (tmp_path / "aside").joinpath("half").mkdir()
    read.clear()
    stop = Event()
    found, intake = imported(settings, paths, tmp_path / "aside")
    assert read == ["1.csv", "2.csv"]
    assert found == sorted(row for n in range(3) for row in expected(f"web-{n}", range(20)))
    assert sum(intake.refused.values()) == 3
    paths[0].write_text("\n".join([HEADER, *lines("web-0", range(21))]))
    read.clear()
    imported(settings, paths, tmp_path / "aside")
    assert read == ["0.csv"]


def test_ctrl_c_ends_the_reading_of_a_file_for_an_estimate(settings: Settings, tmp_path: Path) -> None:
    stop, path, intake = Event(), tmp_path / "a.csv", Intake(settings)
    path.write_text("\n".join([HEADER, *lines("web-1", range(20))]))
    stop.set()
    with pytest.raises(StoppedError):
        list(FileHistory(settings, [path], "", tmp_path / "aside", stop).tables(path, intake, NOW))


def test_times_ahead_of_now_are_refused(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"time,host,cpu\n{START},a,1\n{NOW + DAY},a,2\n")
    found, intake = imported(settings, [tmp_path / "a.csv"], tmp_path / "aside")
    assert found == [(START, "a", "cpu", 1.0, "gauge")]
    assert intake.refused == {"TIME_AHEAD": 1}


@pytest.mark.parametrize("content", [b"", b"PAR1 but nothing else", b"\x00\x01\x02" * 500, b"only a header\n"])
def test_a_file_that_is_none_is_refused_with_a_code(settings: Settings, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    try:
        found, _ = imported(settings, [tmp_path / "a.csv"], tmp_path / "aside")
        assert found == []
    except NewnormalError as error:
        assert error.code == "FILE_UNUSABLE"


def test_a_path_that_names_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NewnormalError, match="FILE_UNUSABLE"):
        listed([str(tmp_path / "*.csv")])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_of_many_columns_is_read_whole_although_no_message_may_have_so_many_parts(
    settings: Settings, tmp_path: Path, kind: str
) -> None:
    given = settings.input.model_copy(update={"max_parts": 1_000})
    frame = pl.DataFrame({"time": [START + n * MINUTE for n in range(300)], "host": "a", "m0": 1, "m1": 2, "m2": 3})
    path = tmp_path / f"a.{kind}"
    frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    found, intake = imported(settings.model_copy(update={"input": given}), [path], tmp_path / "aside")
    assert (len(found), dict(intake.refused)) == (900, {})


def test_a_broken_line_below_the_header_refuses_no_other(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\n".join([HEADER, "broken", *lines("web-1", range(50))]))
    found, intake = imported(settings, [tmp_path / "a.csv"], tmp_path / "aside")
    assert (found, intake.refused.total()) == (expected("web-1", range(50)), 1)


@pytest.mark.parametrize("bytes_of_chunk", [50, 300, 1_000, 1_000_000])
def test_each_table_of_an_export_is_read_by_its_own_header_wherever_messages_end(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_of_chunk: int
) -> None:
    """The tables have as many columns each, so a line below the wrong header would be a sample of another series."""
    monkeypatch.setattr(files, "_CHUNK_BYTES", bytes_of_chunk)
    text, expect = "\ufeff", []
    for label in ("device", "core"):
        text += "#group,false,false,true,false,true,true,true\n"
        text += "#datatype,string,long,dateTime:RFC3339,double,string,string,string\n#default,_result,,,,,,\n"
        text += f",result,table,_time,_value,_field,host,{label}\n"
        for n in range(30):
            at = START + n * MINUTE
            stamp = datetime.fromtimestamp(at / 1000, UTC).isoformat().replace("+00:00", "Z")
            text += f",,0,{stamp},{n}.5,used,a,x{n % 2}\n" + ("broken\n" if n == 7 else "")
            expect.append((at, "a", f"used{{{label}=x{n % 2}}}", n + 0.5, "gauge"))
        text += "\n"
    (tmp_path / "a.csv").write_text(text)
    found, intake = imported(settings, [tmp_path / "a.csv"], tmp_path / "aside")
    assert found == sorted(expect)
    assert intake.refused.total() == 2


@pytest.mark.parametrize("above", ["sep=;\n", "\n\n"])
def test_what_stands_above_a_header_stands_above_it_in_each_message(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: str
) -> None:
    monkeypatch.setattr(files, "_CHUNK_BYTES", 100)
    (tmp_path / "a.csv").write_text(above + "time;host;cpu\n" + "".join(f"{START + n};a;{n}\n" for n in range(50)))
    found, intake = imported(settings, [tmp_path / "a.csv"], tmp_path / "aside")
    assert (found, dict(intake.refused)) == ([(START + n, "a", "cpu", float(n), "gauge") for n in range(50)], {})


def test_rows_of_an_archive_that_lack_a_field_are_counted(settings: Settings, tmp_path: Path) -> None:
    records = [(START, "a", "cpu", 1.0, "gauge"), (None, "a", "cpu", 2.0, "gauge"), (START + 1, None, "cpu", 3.0, None)]
    frame = pl.DataFrame(records, schema=Telemetry.arrow_schema().names, orient="row")
    frame.write_parquet(tmp_path / "part.parquet")
    found, intake = imported(settings, [tmp_path / "part.parquet"], tmp_path / "aside")
    assert (found, dict(intake.refused)) == (records[:1], {"VALUE_INVALID": 2})
