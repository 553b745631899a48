"""Globs over the names of machines and metrics; `*` stands for any text, `?` for one character."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

LONGEST = 512
"""The most characters of a glob: as many as a name may have."""


def is_glob(text: str) -> bool:
    """Whether a text may match others than itself.

    >>> is_glob("web-*"), is_glob("web-1")
    (True, False)
    """
    return "*" in text or "?" in text


def pattern(glob: str) -> str:
    r"""The regular expression of a glob of `*` and `?`; all other characters stand for themselves.

    >>> pattern("disk.*{path=/}")
    '^(?s:disk\\..*\\{path=/\\})$'
    """
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in glob)
    return f"^(?s:{''.join(parts)})$"


@lru_cache(8_192)
def compiled(globs: tuple[str, ...]) -> re.Pattern[str]:
    r"""What matches the names that one of some globs does, one name at a time.

    Polars' expressions never go back; Python's do, but not into an atomic group. So no star is tried twice.

    >>> compiled(("a*b*c",)).pattern
    '(?s:a(?>.*?b).*c\\Z)'
    """
    return re.compile("|".join(map(_atomic, globs)) or "(?!)")


def _atomic(glob: str) -> str:
    first, *rest = ("".join("." if c == "?" else re.escape(c) for c in part) for part in glob.split("*"))
    between = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
    return f"(?s:{first}{between}{'.*' + rest[-1] if rest else ''}\\Z)"


def matches(glob: str, names: pl.Series) -> NDArray[np.bool_]:
    """For each name whether the glob matches it."""
    if glob == "*":
        return np.ones(len(names), np.bool_)
    if is_glob(glob):
        return names.cast(pl.String).str.contains(pattern(glob)).to_numpy()
    return (names == glob).to_numpy()


def wildcard(glob: str) -> str:
    r"""A glob as a wildcard pattern of Elasticsearch, in which a backslash must be escaped.

    >>> wildcard("C:\\*")
    'C:\\\\*'
    """
    return glob.replace("\\", "\\\\")


def _usable(glob: str) -> str:
    try:
        matches(glob, pl.Series([""]))
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"not a glob: {error}") from None
    return glob


Glob = Annotated[str, Field(min_length=1, max_length=LONGEST), AfterValidator(_usable)]
"""The type of a field that holds a glob; a glob that cannot be compiled is refused."""
