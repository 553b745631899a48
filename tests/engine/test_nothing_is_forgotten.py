"""Who adds an aggregate or an operator is told what is missing: its meaning, its logic, its name, its docs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

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
TESTS = Path(__file__).with_name("test_aggregates.py").read_text(encoding="utf-8")


def _all_below(base: type) -> Iterator[type]:
    for each in base.__subclasses__():
        yield from (each, *_all_below(each))


def _defined_in(package: ModuleType, *bases: type) -> list[type]:
    """The public classes below some bases that the modules of a package define, named by its `__init__` or not."""
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        import_module(module.name)
    found = dict.fromkeys(each for base in bases for each in _all_below(base))
    own = [each for each in found if each.__module__.startswith(f"{package.__name__}.")]
    return [each for each in own if not isabstract(each) and not each.__name__.startswith("_")]


AGGREGATES = [*(each for each in _defined_in(aggregates, Aggregate, RowAggregate) if each is not Signed), Rate]
OPERATORS = [each for each in _defined_in(operators, Operator) if not each.__subclasses__()]


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda each: each.__name__)
def test_an_aggregate_has_a_public_name_a_meaning_tests_and_a_line_in_the_docs(aggregate: type) -> None:
    assert aggregate.__name__ in aggregates.__all__, "add it to engine/aggregates/__init__.py"
    assert getattr(engine, aggregate.__name__).__name__ == aggregate.__name__, "add it to _NAMES in engine/__init__.py"
    assert aggregate is Rate or aggregate in meanings.aggregated.registry, "add it to engine/reference/aggregates.py"
    assert f"{aggregate.__name__}(" in TESTS, "add it to the tables of tests/engine/test_aggregates.py"
    assert f"`{aggregate.__name__}" in DOCS, "add it to docs/engine.md"


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda each: each.__name__)
def test_an_operator_has_a_meaning_and_a_logic(operator: type) -> None:
    assert operator in reference.registry, "add it to engine/reference/__init__.py"
    assert operator in build.registry, "add it to engine/vectorized/__init__.py"


def test_there_are_aggregates_and_operators_to_look_at() -> None:
    assert len(AGGREGATES) >= 15
    assert len(OPERATORS) >= 8
