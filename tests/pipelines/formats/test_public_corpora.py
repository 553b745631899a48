"""Corpora that others publish for their formats: what we read agrees with their references.

They lie beside the repository, in ../shared/data/corpora or in the folder that PUBLIC_CORPORA names: the repositories
prometheus/OpenMetrics and influxdata/line-protocol, as the folders OpenMetrics and line-protocol.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pipelines.contracts.settings import load
from pipelines.formats.catalogue import BY_NAME, guess
from pipelines.formats.rules import Rules
from tests.pipelines.formats.decoding import ARRIVED, decoded, rows

_BESIDE = Path(__file__).parents[4] / "shared" / "data" / "corpora"
CORPORA = Path(os.environ.get("PUBLIC_CORPORA") or _BESIDE)
_INPUT = {"input.default_machine": "edge", "input.machine": "no-label", "input.left_out": "", "input.folded": ""}
RULES = Rules.of(load(**_INPUT).input)
Sample = tuple[str, float, int]
"""(name with labels, value, epoch milliseconds)"""

DIFFERENT = {"timestamps", "duplicate_timestamps_0", "duplicate_timestamps_1"}
"""A time of the year 391 billion; and two samples within one millisecond, of which we leave out none."""
LEAST_NS = 10**17
"""From which size on a timestamp counts as nanoseconds in a topic, where nobody says its unit (docs/input.md)."""


def _at(*parts: str) -> Path:
    path = CORPORA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is not there: set PUBLIC_CORPORA to a folder with the published corpora")
    return path


def _named(name: str, labels: dict[str, str]) -> str:
    inside = ",".join(f"{label}={value}" for label, value in sorted(labels.items()) if value)
    return f"{name}{{{inside}}}" if inside else name


def _ours(name: str, text: bytes) -> tuple[list[Sample], list[tuple[str, str]]]:
    found = decoded(BY_NAME[name].build(RULES), text)
    samples = sorted((row["metric"], row["value"], row["time"]) for row in rows(found))
    return samples, [(code, why) for _, code, why in found.refused]


def _reference(text: str) -> list[Sample]:
    """The samples of an exposition, but for NaN, as the client library of Prometheus for Python reads it."""
    return sorted(
        (
            _named(one.name, one.labels),
            one.value,
            ARRIVED if one.timestamp is None else int(float(one.timestamp) * 1000),
        )
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if not math.isnan(one.value)
    )  # fmt: skip


def test_the_good_files_of_openmetrics_agree_with_its_reference_but_for_three() -> None:
    counts: Counter[str] = Counter()
    different = {}
    for folder in sorted(_at("OpenMetrics", "tests", "testdata", "parsers").iterdir()):
        if not json.loads((folder / "test.json").read_text())["shouldParse"]:
            continue
        text = (folder / "metrics").read_bytes()
        expected = _reference(text.decode())
        found, refused = _ours("prometheus", text)
        form = guess(text)
        same = found == expected and (not expected or (form is not None and form.name == "prometheus"))
        counts["equal" if same else "different"] += 1
        if not same:
            different[folder.name] = (found, expected, refused)
    assert set(different) <= DIFFERENT, different
    assert counts["equal"] >= 41


def test_of_the_bad_files_of_openmetrics_none_fails_and_those_with_other_values_are_counted() -> None:
    """We read what Prometheus itself reads: files whose order, types or ends are against OpenMetrics may be used."""
    counts: Counter[str] = Counter()
    for folder in sorted(_at("OpenMetrics", "tests", "testdata", "parsers").iterdir()):
        if json.loads((folder / "test.json").read_text())["shouldParse"]:
            continue
        found, refused = _ours("prometheus", (folder / "metrics").read_bytes())
        assert found or refused, folder.name
        counts["used" if found else "refused"] += 1
    assert sum(counts.values()) == 167
    assert counts["used"] <= 90, counts


def _points(case: dict[str, Any]) -> list[Sample]:
    """The numbers in the points of a case, as InfluxData's own parser reads them; flags count as 1 and 0."""
    return sorted(
        (_named(f"{point['name']}.{pair['key']}", {tag["key"]: tag["value"] for tag in point["tags"]}), value, time)
        for point in case["output"]["result"]
        for time in [point["time"] // 1_000_000]
        for pair in point["fields"]
        for value in [_number(pair["value"])]
        if value is not None
    )  # fmt: skip


def _number(value: dict[str, Any]) -> float | None:
    ((kind, content),) = value.items()
    return None if kind in ("string", "binary") else float(content)


def test_the_good_inputs_of_the_line_protocol_agree_with_its_reference_but_for_some_that_were_made_at_random() -> None:
    cases = json.loads(_at("line-protocol", "lineprotocol", "testdata", "corpus.json").read_text())["decode"]
    counts: Counter[tuple[str, bool]] = Counter()
    different = {}
    for key, case in cases.items():
        given = case["input"]
        if given["precision"] != "1ns" or not case["output"].get("result"):
            continue
        expected = _points(case)
        found, refused = _ours("influx", given["text"].encode())
        fuzzed = given["implementation"] == "fuzz"
        if {time for _, _, time in expected} == {given["defaultTime"] // 1_000_000}:
            expected = sorted((name, value, ARRIVED) for name, value, _ in expected)
        elif any(abs(time) * 1_000_000 < LEAST_NS for _, _, time in expected):
            counts["its time is none in nanoseconds", True] += 1
            expected, found = [each[:2] for each in expected], [each[:2] for each in found]  # type: ignore[misc]
        counts["made at random" if fuzzed else "written", found == expected] += 1
        if found != expected:
            different[key] = (given["text"], found, expected, refused)
    assert counts["written", False] <= 1, f"one has a name of more than 1,024 characters: {different}"
    assert counts["made at random", False] <= 4, different
    assert counts["written", True] >= 139
