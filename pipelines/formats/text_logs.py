"""The base of decoders of log lines that are text: a message holds one or several, which are read by the column.

A line that cannot be used is left out, with a dead letter for the first of its message; the others are used.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import orjson
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from engine.formats.json_decoder import FIELD_INVALID
from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from pipelines.contracts.records import Log
from pipelines.formats import line_times
from pipelines.formats.line_decoder import LONGEST_LINE, NO_PROGRAM
from pipelines.formats.refusals import LINE_INVALID, MACHINE_UNKNOWN, Refusals
from pipelines.formats.samples import LONGEST
from pipelines.formats.severities import INFO, UNKNOWN, severity_of
from pipelines.formats.text_lines import lines

LEVELS = (
    *("trace", "debug", "info", "notice", "warn", "warning", "error", "err", "crit", "critical", "fatal", "severe"),
    *("alert", "emerg"),
)
"""What applications write where syslog has the host; such a line names no machine."""
_NO_MACHINE = "the line names no machine"
_TOO_LONG = f"a name is longer than {LONGEST} characters, or the text longer than {LONGEST_LINE}"


@dataclass(frozen=True)
class TextLogDecoder(Decoder):
    """Decodes lines of text. Subclasses define the format.

    Args:
        zone: The time zone of times that name none, e.g. ``Europe/Stockholm``.
        machine: The machine of lines that name none; empty: such lines cannot be used.
    """

    zone: str = "UTC"
    machine: str = ""

    accepted: ClassVar[str]
    """What a line looks like, for reasons."""
    patterns: ClassVar[tuple[str, ...]]
    """Patterns of a line, of which the first that fits is used. Their named groups are `PARTS`; what a pattern does not
    name, lines of its kind do not have."""

    def decode(self, messages: Messages) -> Decoded:
        refusals = Refusals()
        split = self._read(messages, refusals)
        wrong = split.filter(pl.col("wrong").is_not_null())
        if wrong.height:
            split = split.filter(pl.col("wrong").is_null())
            _tell(wrong, set(split["row"].unique()), refusals)
        return Decoded(_table(split), refusals.all())

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        good = self._read(Messages.of([value]), Refusals()).filter(pl.col("wrong").is_null())["line"].to_list()
        return "\n".join(good[at] for at in sorted(records)).encode()

    def _read(self, messages: Messages, refusals: Refusals) -> pl.DataFrame:
        """The lines with their parts; ``wrong`` says what is wrong with one, null if nothing is."""
        split = self.parts(lines(_readable(messages.values), refusals, end="\r\n"))
        arrived = pl.Series("arrived", messages.arrived[split["row"].to_numpy()])
        split = split.with_columns(line_times.of(split["stamp"], arrived, self.zone).alias("time"))
        machine, program, message = pl.col("entity"), pl.col("program"), pl.col("message").str.strip_chars()
        split = split.with_columns(
            entity=pl.when(machine.fill_null("") == "").then(pl.lit(self.machine)).otherwise(machine),
            program=pl.when(program.fill_null("") == "").then(pl.lit(NO_PROGRAM)).otherwise(program),
            severity=_severities(split["severity"]),
            level=pl.col("severity").str.head(40),
            message=message,
        )
        unknown = split["severity"] == UNKNOWN
        if unknown.any():
            split = split.with_columns(
                message=pl.when(unknown).then(pl.format("level={} {}", "level", message)).otherwise(message)
            )
        long = pl.any_horizontal(pl.col(name).str.len_chars() > LONGEST for name in ("entity", "program"))
        wrong = (
            pl.when(message.is_null() | (message == ""))
            .then(pl.lit(self.accepted))
            .when(pl.col("time").is_null())
            .then(pl.lit("its time is none: ") + pl.col("stamp").str.head(80))
            .when(pl.col("entity") == "")
            .then(pl.lit(_NO_MACHINE))
            .when(long | (message.str.len_chars() > LONGEST_LINE))
            .then(pl.lit(_TOO_LONG))
        )
        return split.with_columns(wrong=wrong)

    def parts(self, rest: pl.DataFrame) -> pl.DataFrame:
        """The lines with their parts; each pattern is tried on those lines that the patterns before it do not fit."""
        matched = []
        for pattern in self.patterns:
            read = rest.with_columns(groups(pl.col("line"), pattern).alias("parts")).unnest("parts")
            level = pl.col("entity").str.to_lowercase().is_in(LEVELS)
            fits = pl.col("message").is_not_null() & ~level.fill_null(value=False)
            matched.append(read.filter(fits))
            rest = read.filter(~fits).select(rest.columns)
            if rest.height == 0:
                break
        else:
            matched.append(rest.with_columns(pl.lit(None, pl.String).alias(name) for name in PARTS))
        parts = [each for each in matched if each.height] or matched[:1]
        read = parts[0] if len(parts) == 1 else pl.concat(parts).sort("row", "number")
        return self.finished(_joined(read) if read["more"].null_count() < read.height else read)

    def finished(self, split: pl.DataFrame) -> pl.DataFrame:
        """The lines with their parts as they are meant, where patterns alone do not suffice."""
        return split


PARTS = ("stamp", "entity", "program", "severity", "message", "more", "stream")
"""The parts of a line, all text: the time, null for that of the arrival; the machine, the program and the severity (a
digit or a name), null or empty if the line has none; the text; and, if the text goes on in the next line of the same
stream and message, a mark of that, and the name of the stream."""


def groups(line: pl.Expr, pattern: str) -> pl.Expr:
    """The named groups of a pattern as a structure of all `PARTS`; those that the pattern does not name are null.

    >>> pl.select(groups(pl.lit("a: no"), r"^(?<program>[a-z]+): (?<message>.*)$")).item()
    {'stamp': None, 'entity': None, 'program': 'a', 'severity': None, 'message': 'no', 'more': None, 'stream': None}
    """
    matched = line.str.extract_groups(pattern)
    named = [name for name in PARTS if f"(?<{name}>" in pattern]
    parts = [matched.struct.field(name) if name in named else pl.lit(None, pl.String).alias(name) for name in PARTS]
    return pl.struct(parts)


def unescaped(texts: pl.Series, escaped: pl.Series) -> pl.Series:
    """The texts, and what those of JSON that have escapes mean.

    Args:
        texts: The texts, without their quotes.
        escaped: Which of them have escapes; one that JSON does not know stands for itself.
    """
    inner = texts.filter(escaped).to_list()
    try:
        meant = orjson.loads('["' + '","'.join(inner) + '"]')
    except ValueError:
        meant = [_meant(text) for text in inner]
    out = texts.to_list()
    for at, text in zip(escaped.arg_true().to_list(), meant, strict=True):
        out[at] = text
    return pl.Series(texts.name, out, pl.String)


def _meant(text: str) -> str:
    try:
        return str(orjson.loads(f'"{text}"'))
    except ValueError:
        return text


def _joined(split: pl.DataFrame) -> pl.DataFrame:
    """The lines, where those whose text goes on are one with what follows them in their stream."""
    begins = pl.col("more").shift(1).over("row", "stream").fill_null("") == ""
    split = split.with_columns(number_of=begins.cast(pl.Int64).cum_sum().over("row", "stream"))
    together = split.group_by("row", "stream", "number_of", maintain_order=True).agg(
        pl.col("number", "stamp", "entity", "program", "severity", "more").first(),
        *(pl.col("line").str.join("\n"), pl.col("message").str.join(""), pl.col("message").null_count().alias("gaps")),
    )
    together = together.with_columns(message=pl.when(pl.col("gaps") == 0).then("message"))
    return together.select(name for name in split.columns if name != "number_of")


def _severities(levels: pl.Series) -> pl.Series:
    """The severities that digits or names say; each distinct text is read once."""
    if levels.null_count() == len(levels):
        return pl.Series("severity", [INFO], pl.Int64).new_from_index(0, len(levels))
    severities = {text: UNKNOWN if (code := severity_of(text)) is None else code for text in levels.unique()}
    return levels.replace_strict(severities, return_dtype=pl.Int64)


def _readable(values: pa.Array) -> pa.Array:
    """The messages with U+FFFD in the place of what is no UTF-8: files of logs have no declared encoding."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if each is None else each.decode(errors="replace").encode() for each in values.to_pylist()]
        return pa.array(texts, pa.binary())
    return values


