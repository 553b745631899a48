"""Finds misspelt names of optional fields, whose default value would otherwise be used silently."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from engine.spec.record import Record


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


def misspelt(given: Mapping[str, object], record: type[Record]) -> Iterator[str]:
    """Yields names in a JSON object that are misspellings of an optional field which is missing."""
    needed = {info.alias or name: info.is_required() for name, info in record.model_fields.items()}
    absent = [name for name, required in needed.items() if not required and name not in given]
    for name in given:
        if name not in needed and any(re.fullmatch(near(other), name) for other in absent):
            yield name
