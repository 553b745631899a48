"""Explains validation errors in words, for dead letters and for the errors of commands."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from engine.spec.record import Record, TimeMs
from engine.spec.time_bounds import other_unit

_MOST, _LONGEST = 10, 60


def explain(error: ValidationError, record: type[Record], given: Collection[str] = ()) -> str:
    """The wrong fields, what is wrong with each, and what was given; at most ten fields.

    Args:
        error: The error of a record.
        record: The type of the record.
        given: The names of all given fields, if unknown fields are no error themselves.

    >>> from pipelines.contracts.records import Label
    >>> try:
    ...     Label.model_validate({"host": "a", "event.start": 0, "verdict": "true"})
    ... except ValidationError as error:
    ...     print(explain(error, Label))
    host.name is missing; 'host' is not a field of label: did you mean host.name?
    """
    parts = []
    for wrong in error.errors(include_url=False)[:_MOST]:
        where = ".".join(map(str, wrong["loc"]))[:_LONGEST]
        if wrong["type"] == "missing":
            parts.append(f"{where} is missing")
        elif wrong["type"] == "extra_forbidden":
            parts.append(unknown(str(wrong["loc"][0]), record))
        elif not wrong["loc"]:
            parts.append(wrong["msg"].removeprefix("Value error, "))
        else:
            parts.append(f"{where}: {_why(wrong, record)}")
    more = error.error_count() - _MOST
    parts += [f"and {more} more"] if more > 0 else []
    names = {info.alias or name for name, info in record.model_fields.items()}
    strangers = sorted(set(given) - names)[:_MOST]
    return "; ".join([*parts, *(unknown(name, record) for name in strangers)])


def _why(wrong: ErrorDetails, record: type[Record]) -> str:
    given = wrong["input"]
    shown = repr(str(given)[:_LONGEST])
    fields = {info.alias or name: info for name, info in record.model_fields.items()}
    marks = fields[str(wrong["loc"][0])].metadata if str(wrong["loc"][0]) in fields else []
    instant = isinstance(given, int | float) and any(isinstance(mark, TimeMs) for mark in marks)
    if instant and (hint := other_unit(given)):
        return f"{shown} {hint}"
    if wrong["type"] in ("float_type", "int_type"):
        what = {bool: "a flag", str: "text", float: "no whole number"}.get(type(given), "no number")
        return f"{shown} is {what}; accepted: a number" + (", without quotes" if isinstance(given, str) else "")
    why = wrong["msg"].removeprefix("Value error, ").removeprefix("Input ").replace("String ", "text ")
    return f"{why}, got {shown}"


def unknown(name: str, record: type[Record]) -> str:
    """Says that a record has no field of this name, and which one was probably meant."""
    said = f"{name[:_LONGEST]!r} is not a field of {record.__name__.lower()}"
    meant = close(name, record)
    return f"{said}: did you mean {meant}?" if meant else said


def close(name: str, record: type[Record]) -> str | None:
    """The field, by its name in JSON, that is nearest to a misspelt name; ``None`` if none is near.

    >>> from pipelines.contracts.records import Telemetry
    >>> close("Host", Telemetry), close("knd", Telemetry), close("tags", Telemetry)
    ('host.name', 'kind', None)
    """
    names: dict[str, str] = {}
    for own, info in record.model_fields.items():
        alias = info.alias or own
        names |= dict.fromkeys((own, alias, *alias.split(".")), alias)
    found = get_close_matches(name.lower()[:_LONGEST], names, 1, 0.75)
    return names[found[0]] if found else None
