"""Influx line protocol, as clients of InfluxDB 1 (``/write``) and 2 (``/api/v2/write``) send it.

Source: the API of InfluxDB: a body is taken with 204, or refused with 400 and the reason as JSON. One of which only
some lines can be used is answered with 400 too (``partial write``), and these lines are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import orjson
import polars as pl
import pyarrow as pa

from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from engine.spec.record import Record
from pipelines.contracts import topics
from pipelines.contracts.records import Log, Telemetry
from pipelines.formats import influx_lines, parts
from pipelines.formats.catalogue import BY_NAME, guess
from pipelines.formats.influx import InfluxDecoder, usable_fields
from pipelines.formats.influx_plain import PlainLines
from pipelines.formats.measurement_logs import InfluxLogDecoder
from pipelines.formats.refusals import FORMAT_UNKNOWN, MESSAGE_EMPTY, TEXT_FIELD, Refusals
from pipelines.formats.rules import Rules
from pipelines.formats.samples import folded
from pipelines.formats.text_lines import lines
from pipelines.gateway.influx_times import NANOSECONDS, are_plain, impossible, timed
from pipelines.gateway.protocol import Body, MalformedError, NotTakenError, Protocol, Reply, Taken

_COMMENTS = re.compile(rb"(?:\s++|#[^\n]*+)*+")
LOGS = "logs"
"""The bucket (or, in version 1, the database) of measurements that are log lines."""
_MOST_DIVIDED = 50_000
"""The most lines of a body of which the broken ones are left out; each is looked at alone."""
_WORDS = {
    400: "invalid", 401: "unauthorized", 403: "forbidden", 413: "request too large", 429: "too many requests",
    500: "internal error", 503: "unavailable",
}  # fmt: skip
_UNUSED = (TEXT_FIELD, MESSAGE_EMPTY)
"""A line without a number, or without text, may stand beside those that have some; the pipeline leaves it out."""


_Decoder = InfluxDecoder | InfluxLogDecoder


@dataclass
class _LeftOut:
    """The lines that are left out.

    Args:
        count: How many.
        code: The code of the first of them.
        why: The reason of the first of them, with its number.
    """

    count: int = 0
    code: str = ""
    why: str = ""

    def add(self, wrong: Mapping[int, tuple[str, str]]) -> None:
        """Adds lines: code and reason by number."""
        if wrong and not self.count:
            number, (self.code, why) = next(iter(wrong.items()))
            self.why = f"line {number}: {why}"
        self.count += len(wrong)


class Influx(Protocol):
    """The protocol.

    Args:
        rules: How tags and fields are read.
    """

    name = "influx"

    def __init__(self, rules: Rules) -> None:
        self._decoder = InfluxDecoder(rules.labels, rules.text)
        self._decoders: dict[type[Record], tuple[str, _Decoder]] = {
            Telemetry: ("influx", self._decoder),
            Log: ("influx-logs", InfluxLogDecoder(rules.labels)),
        }
        self._joining = BY_NAME[self.name].build(rules)
        self._plain = PlainLines(self._decoder)

    def parts(self, body: Body, most: int) -> int:
        return parts.of_text(body.data, _is_log(body))

    def take(self, body: Body) -> Taken:
        precision = body.parameters.get("precision", "")
        unit = NANOSECONDS.get(precision)
        if unit is None:
            raise MalformedError("GATEWAY_PRECISION", f"precision={precision[:20]}", "ns, us, ms, s, m, h")
        logs = _is_log(body)
        topic = topics.LOGS_AGENTS if logs else topics.RAW_AGENTS
        record = Log if logs else Telemetry
        name, decoder = self._decoders[record]
        if _only_comments(body.data):
            return Taken(topic, None, 0, Reply(HTTPStatus.NO_CONTENT))
        data, records, left_out = body.data, None if logs else self._plainly(body.data, unit), _LeftOut()
        if records is None:
            data, decoded, left_out = _usable(body.data, decoder, unit)
            records = _number(decoded, data, self._joining)
        form = guess(data, record)
        if form is None or form.name != name:
            raise MalformedError(
                FORMAT_UNKNOWN, f"the body looks like {form.name if form else 'no format'}, not like Influx"
            )
        return Taken(topic, data, records, _reply(left_out))

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        return _error_reply(error.status, error.text)

    def _plainly(self, data: bytes, unit: int) -> int | None:
        """The number of records of lines that are all used, and written as they came; ``None``: not so easily."""
        counted = self._plain.count(data)
        if counted is None:
            return None
        records, stamps = counted.fields, counted.stamps
        if counted.rest:
            decoded, fields = _read(self._decoder, counted.rest)
            if any(code != TEXT_FIELD for _, code, _ in decoded.refused):
                return None
            records += _number(decoded, counted.rest, self._joining)
            stamps = [*stamps, *fields["stamp"].drop_nulls().unique()]
        return records if records and are_plain(stamps, unit) else None


def _is_log(body: Body) -> bool:
    return LOGS in (body.parameters.get("bucket"), body.parameters.get("db"))


def _usable(data: bytes, decoder: _Decoder, unit: int) -> tuple[bytes, Decoded, _LeftOut]:
    """The lines that can be used, with timestamps that say what they mean; their records; and what is left out.

    Raises:
        MalformedError: If no line can be used.
    """
    left_out = _LeftOut()
    decoded, wrong, fields = _decoded(decoder, data)
    if wrong and (data.count(b"\n") > _MOST_DIVIDED or b"\n" not in data.strip()):
        raise MalformedError(*wrong)  # no other line could be used, or they are too many to look at each
    if wrong:
        del fields  # which is several times as large as the body
        data = _without(data, _broken(decoder, data), left_out)
        decoded, _, fields = _decoded(decoder, data)
        if not decoded.records.num_rows:
            raise MalformedError(*wrong)
    if odd := impossible(fields, unit):
        coded = {number: ("GATEWAY_PRECISION", why) for number, why in odd.items()}
        data = _without(data, coded, left_out)
        decoded, _, fields = _decoded(decoder, data)
        if not decoded.records.num_rows:
            number, (code, why) = next(iter(coded.items()))
            raise MalformedError(code, f"line {number}: {why}")
    return timed(data, fields, unit), decoded, left_out


def _number(decoded: Decoded, data: bytes, joining: Decoder) -> int:
    """How many records the pipeline makes of lines; of those of folded series some may become one.

    Args:
        decoded: What the lines become, each by itself.
        data: The lines.
        joining: Decodes them as the pipeline does.
    """
    names = decoded.records.schema.names
    if "metric" in names and folded(decoded.records.column("metric").combine_chunks()).any():
        decoded = joining.decode(Messages.of([data]))
    return int(decoded.records.num_rows)


def _decoded(decoder: _Decoder, data: bytes) -> tuple[Decoded, tuple[str, str] | None, pl.DataFrame]:
    """What lines become; code and reason if some of it cannot be used; and the fields of the lines."""
    decoded, fields = _read(decoder, data)
    if decoded.records.num_rows:
        wrong = next(((code, why) for _, code, why in decoded.refused if code not in _UNUSED), None)
        return decoded, wrong, fields
    nothing = (0, MESSAGE_EMPTY, "the lines hold no value that is used")
    return decoded, (decoded.refused[0] if decoded.refused else nothing)[1:], fields


def _read(decoder: _Decoder, data: bytes) -> tuple[Decoded, pl.DataFrame]:
    """What lines become, and their fields; none if they are refused."""
    refusals, message = Refusals(), Messages.of([data])
    fields = usable_fields(message, refusals)
    return decoder.of_fields(fields, message, refusals), fields


def _broken(decoder: _Decoder, data: bytes) -> dict[int, tuple[str, str]]:
    """The lines that cannot be used, by number: code and reason. Each is decoded as if it came alone."""
    split = _lines(data)
    decoded = decoder.decode(Messages.of([text.encode() for text in split["line"]]))
    used, numbers = set(decoded.records.column(ROW).to_pylist()), split["number"].to_list()
    return {
        numbers[row]: (code, why.removeprefix("line 1: "))
        for row, code, why in decoded.refused
        if row not in used and code not in _UNUSED
    }


def _without(data: bytes, wrong: Mapping[int, tuple[str, str]], left_out: _LeftOut) -> bytes:
    """The other lines."""
    left_out.add(wrong)
    return "\n".join(_lines(data).filter(~pl.col("number").is_in(list(wrong)))["line"]).encode()


def _lines(data: bytes) -> pl.DataFrame:
    return lines(pa.array([data], pa.binary()), Refusals(), influx_lines.WHOLE_LINE)


def _only_comments(data: bytes) -> bool:
    r"""Whether a body has no line but empty ones and comments.

    >>> _only_comments(b" \n# why\r\n"), _only_comments(b"# why\n\nm v=1")
    (True, False)
    """
    return _COMMENTS.fullmatch(data) is not None


def _reply(left_out: _LeftOut) -> Reply:
    if not left_out.count:
        return Reply(HTTPStatus.NO_CONTENT)
    why = f"partial write: {left_out.count} lines left out, the first because {left_out.why}"
    return _error_reply(HTTPStatus.BAD_REQUEST, f"{left_out.code}: {why}; the others were written")


def _error_reply(status: int, text: str) -> Reply:
    content = {"code": _WORDS.get(status, "invalid"), "message": text, "error": text}
    return Reply(status, orjson.dumps(content), "application/json")
