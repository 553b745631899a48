"""Fields of shipped lines are found wherever they stand, as if every object were written out by names with dots."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.formats.labels import LabelRule
from pipelines.formats.nested_fields import FieldNames, first, flat, nested
from pipelines.formats.shipped_logs import ShippedLogsDecoder
from tests.pipelines.formats.decoding import decoded, rows

NAMES = ("a.b.c", "a.b", "b", "a", "c.a.b.c", "c", "a.b.c.a.b.c", "a.b.c.a.b.c.a")
"""Names that are looked up, in this order; the last one has more parts than objects are searched."""

values = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x", "y"]) | st.just(["x"])
parts = st.lists(st.sampled_from("abc"), min_size=1, max_size=4)


def objects(names: st.SearchStrategy[str], depth: int = 7) -> st.SearchStrategy[dict[str, Any]]:
    inside = values if depth == 0 else values | st.deferred(lambda: objects(names, depth - 1))
    return st.dictionaries(names, inside, max_size=3)


documents = objects(st.sampled_from("abc")) | objects(parts.map(".".join))


def written_out(fields: dict[str, Any], before: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    """All values that are no objects, by their names with dots, down to the sixth object."""
    for name, value in fields.items():
        if not isinstance(value, dict):
            yield before + name, value
        elif depth < 6:
            yield from written_out(value, f"{before}{name}.", depth + 1)


def expected(fields: dict[str, Any], names: tuple[str, ...], text: bool = False) -> Any:
    last = dict(written_out(fields))
    found = (last.get(name) for name in names)
    return next((each for each in found if each not in (None, "") and (not text or isinstance(each, str))), None)


@settings(deadline=None, max_examples=500)
@given(fields=documents, text=st.booleans())
@example(fields={"a": {"b": {"c": {"a": {"b": {"c": {"a": 1}}}}}}}, text=False)
@example(fields={"a": {"b": {"c": {"a": {"b": {"c": 1}}}}}}, text=False)
@example(fields={"a.b": 1, "a": {"b": 2}}, text=False)
@example(fields={"a": {"b": 2}, "a.b": 1}, text=False)
def test_a_field_is_found_wherever_it_stands_and_the_last_one_counts(fields: dict[str, Any], text: bool) -> None:
    wanted = FieldNames.of(NAMES)
    assert first(wanted.flat(fields), flat(NAMES), text) == expected(fields, NAMES, text)
    if wanted.each_part_is_an_object(fields):
        assert first(fields, nested(NAMES), text) == expected(fields, NAMES, text)


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"a": {"b": {"c": 1}}, "x.y": 2}, True),
        ({"a": {"b.x": 1, "x": {"b.c": 1}}}, True),
        ({"a.b": 1}, False),
        ({"a": {"b.c": 1}}, False),
        ({"c": {"a": {"b.c": {}}}}, False),
        ({"a": [{"b.c": 1}]}, True),
    ],
)
def test_only_wanted_names_with_dots_make_an_object_one_that_is_written_out(fields: Any, answer: bool) -> None:
    assert FieldNames.of(NAMES).each_part_is_an_object(fields) is answer


LABELS = LabelRule(machine=("host.name", "host", "k8s.node.name"))
shipped = st.fixed_dictionaries(
    {},
    optional={
        name: st.sampled_from([None, "", " ", "x", "a:22", "3", "2026-11-21T00:27:00Z", 3, 1e300, True, ["x"]])
        for name in (
            *("message", "log", "@timestamp", "date", "host", "host.name", "log.level", "log.syslog.severity.code"),
            *("log.syslog.severity.name", "process.name", "log.syslog.appname", "k8s.node.name", "kubernetes.host"),
            *("kubernetes.node.name", "log.file.path", "severity", "event.original"),
        )
    },
)


def in_objects(fields: dict[str, Any]) -> dict[str, Any] | None:
    """The fields with an object for each part of their names; ``None`` if two of them cannot both be so."""
    made: dict[str, Any] = {}
    for name, value in fields.items():
        *around, last = name.split(".")
        place = made
        for part in around:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                return None
        if last in place:
            return None
        place[last] = value
    return made


@settings(deadline=None, max_examples=300)
@given(fields=shipped)
def test_a_shipped_line_is_the_same_whether_its_names_have_dots_or_its_fields_are_nested(
    fields: dict[str, Any],
) -> None:
    as_objects = in_objects(fields)
    if as_objects is not None:
        by = ShippedLogsDecoder(LABELS)
        with_dots, with_objects = (decoded(by, json.dumps(each).encode()) for each in (fields, as_objects))
        assert rows(with_dots) == rows(with_objects)
        assert with_dots.refused == with_objects.refused
