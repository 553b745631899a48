"""SQL expressions over the columns of one record: parsed by Polars, and computed in 64 bits.

Polars computes as the types of a frame say: a literal or a length has 32 bits, and arithmetic wraps; a value that
cannot be cast fails for all records of the frame. But no result may depend on which records come together, and no
record may stop a job. So an expression is rewritten before it is computed:

* Whole numbers have 64 bits, others are floats of 64 bits, from the first operation on.
* What cannot be computed is null, as after ``try_cast`` in SQL: a whole number that leaves 64 bits, a division by zero,
  a text that is no number, a result that is no finite number.
* What is computed over several records (aggregates, window functions) is refused.
"""

from __future__ import annotations

import json
import operator
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import polars as pl

from engine.spec.errors import NewnormalError
from engine.spec.log_place import HIDDEN

_SMALL = (pl.Int128, pl.UInt128, pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
_PARTS: dict[str, tuple[Any, ...]] = {
    "BinaryExpr": ("left", "right"), "Ternary": ("predicate", "truthy", "falsy"), "Cast": ("expr",), "Alias": (0,),
    "Function": ("input",), "Eval": ("expr",), "Column": (), "Literal": (),
}  # fmt: skip
"""The kinds of expressions that are computed of each record by itself, and where their parts stand.

An ``Eval`` computes over the elements of one record's list.
"""
_OF_EACH_RECORD: dict[str, set[str] | None] = {
    **dict.fromkeys(
        ("Abs", "Atan2", "Bitwise", "Ceil", "Clip", "Coalesce", "Exp", "FillNull", "Floor", "ListExpr", "Log", "Log1p",
         "MaxHorizontal", "MinHorizontal", "Negate", "Pow", "Round", "Sign", "StructExpr", "TemporalExpr",
         "Trigonometry")
    ),
    "Boolean": {"IsNull", "IsNotNull", "Not", "IsNan", "IsNotNan", "IsFinite", "IsInfinite", "IsIn", "IsBetween",
                "AllHorizontal", "AnyHorizontal"},
    "Sql": {"Binary", "IsIn", "Round", "ToFloat"},
    "StringExpr": {"ConcatHorizontal", "Contains", "EndsWith", "Find", "LenBytes", "LenChars", "Lowercase", "Normalize",
                   "Replace", "Reverse", "Slice", "Split", "StartsWith", "StripChars", "StripCharsEnd",
                   "StripCharsStart", "Strptime", "Titlecase", "Uppercase"},
}  # fmt: skip
"""The functions that are computed of each record by itself; ``None``: all of a family. What is not here is refused."""
_ARITHMETIC = {"Plus", "Minus", "Multiply", "Add", "Sub", "Mul"}
_FLOATS = _ARITHMETIC | {"Divide", "Div", "TrueDivide", "FloorDivide", "IntDiv", "Modulus", "Mod", "Rem", "Pow", "Log"}
_DIVISION = {"Modulus", "Mod", "Rem", "Divide", "Div", "TrueDivide", "FloorDivide", "IntDiv"}
_OPERATORS: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "Plus": operator.add, "Minus": operator.sub, "Multiply": operator.mul, "And": operator.and_, "Or": operator.or_,
    "Xor": operator.xor, "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtEq": operator.le,
    "Gt": operator.gt, "GtEq": operator.ge, "EqValidity": pl.Expr.eq_missing, "NotEqValidity": pl.Expr.ne_missing,
}  # fmt: skip
_TYPES = {kind.__name__: kind for kind in (*_SMALL, pl.Int64, pl.Float32, pl.Float64, pl.String, pl.Boolean)}
_NULL = {"Literal": {"Scalar": {"Null": "Null"}}}
Node = Any
"""A node of an expression as Polars writes it in JSON: its kind and what it is made of."""


