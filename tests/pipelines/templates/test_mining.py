"""Templates: the same whatever the batches, the order of arrival and the restarts; counted by template and severity."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from engine.testing import Driven
from pipelines.jobs.templates.job import templates
from pipelines.jobs.templates.miner import Miner
from pipelines.jobs.templates.tree import MOST_ALIKE, Tree
from tests.pipelines.site import SETTINGS, START, WINDOW, driven, lines, messages, said

JOB = templates(SETTINGS)
LINES = lines(6)
SPAN = 6 * 60_000


def _rows(run: Driven) -> list[dict[str, object]]:
    return sorted(run.rows, key=lambda row: (row["window_end"], row["entity"], row["metric"]))


WHOLE = _rows(driven(JOB, LINES, []))


@hypothesis(deadline=None, max_examples=10)
@given(st.lists(st.integers(0, SPAN), max_size=5), st.integers(0, 1000))
def test_features_are_the_same_whatever_the_batches_and_the_order_of_arrival(cuts: list[int], seed: int) -> None:
    assert _rows(driven(JOB, LINES, [START + cut for cut in cuts], seed=seed)) == WHOLE


def test_each_line_is_counted_once_by_template_and_once_by_severity() -> None:
    rows = pl.DataFrame(WHOLE)
    for prefix in ("log.template.", "log.severity."):
        counts = rows.filter(pl.col("metric").str.starts_with(prefix)).group_by("entity").agg(pl.col("count").sum())
        expected = LINES.group_by("entity").agg(count=pl.len().cast(pl.Int64))
        assert counts.sort("entity").equals(expected.sort("entity"))


def test_templates_are_few_and_name_what_the_simulator_wrote() -> None:
    rows = pl.DataFrame(WHOLE).filter(pl.col("template").is_not_null())
    found = set(rows["template"])
    assert len(found) <= 16
    assert "app session <n> established for cell <n> in <n> ms" in found
    one = rows.filter(pl.col("template").str.starts_with("app session")).row(0, named=True)
    assert str(one["example"]).startswith("session ")
    assert one["severity"] == 6


def test_a_template_keeps_its_id_when_it_becomes_more_general() -> None:
    names = ["user ann logged in", "user bob logged in", "user eve logged in"]
    rows = [said("a", START + i * WINDOW, name) for i, name in enumerate(names)]
    run = driven(JOB, pl.DataFrame(rows), [START + WINDOW])
    found = pl.DataFrame(run.rows).filter(pl.col("template").is_not_null()).sort("window_end")
    assert found["metric"].n_unique() == 1
    assert found["template"].to_list() == ["app user ann logged in", *["app user <*> logged in"] * 2]


def test_lines_too_late_for_their_window_go_to_the_late_topic() -> None:
    run = driven(JOB, LINES, [START + 60_000])
    before = len(run.rows)
    run.kafka(_late(run))
    assert len(run.rows) == before
    assert [row["message"] for row in run.late] == ["too late"]


def _late(run: Driven) -> list[object]:
    return list(messages(pl.DataFrame([said("late", START, "too late")]), 2**60, run.offset))


def test_a_miner_that_is_full_forgets_what_it_has_not_heard_for_longest_and_works_the_same_after_a_restart() -> None:
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
    texts = [" ".join([word] * (i + 1)) for i, word in enumerate(words)]
    through, again = Miner(most=4), Miner(most=4)
    for end, text in enumerate([*texts, *texts], 1):
        counts = pl.DataFrame({"program": ["p"], "masked": [text], "first": [end]})
        one = through.window(counts, end)
        again = replace(again, _tree=None)  # a restart leaves the tables only
        assert again.window(counts, end).equals(one)
        assert through.templates.height <= 4
    assert through.templates.equals(again.templates)
    assert set(through.templates["text"]) <= {f"p {text}" for text in texts[-4:]}


def test_a_template_is_as_grave_as_its_gravest_line_and_severities_are_counted_apart() -> None:
    rows = [said("a", START + i, f"disk {i} is slow", severity=severity) for i, severity in enumerate((6, 3, 6, 4, 8))]
    found = {str(row["metric"]): row for row in driven(JOB, pl.DataFrame(rows), []).rows}
    (template,) = [row for metric, row in found.items() if metric.startswith("log.template.")]
    assert (template["count"], template["severity"]) == (5, 3)
    severities = {metric: row["count"] for metric, row in found.items() if metric.startswith("log.severity.")}
    assert severities == {
        **{"log.severity.informational": 2, "log.severity.error": 1, "log.severity.warning": 1},
        "log.severity.unknown": 1,  # a level that is not known is counted as such, and is not taken for info
    }


def test_a_miner_remembers_at_most_eight_times_as_many_lines_as_templates() -> None:
    miner = Miner(most=4)
    for end in range(1, 60):
        lines = [f"disk {word}{end} is slow" for word in "abcde"]
        miner.window(pl.DataFrame({"program": "p", "masked": lines, "first": end}), end)
        assert miner.lines.height <= 32
    assert miner.templates.height <= 4


def _random_lines(count: int, words: int, seed: int) -> pl.DataFrame:
    """Lines of random letters that begin alike and have as many words, each in one program."""
    chance = random.Random(seed)
    texts = ["x y z " + " ".join(chance.choices("ghijklmnopqrstuvwxyz", k=words - 3)) for _ in range(count)]
    return pl.DataFrame({"program": "app", "masked": texts, "first": range(count)})


def test_lines_of_random_words_make_few_templates_and_bounded_work_also_within_a_window() -> None:
    miner = Miner()
    miner.window(_random_lines(MOST_ALIKE, 250, 1), 1)
    with monitored() as compared:
        found = miner.window(_random_lines(300, 250, 2), 2)
    assert miner.templates.height <= MOST_ALIKE + 1
    assert found["id"].null_count() == 0
    assert max(compared) <= MOST_ALIKE, "each line is compared with so many templates at most"
    assert "app <*>" in miner.templates["text"].to_list()
    again = Miner(miner.templates, miner.lines)
    more = _random_lines(50, 250, 3)
    assert again.window(more, 3)["id"].to_list() == miner.window(more, 3)["id"].to_list(), "a restart changes nothing"


def test_honest_lines_beside_random_ones_keep_their_templates() -> None:
    honest = ["user ann logged in", "user bob logged in", "user eve logged in"]
    lines = pl.DataFrame({"program": "app", "masked": honest, "first": [1, 2, 3]})
    miner = Miner()
    miner.window(pl.concat([_random_lines(300, 60, 1), lines.cast({"first": pl.Int64})]), 1)
    assert "app user <*> logged in" in miner.templates["text"].to_list()


def test_a_window_of_lines_that_are_all_different_does_not_make_more_than_twice_the_templates() -> None:
    miner = Miner(most=20)
    programs = [f"p{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(200)]
    lines = pl.DataFrame({"program": programs, "masked": "a b c", "first": range(200)})
    tree = miner.tree()
    assert miner.window(lines, 1)["id"].null_count() == 0
    assert len(tree.texts) <= 2 * 20 + 1


@contextmanager
def monitored() -> Iterator[list[int]]:
    """How many templates lines are compared with, while a block runs."""
    seen: list[int] = []
    whole = Tree.compared

    def counting(self: Tree, leaf: list[int]) -> list[int]:
        found = whole(self, leaf)
        seen.append(len(found))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tree, "compared", counting)
        yield seen
