"""Finds fields of JSON objects by names with dots, where each part may be an object, or several parts one name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

Alternatives = tuple[tuple[str, bool, "Alternatives"], ...]
"""Names in the order in which they are looked up: (name, whether its value counts, what is looked up in its object)."""

_DEEPEST = 5


def nested(names: Iterable[str]) -> Alternatives:
    """Alternatives for objects in which each part of a name is an object of its own.

    >>> nested(["host.name", "host", "log.level"])
    (('host', True, (('name', True, ()),)), ('log', False, (('level', True, ()),)))
    """
    return _nested([parts for name in names if len(parts := name.split(".")) <= _DEEPEST + 1])


def _nested(names: Sequence[Sequence[str]]) -> Alternatives:
    """Neighbours that begin with the same part become one, so that its object is looked up once."""
    found = []
    for part, group in groupby(names, key=lambda parts: parts[0]):
        rest = [parts[1:] for parts in group]
        found.append((part, [] in rest, _nested([parts for parts in rest if parts])))
    return tuple(found)


def flat(names: Iterable[str]) -> Alternatives:
    """Alternatives for what `FieldNames.flat` returns."""
    return tuple((name, True, ()) for name in names)


def first(fields: Mapping[str, Any], alternatives: Alternatives, text: bool = False) -> Any:
    """The first value that is neither an object, nor ``null``, nor empty text; ``None`` if there is none.

    Args:
        fields: The object in which the value is looked up.
        alternatives: Its names, made by `nested` or `flat`.
        text: Whether only text is taken.

    >>> first({"host": {"name": ""}, "log": {"level": 3}}, nested(["host.name", "host", "log.level"]))
    3
    """
    for name, counts, inside in alternatives:
        value = fields.get(name)
        if value is not None and value != "":
            if type(value) is dict:
                if inside:
                    value = first(value, inside, text)
                    if value is not None:
                        return value
            elif counts and (not text or type(value) is str):
                return value
    return None


@dataclass
class FieldNames:
    """Fields that are looked for: a value by its name if it is no object, else fields inside of it.

    >>> names = FieldNames.of(["host.name", "log.syslog.severity.code"])
    >>> message = {"host": {"name": "a"}, "log": {"syslog.severity": {"code": 3}}}
    >>> names.each_part_is_an_object(message), names.flat(message)
    (False, {'host.name': 'a', 'log.syslog.severity.code': 3})
    """

    name: str = ""
    inside: dict[str, FieldNames] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Iterable[str]) -> FieldNames:
        """The fields with some names, in which dots stand between the names of objects."""
        root = cls()
        for name in names:
            root._add(name.split("."), name)
        return root

    def _add(self, parts: Sequence[str], name: str, depth: int = 0) -> None:
        """Adds a field by its parts, of which the names of several objects, one in another, may consist."""
        for end in range(1, len(parts) + 1):
            part = self.inside.setdefault(".".join(parts[:end]), FieldNames())
            if end == len(parts):
                part.name = name
            elif depth < _DEEPEST:
                part._add(parts[end:], name, depth + 1)

    @cached_property
    def _with_dots(self) -> tuple[frozenset[str], tuple[tuple[str, FieldNames], ...]]:
        """The names with dots; and the objects, without dots in their names, that may have names with dots in them."""
        names = frozenset(name for name in self.inside if "." in name)
        objects = ((name, part) for name, part in self.inside.items() if name not in names)
        return names, tuple((name, part) for name, part in objects if any(part._with_dots))

    def each_part_is_an_object(self, fields: Mapping[str, Any]) -> bool:
        """Whether no such field has a dot in its name or in that of an object around it.

        Then each field stands in one place at most, and `first` finds it there. Otherwise it may stand in several, of
        which the last one counts; `flat` returns it.
        """
        names, objects = self._with_dots
        if not names.isdisjoint(fields):
            return False
        for name, part in objects:
            if name in fields:
                value = fields[name]
                if type(value) is dict and not part.each_part_is_an_object(value):
                    return False
        return True

    def flat(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """These fields of an object, and of objects in it, by their names with dots; the last of a name counts."""
        values: dict[str, Any] = {}
        self._flatten(fields, values)
        return values

    def _flatten(self, fields: Mapping[str, Any], values: dict[str, Any]) -> None:
        inside = self.inside
        for name, value in fields.items():
            part = inside.get(name)
            if part is not None:
                if type(value) is dict:
                    if not part.inside.keys().isdisjoint(value):
                        part._flatten(value, values)
                elif part.name:
                    values[part.name] = value
