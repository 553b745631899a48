"""Derives the Elasticsearch mapping of a record from its definition. This module knows no index and no server.

Text is mapped to `keyword`, text marked as prose to `text`; a dotted JSON name becomes nested objects. A field of type
`dict[str, float]`, such as the evidence by name, becomes an object that accepts any key with a `double`; it has
`subobjects: false`, so that the keys `cpu` and `cpu.user` can stand side by side. These numbers, and those in the
record's `seldom_sought`, have no index of their own, which costs much and which few searches need: they are searched,
sorted and aggregated by their columns on disk. Elasticsearch refuses a document with any other field that the record
does not define. A name in the record's `also_found_as` becomes an `alias` of a field.
"""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from engine.spec.record import Record, Text, TimeMs, unwrap

LONGEST_KEYWORD = 8_191
"""The longest keyword that is indexed, in characters; a longer one is only stored.

Lucene indexes at most 32,766 bytes, and a character has up to 4.
"""

_SCALARS = {int: "long", float: "double", bool: "boolean", bytes: "binary"}


def mapping(record: type[Record]) -> dict[str, Any]:
    """The `mappings` of an index that holds records of a type.

    >>> from pipelines.contracts.records import Telemetry
    >>> mapping(Telemetry)["properties"]["host"]
    {'properties': {'name': {'type': 'keyword', 'ignore_above': 8191}}}
    """
    properties: dict[str, Any] = {}
    templates: list[dict[str, Any]] = []
    for name, info in record.model_fields.items():
        path, field = info.alias or name, field_mapping(info)
        if name in getattr(record, "seldom_sought", ()):
            field["index"] = False
        _put(properties, path, field)
        if field.get("subobjects") is False:
            templates.append({path: {"path_match": f"{path}.*", "mapping": {"type": "double", "index": False}}})
    for name, path in getattr(record, "also_found_as", {}).items():
        _put(properties, name, {"type": "alias", "path": path})
    return {"dynamic": "strict", "dynamic_templates": templates, "properties": properties}


def lacking(wanted: dict[str, Any], there: dict[str, Any]) -> dict[str, Any]:
    """The fields that are not in the mapping of an index, or otherwise; whether a field is indexed can never change.

    >>> lacking({"a": {"type": "long"}, "b": {"type": "long", "index": False}}, {"b": {"type": "long"}})
    {'a': {'type': 'long'}}
    >>> lacking({"a": {"properties": {"b": {"type": "long"}}}}, {"a": {"properties": {"b": {"type": "date"}}}})
    {'a': {'properties': {'b': {'type': 'long'}}}}
    """
    found: dict[str, Any] = {}
    for name, field in wanted.items():
        if name not in there or _fixed(field) != _fixed(there[name]):
            found[name] = field
        elif inner := lacking(field.get("properties", {}), there[name].get("properties", {})):
            found[name] = {"properties": inner}
    return found


def _fixed(field: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object"} | {name: value for name, value in field.items() if name not in ("index", "properties")}


def _put(properties: dict[str, Any], path: str, field: dict[str, Any]) -> None:
    *parents, leaf = path.split(".")
    for parent in parents:
        properties = properties.setdefault(parent, {"properties": {}})["properties"]
    properties[leaf] = field


def field_mapping(info: FieldInfo) -> dict[str, Any]:
    """The mapping of one field."""
    kind, _ = unwrap(info.annotation)
    marks = _marks(info)
    if any(isinstance(mark, TimeMs) for mark in marks):
        return {"type": "date", "format": "epoch_millis||strict_date_optional_time"}
    if any(isinstance(mark, Text) for mark in marks):
        return {"type": "text"}
    return _mapping_of(kind)


def _mapping_of(kind: Any) -> dict[str, Any]:
    origin = get_origin(kind)
    if origin is dict:
        return {"type": "object", "dynamic": "true", "subobjects": False}
    if origin in (list, tuple):  # Elasticsearch has no list type: each field may hold several values
        return _mapping_of(unwrap(get_args(kind)[0])[0])
    if isinstance(kind, type) and issubclass(kind, Record):
        return {"properties": mapping(kind)["properties"]}
    if kind is str or origin is Literal:
        return {"type": "keyword", "ignore_above": LONGEST_KEYWORD}
    return {"type": _SCALARS[kind]}


def _marks(info: FieldInfo) -> list[Any]:
    """All markers of a field, also those inside a union such as ``Instant | None``."""
    inner = [mark for part in get_args(info.annotation) for mark in getattr(part, "__metadata__", ())]
    return [*info.metadata, *inner]