@lru_cache(maxsize=4096)
def expression(text: str, where: str = "expression") -> pl.Expr:
    """A SQL expression over the columns of a record, as Polars reads it; `computed` gives the one that is computed.

    Raises:
        NewnormalError: ``EXPRESSION_INVALID`` if the text is no SQL expression, or is one over several records.
    """
    if not isinstance(text, str):
        raise NewnormalError("EXPRESSION_INVALID", f"{text!r} is no text", where, "a SQL expression", "no job")
    try:
        parsed = pl.sql_expr(text)
        over = sorted(set(_over_records(_written(parsed))))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise NewnormalError("EXPRESSION_INVALID", f"{text!r}: {error}", where, "a SQL expression") from error
    except RecursionError:
        what, accepted = f"{text[:80]!r}... nests too deeply", "parts in steps of their own"
        raise NewnormalError("EXPRESSION_INVALID", what, where, accepted, "no job") from None
    if over:
        what = f"{text!r} is computed over several records ({', '.join(over)})"
        accepted = "an expression over the columns of one record; window(...).aggregate(...) computes over several"
        raise NewnormalError("EXPRESSION_INVALID", what, where, accepted, "no job")
    return parsed


def computed(text: str, frame: pl.DataFrame) -> pl.Expr:
    """The expression for the columns of a frame; the module says how it differs from what Polars computes.

    Raises:
        polars.exceptions.PolarsError: If it names a column that the frame lacks, or does not fit their types.

    >>> frame = pl.DataFrame({"n": [2**62, 1, None], "s": ["ab", "x", "7"], "v": [0.0, 2.0, 1.0]})
    >>> [frame.select(computed(text, frame)).to_series().to_list() for text in ("n * 2", "length(s) - 3", "1 / v")]
    [[None, 2, None], [-1, -2, -2], [None, 0.5, 1.0]]
    """
    return _computed(text, tuple(frame.schema.items()))


def values(text: str, frame: pl.DataFrame) -> pl.Series:
    """What an expression gives for each record of a frame.

    Polars fails for the whole frame where a function cannot take one value, as the first -1 letters of a text: then
    each half is computed by itself, down to the record at fault, for which it is null. That takes some tenths of a
    millisecond for each such record.

    Raises:
        polars.exceptions.PolarsError: If it names a column that the frame lacks, or does not fit their types.

    >>> values("substr(s, 1, length(s) - 3)", pl.DataFrame({"s": ["abcdef", "ab"]})).to_list()
    ['abc', None]
    """
    computation = computed(text, frame)
    try:
        column = frame.select(computation).to_series()
    except (pl.exceptions.ComputeError, pl.exceptions.InvalidOperationError, pl.exceptions.PanicException):
        half = frame.height // 2
        if half:
            return pl.concat([values(text, frame[:half]), values(text, frame[half:])])
        if not frame.height:
            raise
        return pl.Series([None], dtype=frame.lazy().select(computation).collect_schema().dtypes()[0])
    return column if len(column) == frame.height else column.new_from_index(0, frame.height)


@lru_cache(maxsize=4096)
def _computed(text: str, schema: tuple[tuple[str, pl.DataType], ...]) -> pl.Expr:
    types = pl.DataFrame(schema=dict(schema)).lazy()
    computation = _read(_rewritten(_written(expression(text)), types))
    if types.select(computation.alias("_")).collect_schema()["_"].is_float():
        computation = pl.when(computation.is_finite()).then(computation)
    return computation


