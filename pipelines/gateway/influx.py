"""Influx line protocol, as clients of InfluxDB 1 (``/write``) and 2 (``/api/v2/write``) send it.

Source: the API of InfluxDB: a body is taken with 204, or refused with 400 and the reason as JSON. The pipeline tells
the unit of timestamps by their magnitude, so that the parameter ``precision`` is checked against that here.
"""

from __future__ import annotations

import re
from http import HTTPStatus

import numpy as np
import orjson
import polars as pl
import pyarrow as pa

from engine.spec.duration import iso
from pipelines.contracts import topics
from pipelines.contracts.records import Log, Telemetry
from pipelines.gateway.protocol import Body, MalformedError, NotTakenError, Protocol, Reply, Taken
from pipelines.jobs.normalize import influx_lines
from pipelines.jobs.normalize.formats import BY_NAME, Rules, guess
from pipelines.jobs.normalize.measurement import epochs_ms
from pipelines.jobs.normalize.refusals import FORMAT_UNKNOWN, MESSAGE_EMPTY, Refusals
from pipelines.jobs.normalize.text_lines import lines

_MS = 1_000_000
_NANOSECONDS = {
    "": 1, "n": 1, "ns": 1, "u": 1_000, "us": 1_000, "µ": 1_000, "µs": 1_000, "ms": _MS, "s": 1_000 * _MS,
    "m": 60_000 * _MS, "h": 3_600_000 * _MS,
}  # fmt: skip
_EARLIEST, _LATEST = 10**11, 4_102_444_800_000
"""Times before 1973 and after 2100, epoch milliseconds, are times in another unit."""

_COMMENTS = re.compile(rb"(?:\s++|#[^\n]*+)*+")
LOGS = "logs"
"""The bucket (or, in version 1, the database) of measurements that are log lines."""
_WORDS = {
    400: "invalid", 401: "unauthorized", 403: "forbidden", 413: "request too large", 429: "too many requests",
    503: "unavailable",
}  # fmt: skip


class Influx(Protocol):
    """The protocol.

    Args:
        rules: How tags and fields are read.
    """

    name = "influx"

    def __init__(self, rules: Rules) -> None:
        self._decoders = {
            record: (name, BY_NAME[name].build(rules)) for record, name in ((Telemetry, "influx"), (Log, "influx-logs"))
        }

    def take(self, body: Body) -> Taken:
        given = body.parameters.get("precision", "")
        unit = _NANOSECONDS.get(given)
        if unit is None:
            raise MalformedError("GATEWAY_PRECISION", f"precision={given[:20]}", "ns, us, ms, s, m, h")
        logs = LOGS in (body.parameters.get("bucket"), body.parameters.get("db"))
        topic = topics.LOGS_AGENTS if logs else topics.RAW_AGENTS
        record = Log if logs else Telemetry
        name, decoder = self._decoders[record]
        if _only_comments(body.data):
            return Taken(topic, None, 0, Reply(HTTPStatus.NO_CONTENT))
        decoded = decoder.decode(body.message())
        if not decoded.records.num_rows:
            nothing = (0, MESSAGE_EMPTY, "the lines hold no value that is used")
            raise MalformedError(*(decoded.refused[0] if decoded.refused else nothing)[1:])
        value = _timed(body.data, unit)
        form = guess(value, record)
        if form is None or form.name != name:
            raise MalformedError(
                FORMAT_UNKNOWN, f"the body looks like {form.name if form else 'no format'}, not like Influx"
            )
        return Taken(topic, value, decoded.records.num_rows, Reply(HTTPStatus.NO_CONTENT))

    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        told = {"code": _WORDS.get(error.status, "invalid"), "message": error.text, "error": error.text}
        return Reply(error.status, orjson.dumps(told), "application/json")


def _only_comments(data: bytes) -> bool:
    r"""Whether a body has no line but empty ones and comments.

    >>> _only_comments(b" \n# why\r\n"), _only_comments(b"# why\n\nm v=1")
    (True, False)
    """
    return _COMMENTS.fullmatch(data) is not None


def _timed(data: bytes, unit: int) -> bytes:
    """The lines, with timestamps that are read as what they mean.

    Args:
        data: The lines, which are right.
        unit: The unit of their timestamps, nanoseconds.

    Raises:
        NotTakenError: ``GATEWAY_PRECISION`` if a timestamp cannot be in that unit.
    """
    found = influx_lines.fields(lines(pa.array([data], pa.binary()), Refusals(), influx_lines.WHOLE_LINE))
    stamped = found.filter(pl.col("stamp").is_not_null())
    stamps = stamped["stamp"].to_numpy()
    meant = stamps.astype(np.float64) * (unit / _MS)
    odd = (meant < _EARLIEST) | (meant > _LATEST)
    if odd.any():
        number, stamp = stamped["number"][int(odd.argmax())], int(stamps[odd.argmax()])
        raise MalformedError("GATEWAY_PRECISION", f"line {number}: {stamp} is no time in that unit", _right(stamp))
    times = stamps * (unit // _MS) if unit >= _MS else stamps // (_MS // unit)
    if (times == epochs_ms(stamps)).all():
        return data
    known = found.with_columns(time=pl.col("stamp") * unit)
    text = pl.concat_str("key", pl.lit("="), "raw").str.join(",")
    whole = known.group_by("number", maintain_order=True).agg(
        pl.col("head").first(), text.alias("f"), pl.col("time").first()
    )
    ends = ("" if time is None else f" {time}" for time in whole["time"])
    return "\n".join(f"{head} {f}{end}" for head, f, end in zip(whole["head"], whole["f"], ends, strict=True)).encode()


def _right(stamp: int) -> str:
    """The precision in which a timestamp would be a time."""
    for name in ("s", "ms", "us", "ns"):
        time = stamp * _NANOSECONDS[name] // _MS
        if _EARLIEST <= time <= _LATEST:
            return f"precision={name}, if {iso(time)} is meant"
    return "timestamps of 1973 to 2100 in the unit of the parameter precision (default: ns)"
