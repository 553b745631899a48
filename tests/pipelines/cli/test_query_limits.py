"""`newnormal query` says itself how many states and windows the view gives at once; no view runs here."""

from __future__ import annotations

import pytest

from tests.pipelines.cli.conftest import Run


@pytest.mark.parametrize(
    "arguments",
    [
        ["windows", "a", "cpu", "-n", "0"],
        ["windows", "a", "cpu", "-n", "20000"],
        ["top", "0"],
        ["states", "--limit", "10001"],
    ],
)
def test_a_number_that_the_view_would_refuse_is_refused_with_what_is_accepted(run: Run, arguments: list[str]) -> None:
    code, _, err = run("query", *arguments)
    assert (code, "USAGE_INVALID" in err) == (2, True), err
    assert "greater than or equal to 1" in err or "less than or equal to 10000" in err
