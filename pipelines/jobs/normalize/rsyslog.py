"""The decoder of rsyslog's JSON (omkafka with a JSON template): each message is one log line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
import pyarrow as pa
from pydantic import ValidationError

from engine.formats.dead_letters import payload_text
from engine.formats.json_decoder import FIELD_INVALID, JSON_MALFORMED
from engine.formats.refusals import explain
from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from pipelines.contracts.records import Log


@dataclass(frozen=True)
class RsyslogDecoder(Decoder):
    """Decodes messages with the fields ``ts`` (RFC 3339), ``host``, ``program``, ``severity`` (0 to 7) and ``msg``.

    >>> import numpy as np
    >>> line = b'{"ts": "2026-11-21T00:28:54.5+00:00", "host": "a", "severity": 4, "program": "sshd", "msg": " no"}'
    >>> messages = Messages("logs.rsyslog", 0, pa.array([line]), np.array([0]), np.array([0]))
    >>> RsyslogDecoder().decode(messages).records.to_pylist()[0]["message"]
    'no'
    """

    def decode(self, messages: Messages) -> Decoded:
        rows: list[dict[str, Any]] = []
        refused: list[tuple[int, str, str]] = []
        for row, value in enumerate(messages.values.to_pylist()):
            try:
                parsed = orjson.loads(value or b"")
                rows.append(_log(parsed) | {ROW: row})
            except ValidationError as error:
                refused.append((row, FIELD_INVALID, explain(error, Log)))
            except orjson.JSONDecodeError as error:
                refused.append((row, JSON_MALFORMED, f"{error}: {payload_text(value)[:80]}"))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                refused.append((row, FIELD_INVALID, f"not an rsyslog message: {type(error).__name__} {error}"))
        schema = Log.arrow_schema().append(pa.field(ROW, pa.int32()))
        return Decoded(pa.Table.from_pylist(rows, schema), refused)


def _log(parsed: Any) -> dict[str, Any]:
    when = datetime.fromisoformat(parsed["ts"])
    if when.tzinfo is None:
        raise ValueError(f"ts {parsed['ts']!r} has no offset from UTC")
    fields = {"time": round(when.timestamp() * 1000), "entity": parsed["host"], "program": parsed.get("program", "")}
    return Log(**fields, severity=parsed.get("severity", 6), message=parsed["msg"].strip()).model_dump()
