"""Who adds an aggregate or an operator is told what is missing: its meaning, its logic, its name, its docs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import engine
import engine.vectorized as _registered  # noqa: F401  its import registers the logic of all operators
from engine import aggregates, operators
from engine.aggregates import Aggregate, Rate, RowAggregate, Signed
from engine.reference import aggregates as meanings
from engine.reference.of import reference
from engine.spec.operator import Operator
from engine.vectorized.build import build

DOCS = (Path(__file__).parents[2] / "docs" / "engine.md").read_text(encoding="utf-8")


def _aggregates() -> Iterator[type]:
    bases = (Aggregate, RowAggregate)
    for each in (getattr(aggregates, name) for name in aggregates.__all__):
        if isinstance(each, type) and issubclass(each, bases) and each not in (*bases, Signed):
            yield each


def _leaves(operator: type) -> Iterator[type]:
    below = operator.__subclasses__()
    yield from (leaf for each in below for leaf in _leaves(each)) if below else (operator,)


def _operators() -> list[type]:
    for module in iter_modules(operators.__path__, "engine.operators."):
        import_module(module.name)
    return [each for each in _leaves(Operator) if each.__module__.startswith("engine.operators.")]


AGGREGATES, OPERATORS = [*_aggregates(), Rate], _operators()


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda each: each.__name__)
def test_an_aggregate_has_a_public_name_a_meaning_and_a_line_in_the_docs(aggregate: type) -> None:
    assert getattr(engine, aggregate.__name__).__name__ == aggregate.__name__, "add it to _NAMES in engine/__init__.py"
    assert aggregate is Rate or aggregate in meanings.aggregated.registry, "add it to engine/reference/aggregates.py"
    assert f"`{aggregate.__name__}" in DOCS, "add it to docs/engine.md"


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda each: each.__name__)
def test_an_operator_has_a_meaning_and_a_logic(operator: type) -> None:
    assert operator in reference.registry, "add it to engine/reference/__init__.py"
    assert operator in build.registry, "add it to engine/vectorized/__init__.py"


def test_there_are_aggregates_and_operators_to_look_at() -> None:
    assert len(AGGREGATES) >= 15
    assert len(OPERATORS) >= 8
