"""Explains validation errors in words, and finds misspelt names, for dead letters and for the errors of commands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from functools import cache

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from engine.spec.record import Record, TimeMs
from engine.spec.time_bounds import other_unit

_MOST, _LONGEST = 10, 60


def explain(error: ValidationError, record: type[Record], names: Collection[str] = ()) -> str:
    """The wrong fields, what is wrong with each, and its value; at most ten fields.

    Args:
        error: The error of a record.
        record: The type of the record.
        names: The names of all fields of the message, if unknown fields are no error themselves.

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
    accepted = {info.alias or name for name, info in record.model_fields.items()}
    strangers = sorted(set(names) - accepted)[:_MOST]
    return "; ".join([*parts, *(unknown(name, record) for name in strangers)])


def _why(wrong: ErrorDetails, record: type[Record]) -> str:
    offending = wrong["input"]
    try:
        shown = repr(str(offending)[:_LONGEST])
    except RecursionError:
        shown = "what is nested too deeply to be shown"
    fields = {info.alias or name: info for name, info in record.model_fields.items()}
    marks = fields[str(wrong["loc"][0])].metadata if str(wrong["loc"][0]) in fields else []
    instant = isinstance(offending, int | float) and any(isinstance(mark, TimeMs) for mark in marks)
    if instant and (hint := other_unit(offending)):
        return f"{shown} {hint}"
    if wrong["type"] in ("float_type", "int_type"):
        problem = {bool: "a flag", str: "text", float: "no whole number"}.get(type(offending), "no number")
        return f"{shown} is {problem}; accepted: a number" + (", without quotes" if isinstance(offending, str) else "")
    why = wrong["msg"].removeprefix("Value error, ").removeprefix("Input ").replace("String ", "text ")
    return f"{why}, got {shown}"


def unknown(name: str, record: type[Record]) -> str:
    """Says that a record has no field of this name, and which one was probably meant."""
    refusal = f"{name[:_LONGEST]!r} is not a field of {record.__name__.lower()}"
    meant = nearest_field(name, record)
    return f"{refusal}: did you mean {meant}?" if meant else refusal


def nearest_field(name: str, record: type[Record]) -> str | None:
    """The field, by its name in JSON, that is nearest to a misspelt name; ``None`` if none is near.

    >>> from pipelines.contracts.records import Telemetry
    >>> nearest_field("Host", Telemetry), nearest_field("knd", Telemetry), nearest_field("tags", Telemetry)
    ('host.name', 'kind', None)
    """
    names: dict[str, str] = {}
    for own, info in record.model_fields.items():
        alias = info.alias or own
        names |= dict.fromkeys((own, alias, *alias.split(".")), alias)
    nearest = get_close_matches(name.lower()[:_LONGEST], names, 1, 0.75)
    return names[nearest[0]] if nearest else None


@cache
def near(name: str) -> str:
    """A pattern for misspellings of a name: another case, a letter left out, doubled or swapped, or a plural.

    >>> [bool(re.fullmatch(near("kind"), name)) for name in ("Kind", "knd", "kinds", "ikdn", "wind", "tags")]
    [True, True, True, False, False, False]
    """
    forms = {name, f"{name}s"}
    for i in range(1, len(name)):
        forms |= {name[:i] + name[i + 1 :], name[:i] + name[i] + name[i:]}
        forms.add(name[: i - 1] + name[i] + name[i - 1] + name[i + 1 :])
    return f"(?i:{'|'.join(sorted(map(re.escape, forms)))})"


def misspelt(fields: Mapping[str, object], record: type[Record]) -> Iterator[str]:
    """Yields names in a JSON object that are misspellings of an optional field which is missing."""
    needed = {info.alias or name: info.is_required() for name, info in record.model_fields.items()}
    absent = [name for name, required in needed.items() if not required and name not in fields]
    for name in fields:
        if name not in needed and any(re.fullmatch(near(other), name) for other in absent):
            yield name
