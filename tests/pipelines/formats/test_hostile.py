"""What a message costs is bounded, whatever is in it: memory, time, and what stays in the caches afterwards."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest

from engine.spec.decoder import Decoder
from pipelines.contracts.records import Log, Telemetry
from pipelines.formats import bounded, remembering
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.bounded import BoundedDecoder
from pipelines.formats.refusals import TOO_MANY_PARTS
from tests.pipelines.formats.decoding import decoded, rows
from tests.pipelines.formats.examples import GOOD
from tests.pipelines.formats.otlp_requests import attributes, gauge, metrics
from tests.pipelines.formats.remote_writes import request, series

MB = 10**6
FLOOR = 150 * MB
"""What any message may take; a larger one may take 20 times its size, and 500 MB."""


def costs(size: int, seed: int, more: int) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.pipelines.formats.hostile", *map(str, (size, seed, more, 0, 1))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("size", "more"), [(480_000, 0), (2_000_000, 20), pytest.param(15_900_000, 60, marks=pytest.mark.slow)]
)
def test_no_message_takes_more_memory_than_promised_whatever_it_repeats(size: int, more: int) -> None:
    found = costs(size, 1, more)
    assert len(found) > 40 + more
    over = [each for each in found if each["memory"] > min(max(FLOOR, 20 * each["bytes"]), 500 * MB)]
    assert not over
    assert not [each for each in found if each["cpu"] > 10]
    assert all(each["records"] or each["codes"] for each in found), "each is records or a dead letter"


@pytest.mark.parametrize(
    ("record", "value"),
    [
        (Telemetry, b"m,host=a v=1\n" * 400),
        (Telemetry, b'[{"dstypes":[1,2]}' + b",{}" * 1_200 + b"]"),
        (Telemetry, metrics(*([gauge()] * 600)).SerializeToString()),
        (Telemetry, request(*[series({"__name__": "up", "instance": "a"}, (1.0, 1))] * 300)),
        (Log, b'[{"message":"m","host":"a"}' + b',{"log":"m"}' * 1_200 + b"]"),
    ],
)
def test_a_message_with_more_parts_than_the_setting_is_a_dead_letter_and_its_neighbours_are_used(
    record: Any, value: bytes
) -> None:
    good = GOOD["influx" if record is Telemetry else "syslog"][0]
    alone = decoded(AnyFormatDecoder(record), good)
    found = decoded(BoundedDecoder(AnyFormatDecoder(record), record, 1_000), good, value, good)
    assert [(row, code) for row, code, _ in found.refused] == [(1, TOO_MANY_PARTS)]
    assert "1000" in found.refused[0][2]
    n = alone.records.num_rows
    assert found.records.drop_columns(["__row"]).to_pylist() == alone.records.drop_columns(["__row"]).to_pylist() * 2
    assert [each["__row"] for each in rows(found)] == [0] * n + [2] * n


def test_commas_in_texts_of_json_are_no_parts() -> None:
    line = b'{"@timestamp":1795220820013,"host":"a","message":"%s \\" , [ {"}' % (b"a,b[{ " * 3_000)
    assert not decoded(BoundedDecoder(AnyFormatDecoder(Log), Log, 1_000), line).refused


def test_what_is_decoded_in_pieces_is_what_is_decoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [value for name in ("influx", "json", "prometheus", "csv") for value in GOOD[name]] * 3
    whole = decoded(BoundedDecoder(AnyFormatDecoder(Telemetry), Telemetry), *values)
    monkeypatch.setattr(bounded, "_TOGETHER", 150)
    pieces = decoded(BoundedDecoder(AnyFormatDecoder(Telemetry), Telemetry), *values)
    assert rows(pieces) == rows(whole)
    assert pieces.refused == whole.refused


LABELS = {f"k{at}": "" for at in range(100)}


def _unique(name: str, number: int) -> bytes:
    """A message with a series that no other has, and which is refused, as its name is too long."""
    labels = {"host": "a"} | dict.fromkeys(LABELS, f"{number:07}")
    if name == "influx":
        return b"m," + b",".join(f"{k}={v}".encode() for k, v in labels.items()) + b" v=1"
    if name == "prometheus":
        inside = ",".join(f'{k}="{v}"' for k, v in labels.items())
        return f"# TYPE m gauge\nm{{{inside}}} 1".encode()
    if name == "remote write":
        return request(series({"__name__": "m"} | labels, (1.0, 1)))
    made = gauge()
    made["gauge"]["dataPoints"][0]["attributes"] = attributes(**labels)
    return bytes(metrics(made).SerializeToString())


@pytest.mark.parametrize("name", ["influx", "prometheus", "remote write", "otlp"])
def test_series_that_are_refused_do_not_fill_the_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembering, "MOST_BYTES", MB)
    by: Decoder = BoundedDecoder(AnyFormatDecoder(Telemetry), Telemetry)
    values = [_unique(name, number) for number in range(300)]
    decoded(by, values[0])
    gc.collect()
    tracemalloc.start()
    try:
        for start in range(1, 300, 50):
            assert decoded(by, *values[start : start + 50]).refused
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * MB, "without a bound these are 4 MB and more"
