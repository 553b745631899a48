"""Lines of JSON made by columns mean what the record's own JSON means."""

from __future__ import annotations

from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.formats.dead_letters import DeadLetter
from engine.formats.json_lines import to_json_lines
from pipelines.contracts.records import Novelty

text = st.text(st.characters(codec="utf-8"), max_size=8)
number = st.floats(allow_nan=False, allow_infinity=False)
names = st.dictionaries(text, number, max_size=3)


@st.composite
def novelties(draw: st.DrawFn) -> Novelty:
    fields: dict[str, Any] = {
        "entity": draw(text),
        "metric": draw(text),
        "window_start": draw(st.integers(0, 2**50)),
        "window_end": draw(st.integers(0, 2**50)),
        "kind": draw(st.sampled_from(["normal", "anomaly", "learning"])),
        "record_score": draw(st.floats(0, 100)),
        "probability": draw(st.floats(0, 1)),
        "actual": draw(st.none() | number),
        "since": draw(st.none() | st.integers(0, 2**50)),
        "influencers": draw(names),
        "message": draw(st.none() | text),
        "experts": draw(st.none() | st.fixed_dictionaries({"level": number}, optional={"hour": number})),
    }
    return Novelty(**fields)


def frame(rows: list[Novelty]) -> pl.DataFrame:
    """As operators return them: maps as lists of entries, or as structs of the names that are known."""
    plain = [row.model_dump() for row in rows]
    entries = pl.List(pl.Struct({"key": pl.String, "value": pl.Float64}))
    schema = dict.fromkeys(("actual", "typical", "lower", "upper"), pl.Float64) | {"since": pl.Int64}
    return pl.DataFrame(
        [
            row
            | {"influencers": [{"key": k, "value": v} for k, v in row["influencers"].items()], "evidence": None}
            | {"experts": row["experts"] and {"level": None, "hour": None, **row["experts"]}}
            for row in plain
        ],
        schema_overrides=schema
        | {"influencers": entries, "message": pl.String}
        | {"experts": pl.Struct({"level": pl.Float64, "hour": pl.Float64})},
    )


@settings(deadline=None)
@given(rows=st.lists(novelties(), max_size=8))
def test_each_line_is_the_record(rows: list[Novelty]) -> None:
    lines = to_json_lines(frame(rows), Novelty) if rows else []
    assert [Novelty.from_json(line) for line in lines] == rows


def test_what_is_absent_is_left_out_whatever_the_neighbours_have() -> None:
    one = Novelty(entity="a", metric="m", window_start=0, window_end=1, kind="normal", record_score=1, probability=1)
    two = one.model_copy(update={"actual": 2.0, "experts": {"hour": 1.0}, "influencers": {'"x"': 0.5}})
    first, second = (orjson.loads(line) for line in to_json_lines(frame([one, two]), Novelty))
    assert not {"actual", "experts", "message", "since"} & first.keys()
    assert (second["actual"], second["experts"], second["influencers"]) == (2.0, {"hour": 1.0}, {'"x"': 0.5})


def test_nothing_gives_nothing_and_categories_are_texts() -> None:
    letters = [DeadLetter(time=1, job="j", code="C", reason="r\n\x00", topic="t", partition=0, offset=1, payload='"{')]
    table = pl.DataFrame([letter.model_dump() for letter in letters]).with_columns(pl.col("job").cast(pl.Categorical))
    assert [DeadLetter.from_json(line) for line in to_json_lines(table, DeadLetter)] == letters
    assert to_json_lines(table.clear(), DeadLetter).to_list() == []


@pytest.mark.parametrize("count", [1, 70])
def test_many_columns_that_may_be_absent_are_told_apart(count: int) -> None:
    class Wide(Novelty):
        experts: dict[str, float] | None = None

    columns = {f"e{i}": float(i) if i % 2 else None for i in range(count + 1)}
    row = {"entity": "a", "metric": "m", "window_start": 0, "window_end": 1, "kind": "normal"}
    row |= {"record_score": 1.0, "probability": 1.0}
    table = pl.DataFrame([row | {"experts": columns}, row | {"experts": dict.fromkeys(columns, 1.0)}])
    first, second = (orjson.loads(line)["experts"] for line in to_json_lines(table, Wide))
    assert first == {name: value for name, value in columns.items() if value is not None}
    assert second == dict.fromkeys(columns, 1.0)