def _tell(wrong: pl.DataFrame, used: set[int], refusals: Refusals) -> None:
    """Refuses the messages of lines that cannot be used, wholly or, if other lines of them are used, in part."""
    each = wrong.group_by("row", maintain_order=True).agg(pl.col("number", "wrong", "line").first(), pl.len())
    for row, number, why, line, count in each.iter_rows():
        code = {_NO_MACHINE: MACHINE_UNKNOWN, _TOO_LONG: FIELD_INVALID}.get(why, LINE_INVALID)
        more = f"; {count - 1} more lines are left out" if count > 1 else ""
        reason = f"line {number}: {why}: {line[:80]!r}{more}"
        if row in used:
            refusals.parts.append((row, code, reason))
        else:
            refusals.add(row, code, reason)


def _table(used: pl.DataFrame) -> pa.Table:
    schema = Log.arrow_schema().append(pa.field(ROW, pa.int32()))
    columns = used.select(*(name for name in schema.names if name != ROW), pl.col("row").alias(ROW)).to_arrow()
    arrays = []
    for field in schema:
        column = columns.column(field.name)
        if pa.types.is_dictionary(field.type):
            column = pc.dictionary_encode(column.cast(pa.string()))
        arrays.append(column.cast(field.type).combine_chunks())
    return pa.Table.from_arrays(arrays, schema=schema)
