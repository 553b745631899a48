"""Reads messages of any format as the jobs do, and counts what became of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from pipelines.contracts.records import Log
from pipelines.formats.catalogue import BY_NAME
from pipelines.formats.rules import Rules

SAMPLES = Path(__file__).parents[4] / "shared" / "samples"
ARRIVED = 1_795_220_900_000
RULES = Rules(machine="edge")
"""Lines that name no machine are of the machine ``edge``."""


def decoder(name: str) -> Decoder:
    return BY_NAME[name].build(RULES)


def decoded(by: Decoder, *values: bytes | None, arrived: int = ARRIVED) -> Decoded:
    n = len(values)
    messages = Messages("topic", 0, pa.array(values, pa.binary()), np.arange(n), np.full(n, arrived))
    found = by.decode(messages)
    found.records.validate(full=True)
    return found


def samples(name: str, *values: bytes | None) -> list[tuple[int, str, str, float, str]]:
    """(time, machine, metric, value, kind) of each sample; no message may be refused."""
    found = decoded(decoder(name), *values)
    assert found.refused == []
    return [(r["time"], r["entity"], r["metric"], r["value"], r["kind"]) for r in found.records.to_pylist()]


def log_lines(name: str, *values: bytes | None) -> list[tuple[int, str, str, int, str]]:
    """(time, machine, program, severity, message) of each line; no message may be refused."""
    found = decoded(decoder(name), *values)
    assert found.refused == []
    return [(r["time"], r["entity"], r["program"], r["severity"], r["message"]) for r in found.records.to_pylist()]


def refusals(name: str, *values: bytes | None) -> list[tuple[int, str]]:
    """Index of the message and code of each refusal."""
    return [(row, code) for row, code, why in decoded(decoder(name), *values).refused if why]


def fates(found: Decoded, messages: int) -> tuple[set[int], set[int], set[int]]:
    """The messages that became records, those that were refused wholly or in part, and those of which nothing came."""
    used = set(found.records.column(ROW).to_pylist())
    refused = {row for row, _, _ in found.refused}
    return used, refused, set(range(messages)) - used - refused


def expected_schema(name: str) -> pa.Schema:
    return BY_NAME[name].record.arrow_schema().append(pa.field(ROW, pa.int32()))


def is_log(name: str) -> bool:
    return BY_NAME[name].record is Log


def sample_lines(file: str) -> list[bytes]:
    path = SAMPLES / file
    if not path.exists():
        pytest.skip(f"{path} is not there: samples of real agents lie beside the repository, in ../shared/samples")
    return path.read_bytes().splitlines()


def rows(found: Decoded) -> list[dict[str, Any]]:
    return found.records.to_pylist()
