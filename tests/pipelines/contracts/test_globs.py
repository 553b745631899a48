"""Globs over names: what each of their two signs stands for, alone and together."""

from __future__ import annotations

import polars as pl
import pytest

from pipelines.contracts.globs import matches

NAMES = ["cpu", "cpu.user", "cpu.user2", "cp*", "disk{path=/}"]


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*", NAMES),
        ("cpu*", ["cpu", "cpu.user", "cpu.user2"]),
        ("cpu.user?", ["cpu.user2"]),
        ("cp?", ["cpu", "cp*"]),
        ("?pu.*2", ["cpu.user2"]),
        ("cpu", ["cpu"]),
        ("disk{path=/}", ["disk{path=/}"]),
        ("c.u", []),
    ],
)
def test_a_star_is_any_text_a_question_mark_one_character_and_all_else_itself(glob: str, found: list[str]) -> None:
    names = pl.Series(NAMES)
    assert names.filter(pl.Series(matches(glob, names))).to_list() == found