def of_64_bits(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of a frame by the same rule: numbers of 64 bits, and null for what is no finite number.

    >>> of_64_bits(pl.DataFrame({"n": [1], "v": [float("nan")]}, {"n": pl.Int8, "v": pl.Float32})).row(0)
    (1, None)
    """
    changed = []
    for name, kind in frame.schema.items():
        if name.startswith(HIDDEN):
            continue
        column = pl.col(name)
        if kind in _SMALL:
            changed.append(column.cast(pl.Int64, strict=False))
        elif kind.is_float() or kind.is_decimal():
            value = column.cast(pl.Float64, strict=False)
            changed.append(pl.when(value.is_finite()).then(value).alias(name))
    return frame.with_columns(changed)


def holds(condition: str, row: dict[str, Any]) -> bool:
    """Whether a SQL condition is true for one row (not false, not null). The reference uses it.

    >>> holds("value > 1", {"value": 2}), holds("value > 1", {"value": None})
    (True, False)
    """
    frame = pl.DataFrame([row], infer_schema_length=None)
    return bool(values(condition, frame).item())


def _written(expr: pl.Expr) -> Node:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Polars does not promise this format between versions; the tests hold it
        return json.loads(expr.meta.serialize(format="json"))


def _read(node: Node) -> pl.Expr:
    """The expression of a node. What nests deeply is made by calls: Polars reads JSON of 128 levels at the most."""
    ((kind, value),) = node.items()
    if kind == "BinaryExpr" and value["op"] in _OPERATORS:
        return _OPERATORS[value["op"]](_read(value["left"]), _read(value["right"]))
    if kind == "Ternary":
        then = pl.when(_read(value["predicate"])).then(_read(value["truthy"]))
        return then.otherwise(_read(value["falsy"]))
    if kind == "Cast" and (dtype := _plain_type(value["dtype"])):
        return _read(value["expr"]).cast(dtype, strict=value["options"] == "Strict")
    if kind == "Alias":
        return _read(value[0]).alias(value[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pl.Expr.deserialize(json.dumps(node).encode(), format="json")


def _plain_type(kind: Node) -> type[pl.DataType] | None:
    name = kind.get("Literal") if isinstance(kind, dict) else None
    return _TYPES.get(name) if isinstance(name, str) else None


def _over_records(node: Node) -> Iterator[str]:
    """The parts of an expression that are computed over several records, or of which that is not known."""
    if not isinstance(node, dict):
        yield "count" if node == "Len" else str(node)
        return
    ((kind, value),) = node.items()
    if kind not in _PARTS:
        inner = str(next(iter(value))) if kind == "Agg" and isinstance(value, dict) else kind
        yield {"Explode": "unnest"}.get(inner, inner.lower())
        return
    if kind == "Function" and not _is_of_each_record(value["function"]):
        yield _name(value["function"]).lower()
    for part in _PARTS[kind]:
        inner = value[part]
        for each in inner if isinstance(inner, list) else [inner]:
            yield from _over_records(each)


def _is_of_each_record(function: Node) -> bool:
    family, kind = next(iter(function.items())) if isinstance(function, dict) else (function, "")
    kinds = _OF_EACH_RECORD.get(family, set())
    return kinds is None or (next(iter(kind)) if isinstance(kind, dict) else kind) in kinds


def _name(function: Node) -> str:
    """The name of a function: that of the outermost level; of SQL's own operators the innermost."""
    if isinstance(function, dict):
        name, inner = next(iter(function.items()))
        return str(inner.get("Binary", name)) if name == "Sql" and isinstance(inner, dict) else name
    return str(function)


def _rewritten(node: Node, types: pl.LazyFrame) -> Node:  # noqa: PLR0911
    """A node and all below it, see the module."""
    if not isinstance(node, dict) or len(node) != 1:
        return node
    ((kind, value),) = node.items()
    if kind == "Literal":
        return _literal(node, value)
    if kind == "Cast":
        inner = _finite(_rewritten(value["expr"], types), types)
        lenient = {kind: value | {"expr": inner, "options": "NonStrict"}}
        return _cast(inner, "Int64") if _is_small(value["dtype"]) else _wide(lenient, types)
    if kind == "BinaryExpr":
        left, right, name = _rewritten(value["left"], types), _rewritten(value["right"], types), value["op"]
        return _wide(_binary(name, [left, right], lambda a, b: {kind: value | {"left": a, "right": b}}, types), types)
    if kind == "Function":
        inputs, name = [_rewritten(operand, types) for operand in value["input"]], _name(value["function"])
        lenient = {"input": inputs, "function": _lenient(value["function"])}
        if name == "Abs" and _type(inputs[0], types) == pl.Int64:
            return _cast({kind: lenient | {"input": [_cast(inputs[0], "Int128")]}}, "Int64")
        if name == "ListExpr" and _type(node, types) == pl.Int64 and _inner(inputs[0], types) == pl.Int64:  # its sum
            whole = {"expr": inputs[0], "dtype": {"Literal": {"List": "Int128"}}, "options": "NonStrict"}
            return _cast({kind: lenient | {"input": [{"Cast": whole}, *inputs[1:]]}}, "Int64")
        if name not in _FLOATS or name == "Pow":
            lenient["input"] = inputs = [_finite(operand, types) for operand in inputs]
        if name == "Pow":  # a float, as in SQL: powers of whole numbers wrap, or fail if the exponent is negative
            lenient["input"] = [_cast(operand, "Float64") for operand in inputs]
        elif len(inputs) == 2:
            return _wide(_binary(name, inputs, lambda a, b: {kind: lenient | {"input": [a, b]}}, types), types)
        return _wide({kind: lenient}, types)
    if kind == "Ternary":
        return _wide({kind: {part: _rewritten(operand, types) for part, operand in value.items()}}, types)
    if kind == "Alias":
        return {kind: [_rewritten(value[0], types), *value[1:]]}
    return _wide(node, types) if kind != "Column" else node


def _binary(name: str, inputs: list[Node], combine: Callable[[Node, Node], Node], types: pl.LazyFrame) -> Node:
    """A calculation with two operands: whole numbers in 128 bits, null where 64 are not enough; nothing by zero."""
    left, right = inputs
    whole = all(_type(operand, types) == pl.Int64 for operand in inputs)
    if name in _ARITHMETIC and whole:
        return _cast(combine(_cast(left, "Int128"), _cast(right, "Int128")), "Int64")
    if name in _DIVISION and _type(right, types).is_numeric():
        right = _finite(right, types)
        none = _same(right, 0)
        if name == "IntDiv" and whole:  # the only quotient that leaves 64 bits
            least = {"BinaryExpr": {"left": _same(left, -(2**63)), "op": "And", "right": _same(right, -1)}}
            none = {"BinaryExpr": {"left": none, "op": "Or", "right": least}}
        return combine(left, {"Ternary": {"predicate": none, "truthy": _NULL, "falsy": right}})
    if name in _FLOATS:
        return combine(left, right)
    return combine(_finite(left, types), _finite(right, types))


def _same(node: Node, number: int) -> Node:
    return {"BinaryExpr": {"left": node, "op": "Eq", "right": {"Literal": {"Scalar": {"Int64": number}}}}}


def _finite(node: Node, types: pl.LazyFrame) -> Node:
    """A calculated operand of what is no calculation: null if it is no finite number."""
    if not isinstance(node, dict) or next(iter(node)) in ("Column", "Literal") or _type(node, types) != pl.Float64:
        return node
    finite = {"Function": {"input": [node], "function": {"Boolean": "IsFinite"}}}
    return {"Ternary": {"predicate": finite, "truthy": node, "falsy": _NULL}}


def _wide(node: Node, types: pl.LazyFrame) -> Node:
    """The node, cast to 64 bits if its type is a smaller number."""
    kind = _type(node, types)
    if kind in _SMALL:
        return _cast(node, "Int64")
    return _cast(node, "Float64") if kind == pl.Float32 or kind.is_decimal() else node


def _type(node: Node, types: pl.LazyFrame) -> pl.DataType:
    return types.select(_read(node).alias("_")).collect_schema()["_"]


def _inner(node: Node, types: pl.LazyFrame) -> pl.DataType | None:
    """The type of the elements of a list."""
    kind = _type(node, types)
    return kind.inner if isinstance(kind, pl.List) else None  # type: ignore[return-value]


def _cast(node: Node, kind: str) -> Node:
    return {"Cast": {"expr": node, "dtype": {"Literal": kind}, "options": "NonStrict"}}


def _is_small(kind: Node) -> bool:
    return isinstance(kind, dict) and kind.get("Literal") in [small.__name__ for small in _SMALL]


def _literal(node: Node, value: Node) -> Node:
    """A number as one of 64 bits; other literals as they are."""
    if not isinstance(value, dict):
        return node
    ((form, inner),) = value.items()
    if form not in ("Dyn", "Scalar") or not isinstance(inner, dict):
        return node
    ((kind, number),) = inner.items()
    if kind == "Decimal":
        return {"Literal": {"Dyn": {"Float": number[0] / 10 ** number[2]}}}
    if kind == "Float32":
        return {"Literal": {"Dyn": {"Float": number}}}
    if kind not in ("Int", *(small.__name__ for small in _SMALL)):
        return node
    fits = -(2**63) <= number < 2**63
    return {"Literal": {"Scalar": {"Int64": number}} if fits else {"Dyn": {"Float": float(number)}}}


def _lenient(function: Node) -> Node:
    """A function that gives null, instead of failing for all records, where a text is not of the form that it reads."""
    if isinstance(function, dict):
        return {name: False if name == "strict" else _lenient(part) for name, part in function.items()}
    return [_lenient(part) for part in function] if isinstance(function, list) else function
