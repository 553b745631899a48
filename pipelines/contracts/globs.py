"""Globs over the names of machines and metrics; `*` stands for any text, `?` for one character."""

from __future__ import annotations

import re
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

LONGEST = 512
"""The most characters of a glob: as many as a name may have."""


def pattern(glob: str) -> str:
    r"""The regular expression of a glob of `*` and `?`; all other characters stand for themselves.

    >>> pattern("disk.*{path=/}")
    '^(?s:disk\\..*\\{path=/\\})$'
    """
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in glob)
    return f"^(?s:{''.join(parts)})$"


def matches(glob: str, names: pl.Series) -> NDArray[np.bool_]:
    """For each name whether the glob matches it."""
    if glob == "*":
        return np.ones(len(names), np.bool_)
    if "*" in glob or "?" in glob:
        return names.cast(pl.String).str.contains(pattern(glob)).to_numpy()
    return (names == glob).to_numpy()


def _usable(glob: str) -> str:
    try:
        matches(glob, pl.Series([""]))
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"not a glob: {error}") from None
    return glob


Glob = Annotated[str, Field(min_length=1, max_length=LONGEST), AfterValidator(_usable)]
"""The type of a field that holds a glob; a glob that cannot be compiled is refused."""
