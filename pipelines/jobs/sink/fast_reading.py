"""Reads messages that can be stored as they are, several times faster than pydantic does. Knows no Elasticsearch.

A record type is compiled to a msgspec struct with the same names, types and bounds. What the struct accepts, pydantic
accepts in strict mode too, with the same values; a message that the struct refuses is read by `identity.parse`, which
decides about it and gives the reason. So this is a short cut, and never a second opinion.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from annotated_types import Ge, Le
from pydantic import AllowInfNan
from pydantic.fields import FieldInfo

from engine.spec.record import Low, Record, Text, TimeMs

_INT = (-(2**63), 2**63 - 1)
"""The whole numbers that both libraries read as such; orjson reads one beyond 64 bits as a float."""


_ANY = (float("-inf"), float("inf"))
"""The bounds of a number that has none."""


class _UnsupportedError(Exception):
    """A field has a type or a constraint that is not compiled."""


def fast_reader(record: type[Record]) -> Callable[[bytes], Any] | None:
    """Compiles a record type.

    Returns:
        A function that reads one message. Its result has the fields of the record and `Record.identity` as attributes;
        a field whose default is ``None`` is `msgspec.UNSET` if the message does not have it. It raises
        `msgspec.MsgspecError` or ``UnicodeDecodeError`` for what is not, strictly, JSON of such a record. ``None`` if
        the type has validators, nested records or constraints that are not compiled.

    >>> from pipelines.contracts.records import Label, Novelty, Incident
    >>> fast_reader(Novelty) is not None, fast_reader(Incident) is None
    (True, True)
    """
    checks = record.__pydantic_decorators__
    if checks.validators or checks.field_validators or checks.root_validators or checks.model_validators:
        return None
    try:
        fields = [_field(name, info) for name, info in record.model_fields.items()]
    except _UnsupportedError:
        return None
    names = {name: info.alias for name, info in record.model_fields.items() if info.alias}
    own = {"identity": record.identity}
    struct = msgspec.defstruct(
        record.__name__, fields, rename=names, namespace=own, forbid_unknown_fields=True, kw_only=True, gc=False
    )
    return msgspec.json.Decoder(struct).decode


def _field(name: str, info: FieldInfo) -> Any:
    kind = _compiled(info.annotation, info.metadata)
    if info.is_required():
        return name, kind
    if info.default is None:  # a field that is absent differs from one that is null
        return name, kind | msgspec.UnsetType, msgspec.UNSET
    if info.default_factory is not None:
        return name, kind, msgspec.field(default_factory=info.default_factory)  # type: ignore[arg-type]
    return name, kind, info.default


def _compiled(annotation: Any, metadata: Any = ()) -> Any:
    """The msgspec type of a pydantic annotation.

    Raises:
        _UnsupportedError: If there is none that accepts as little.
    """
    origin, marks, inner = get_origin(annotation), list(metadata), get_args(annotation)
    if origin is Annotated:
        return _compiled(inner[0], [*marks, *inner[1:]])
    if origin in (Union, types.UnionType):
        rest = [member for member in inner if member is not type(None)]
        if len(rest) != 1:
            raise _UnsupportedError(annotation)
        return _compiled(rest[0], marks) | None
    if annotation in (int, float):
        return _number(annotation, marks)
    if _bounds(marks) != _ANY:
        raise _UnsupportedError(annotation)
    if annotation in (str, bool) or (origin is Literal and all(type(member) is str for member in inner)):
        return annotation
    if origin is list:
        return list[_compiled(*inner)]  # type: ignore[misc]
    if origin is dict and inner[0] is str:
        return dict[str, _compiled(inner[1])]  # type: ignore[misc]
    raise _UnsupportedError(annotation)


def _number(kind: type[int | float], marks: list[Any]) -> Any:
    lowest, highest = _bounds(marks)
    if kind is int:
        return Annotated[int, msgspec.Meta(ge=max(lowest, _INT[0]), le=min(highest, _INT[1]))]
    least = None if lowest == _ANY[0] else lowest
    most = None if highest == _ANY[1] else highest
    return Annotated[float, msgspec.Meta(ge=least, le=most)]


def _bounds(marks: list[Any]) -> tuple[Any, Any]:
    """The least and the greatest value that some marks allow; JSON has no infinite numbers and no NaN."""
    lowest, highest = _ANY
    for mark in marks:
        if isinstance(mark, FieldInfo):
            within = _bounds(mark.metadata)
            lowest, highest = max(lowest, within[0]), min(highest, within[1])
        elif isinstance(mark, Ge):
            at_least: Any = mark.ge
            lowest = max(lowest, at_least)
        elif isinstance(mark, Le):
            at_most: Any = mark.le
            highest = min(highest, at_most)
        elif not isinstance(mark, TimeMs | Text | Low | AllowInfNan):
            raise _UnsupportedError(mark)
    return lowest, highest
