"""rsyslog's messages: what a real one wrote is read whole; anything else harms no neighbour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from engine.spec.decoder import Decoded, Messages
from pipelines.contracts.records import Log
from pipelines.formats.line_decoder import OwnLogDecoder
from pipelines.formats.rsyslog import RsyslogDecoder

SAMPLE = Path(__file__).parents[4] / "shared" / "samples" / "rsyslog.json.ndjson"
GOOD = {"ts": "2026-11-21T01:00:00+01:00", "host": "a", "severity": 4, "program": "sshd", "msg": " no"}
ANYTHING = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.none(), max_size=1)
)


def _read(values: list[bytes | None]) -> Decoded:
    n = len(values)
    return RsyslogDecoder().decode(
        Messages("logs.rsyslog", 0, pa.array(values, pa.binary()), np.arange(n), np.zeros(n))
    )


@pytest.mark.skipif(not SAMPLE.exists(), reason=f"samples of real agents lie beside the repository: {SAMPLE} is absent")
def test_what_a_real_rsyslog_wrote_is_read_whole() -> None:
    lines: list[bytes | None] = [*SAMPLE.read_bytes().splitlines()]
    decoded = _read(lines)
    assert decoded.refused == []
    assert decoded.records.num_rows == len(lines)
    first = decoded.records.to_pylist()[0]
    assert (first["entity"], first["program"], first["severity"]) == ("host-a", "nginx", 6)
    assert first["message"] == "GET /api/v1/items/1 200 1ms"


def test_the_time_is_an_instant_whatever_the_offset() -> None:
    assert _read([json.dumps(GOOD).encode()]).records["time"].to_pylist() == [1_795_219_200_000]
    assert _read([json.dumps(GOOD | {"ts": "2026-11-21T01:00:00"}).encode()]).refused[0][1] == "FIELD_INVALID"


@hypothesis(deadline=None, max_examples=60)
@given(st.sampled_from([*GOOD]), ANYTHING)
def test_a_message_with_anything_in_it_harms_no_neighbour(field: str, value: Any) -> None:
    bad = json.dumps(GOOD | {field: value}).encode()
    decoded = _read([json.dumps(GOOD).encode(), bad, b"\xff{", None, json.dumps(GOOD).encode()])
    assert {row for row, _, _ in decoded.refused} <= {1, 2, 3}
    assert {2, 3} <= {row for row, _, _ in decoded.refused}
    assert decoded.records["__row"].to_pylist()[0] == 0
    assert decoded.records["__row"].to_pylist()[-1] == 4


def test_a_line_without_a_severity_is_informational_and_one_without_a_program_has_a_dash() -> None:
    bare = {name: value for name, value in GOOD.items() if name not in ("severity", "program")}
    (row,) = _read([json.dumps(bare).encode()]).records.to_pylist()
    assert (row["severity"], row["program"], row["message"]) == (6, "-", "no")


def test_a_json_line_without_a_severity_is_informational() -> None:
    line = {"@timestamp": 1_700_000_000_000, "host.name": "a", "message": "no"}
    messages = Messages("logs.json", 0, pa.array([json.dumps(line).encode()]), np.array([0]), np.array([0]))
    (row,) = OwnLogDecoder(Log).decode(messages).records.to_pylist()
    assert (row["severity"], row["program"]) == (6, "-")
