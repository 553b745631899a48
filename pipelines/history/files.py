"""History from CSV and Parquet files.

Files need not be in the order of time, and each may be of another machine. So their samples are first sorted into days,
in files beside the archive, and then imported day by day. A file that has been sorted is not read again by the next
start, unless it was changed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from functools import partial, reduce
from glob import glob, has_magic  # a pattern may be absolute, which `Path.glob` refuses
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings
from pipelines.contracts.tables.exports import is_annotation, is_header, several
from pipelines.formats.refusals import FORMAT_UNKNOWN, LINE_INVALID
from pipelines.history.importing import MOST_ROWS, HistorySource
from pipelines.history.intake import Intake, StoppedError, TooMuchError, refused_in
from pipelines.jobs.archive.layout import DAY_MS, day_of, place

_CHUNK_BYTES = 1_500_000
"""Bytes of lines that become one message."""

_CHUNK_ROWS = 20_000
_LONGEST_LINE = 1 << 20
"""Bytes; a longer line is read as several, which are refused."""

_MOST_TRIES = 2_000
_OF_A_LINE = (LINE_INVALID, FORMAT_UNKNOWN)
"""Codes of a message that one broken line may cause: of the format, if it is the first one below the header."""

_BOM = b"\xef\xbb\xbf"
_MARKED = 40
"""Bytes of a line that show whether it is one of fields."""

_INSTANT = "%Y-%m-%dT%H:%M:%S%.6f"
_SORTED_ROWS = 1_000_000
"""Samples of a file that are in memory at a time."""

_NOW = "nothing was imported"


def listed(patterns: list[str]) -> list[Path]:
    """The files that paths, folders and globs name, sorted, each once.

    Raises:
        NewnormalError: ``FILE_UNUSABLE`` if one names none.
    """
    found: set[Path] = set()
    for pattern in patterns:
        path = Path(pattern).expanduser()
        if path.is_dir():
            files = [file for kind in ("csv", "parquet") for file in path.rglob(f"*.{kind}")]
        else:
            names = glob(str(path), recursive=True) if has_magic(pattern) else [path]  # noqa: PTH207
            files = [Path(name) for name in names]
        files = [file.resolve() for file in files if file.is_file()]
        if not files:
            accepted = "files of CSV or Parquet, folders of them, or globs"
            raise NewnormalError("FILE_UNUSABLE", "there is no such file", pattern, accepted, _NOW)
        found.update(files)
    return sorted(found)


class FileHistory(HistorySource):
    """The samples of files.

    Args:
        settings: The settings.
        files: The files.
        machine: The machine of rows that name none; empty: ``input.default_machine``, else the file's name.
        aside: Folder for what is sorted.
        stop: When set, reading ends.
    """

    def __init__(self, settings: Settings, files: list[Path], machine: str, aside: Path, stop: Event) -> None:
        self._settings, self._files, self._machine, self._aside, self._stop = settings, files, machine, aside, stop
        self.origin = f"{len(files)} files, {files[0]}"[:400]
        self._days: dict[str, list[Path]] = {}

    def arrange(self, now: int, intake: Intake) -> tuple[int, int, int] | None:
        """Sorts the samples of all files into days.

        Args:
            now: The present, epoch milliseconds: later times are refused.
            intake: Counts what is refused.

        Returns:
            The first event time, the one behind the last, and the number of samples; ``None`` without samples.

        Raises:
            NewnormalError: ``FILE_UNUSABLE`` if a file cannot be read.
            StoppedError: If the import was stopped.
        """
        spans: list[tuple[int, int, int]] = []
        for file in self._files:
            folder, told = self._arranged(file, now)
            for code, (why, number) in told["refused"].items():
                intake.count(code, why, number)
            if told["samples"]:
                spans.append((told["first"], told["last"], told["samples"]))
            for part in folder.glob("*.parquet"):
                self._days.setdefault(part.name[:10], []).append(part)
        if not spans:
            return None
        return min(a for a, _, _ in spans), max(b for _, b, _ in spans) + 1, sum(n for _, _, n in spans)

    def tables(self, file: Path, intake: Intake, now: int) -> Iterator[pa.Table]:
        """The samples of a file, some hundred thousand at a time, in the order of its rows.

        Raises:
            NewnormalError: ``FILE_UNUSABLE``.
            StoppedError: If the import was stopped.
        """
        try:
            for table in _parquet(file, intake, now) if _is_parquet(file) else _lines(file, intake, now):
                if self._stop.is_set():
                    raise StoppedError
                yield table
        except (OSError, pa.ArrowException, pl.exceptions.PolarsError) as error:
            accepted = "a file of CSV or Parquet that can be read"
            raise NewnormalError("FILE_UNUSABLE", str(error).splitlines()[0][:300], str(file), accepted, _NOW) from None

    def intake_of(self, file: Path) -> Intake:
        """What reads a file: a machine is named by its rows, the settings, or the file."""
        given = self._settings.input
        machine = self._machine or given.default_machine or file.name.partition(".")[0]
        return Intake(
            self._settings.model_copy(update={"input": given.model_copy(update={"default_machine": machine})})
        )

    def read(self, begin: int, end: int, intake: Intake) -> pa.Table:
        parts, rows = [Telemetry.arrow_schema().empty_table()], 0
        for number in range(begin // DAY_MS, (end - 1) // DAY_MS + 1):
            for file in self._days.get(day_of(number), ()):
                part = pq.read_table(file, filters=[("time", ">=", begin), ("time", "<", end)], partitioning=None)
                parts.append(part.cast(Telemetry.arrow_schema()))
                rows += part.num_rows
                if rows > MOST_ROWS:
                    raise TooMuchError(f"more than {MOST_ROWS:,} samples")
        return pa.concat_tables(parts).unify_dictionaries().combine_chunks()

    def forget(self) -> None:
        """Removes what was sorted."""
        shutil.rmtree(self._aside, ignore_errors=True)

    def _arranged(self, file: Path, now: int) -> tuple[Path, dict[str, Any]]:
        """The folder with the sorted samples of a file, and what was found in it."""
        try:
            stat = file.stat()
        except OSError as error:
            raise NewnormalError("FILE_UNUSABLE", str(error), str(file), "a file that can be read", _NOW) from None
        identity = f"{file} {stat.st_size} {stat.st_mtime_ns} {self._machine} {self._settings.input.model_dump_json()}"
        folder = self._aside / hashlib.sha256(identity.encode()).hexdigest()[:24]
        done = folder / "done.json"
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            told = self._sort(file, folder, now)
            made = done.with_suffix(".new")
            made.write_text(json.dumps(told))
            place(made, done)
        return folder, json.loads(done.read_text())

    def _sort(self, file: Path, folder: Path, now: int) -> dict[str, Any]:
        intake = self.intake_of(file)
        held: list[pa.Table] = []
        first, last, samples, number = 2**62, -(2**62), 0, 0
        for table in self.tables(file, intake, now):
            held.append(table)
            if table.num_rows:
                span = pc.min_max(table["time"])
                first, last = min(first, span["min"].as_py()), max(last, span["max"].as_py())
            samples += table.num_rows
            if sum(part.num_rows for part in held) > _SORTED_ROWS:
                _by_day(held, folder, number)
                held, number = [], number + 1
        _by_day(held, folder, number)
        refused = {code: (intake.reasons[code], count) for code, count in intake.refused.items()}
        return {"first": first, "last": last, "samples": samples, "refused": refused}


def _by_day(tables: list[pa.Table], folder: Path, number: int) -> None:
    """Writes samples to a file for each of their days, in the order of time."""
    if not any(table.num_rows for table in tables):
        return
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    table = table.take(pa.array(np.argsort(table["time"].to_numpy(), kind="stable")))
    days = table["time"].to_numpy() // DAY_MS
    for day in np.unique(days).tolist():
        begin, end = np.searchsorted(days, [day, day + 1]).tolist()
        part = table.slice(begin, end - begin)
        pq.write_table(part, folder / f"{day_of(day)}-{number:06d}.parquet", compression="zstd", row_group_size=100_000)


def _is_parquet(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(4) == b"PAR1"


def _lines(file: Path, intake: Intake, now: int) -> Iterator[pa.Table]:
    """The samples of CSV: each message is a header, with what stands above it, and some lines of its table."""
    with file.open("rb") as opened:
        for header, lines in _tables(opened):
            yield from _usable(header, lines, intake, now)


def _tables(opened: BinaryIO) -> Iterator[tuple[bytes, list[bytes]]]:
    """Headers, each with lines that follow it; what a program exports may have several tables."""
    above, header, lines, size, export = b"", b"", list[bytes](), 0, False
    for number, read in enumerate(iter(partial(opened.readline, _LONGEST_LINE), b"")):
        line = read.removeprefix(_BOM) if not number else read
        begin = line[:_MARKED].decode("latin-1")
        if not line.strip():
            continue
        if not header and not above:
            export = several(begin)
        if export and is_annotation(begin):
            above = (above + line)[-_LONGEST_LINE:]
        elif above or not header or (export and is_header(begin)):
            if lines:
                yield header, lines
            header, above, lines, size = above + line, b"", [], 0
        else:
            lines.append(line)
            size += len(line)
        if size > _CHUNK_BYTES:
            yield header, lines
            lines, size = [], 0
    if lines:
        yield header, lines


def _usable(header: bytes, lines: list[bytes], intake: Intake, now: int) -> Iterator[pa.Table]:
    """The samples of some lines, without broken ones.

    A message with a broken line is refused as a whole, so it is divided until that line is alone; after `_MOST_TRIES`
    what is left is refused as it is.
    """
    left, tries = [lines], 0
    while left:
        part = left.pop()
        table, letters = intake.tried([header + b"".join(part)], now)
        tries += 1
        whole = any(letter.refused is None and letter.code in _OF_A_LINE for letter in letters)
        if whole and len(part) > 1 and tries < _MOST_TRIES:
            left += [part[len(part) // 2 :], part[: len(part) // 2]]
            continue
        for letter in letters:
            intake.count(letter.code, letter.reason, len(part) if letter.refused is None else refused_in(letter))
        yield table


def _parquet(file: Path, intake: Intake, now: int) -> Iterator[pa.Table]:
    """The samples of Parquet: those of an archive as they are, others as the CSV that they would be."""
    opened = pq.ParquetFile(file)
    schema = Telemetry.arrow_schema()
    own = set(schema.names) <= set(opened.schema_arrow.names)
    for batch in opened.iter_batches(_CHUNK_ROWS, columns=schema.names if own else None):
        table = pa.Table.from_batches([batch])
        if own:
            yield intake.checked(_whole(table, schema, intake), now)
        else:
            header, *lines = _csv(pl.DataFrame(table)).splitlines(keepends=True)
            yield from _usable(header, lines, intake, now)


def _whole(table: pa.Table, schema: pa.Schema, intake: Intake) -> pa.Table:
    """The records of a table, without those that lack what none may lack."""
    needed = [field.name for field in schema if not field.nullable]
    kept = table.filter(reduce(pc.and_, (pc.is_valid(table[name]) for name in needed)))
    if missing := table.num_rows - kept.num_rows:
        intake.count("VALUE_INVALID", f"no {' or '.join(needed)}", missing)
    return kept.cast(schema)


def _csv(frame: pl.DataFrame) -> bytes:
    """A table as CSV: fields of structs are columns, lists and bytes are left out, instants have their zone."""
    while nested := [name for name, kind in frame.schema.items() if isinstance(kind, pl.Struct)]:
        frame = frame.unnest(nested)
    plain = frame.select(name for name, kind in frame.schema.items() if not kind.is_nested() and kind != pl.Binary)
    zoned = [name for name, kind in plain.schema.items() if isinstance(kind, pl.Datetime) and kind.time_zone]
    plain = plain.with_columns(pl.col(name).dt.convert_time_zone("UTC").dt.strftime(f"{_INSTANT}Z") for name in zoned)
    return plain.write_csv(datetime_format=_INSTANT).encode()
