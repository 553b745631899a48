"""Names of fields that are nearly those of optional ones: the default in their place would be silently wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from engine.spec.record import Record


@cache
def near(name: str) -> str:
    """A pattern of another case of a name, a letter left out, doubled or swapped with the next, or a plural.

    >>> [bool(re.fullmatch(near("kind"), name)) for name in ("Kind", "knd", "kinds", "ikdn", "wind", "tags")]
    [True, True, True, False, False, False]
    """
    forms = {name, f"{name}s"}
    for i in range(1, len(name)):
        forms |= {name[:i] + name[i + 1 :], name[:i] + name[i] + name[i:]}
        forms.add(name[: i - 1] + name[i] + name[i - 1] + name[i + 1 :])
    return f"(?i:{'|'.join(sorted(map(re.escape, forms)))})"


def misspelt(given: Mapping[str, object], record: type[Record]) -> Iterator[str]:
    """Names in a JSON object that are nearly the name of an optional field which is absent."""
    needed = {info.alias or name: info.is_required() for name, info in record.model_fields.items()}
    absent = [name for name, required in needed.items() if not required and name not in given]
    for name in given:
        if name not in needed and any(re.fullmatch(near(other), name) for other in absent):
            yield name
