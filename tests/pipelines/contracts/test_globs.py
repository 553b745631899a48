"""Globs over names: what each of their two signs stands for, alone and together."""

from __future__ import annotations

import time

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.contracts.globs import compiled, matches

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


some_globs = st.lists(st.text("ab*?\n{", min_size=1, max_size=8), max_size=3)


@given(some_globs, st.lists(st.text("ab\n{", max_size=12), max_size=20))
def test_one_name_at_a_time_is_matched_as_many_at_once_are(globs: list[str], names: list[str]) -> None:
    several, one = [matches(glob, pl.Series(names, dtype=pl.String)) for glob in globs], compiled(tuple(globs))
    assert [bool(one.match(name)) for name in names] == [any(each[n] for each in several) for n in range(len(names))]


def test_a_glob_of_many_stars_takes_no_longer_for_a_name_that_almost_matches() -> None:
    """A sender chooses names; going back to each star would take years here."""
    began = time.process_time()
    assert not compiled(("*a" * 200 + "*b",)).match("a" * 1_024)
    assert time.process_time() - began < 1
