"""Prints which scenario passed where."""

from __future__ import annotations

import pytest

_RUNNERS = ("reference", "operator", "spark", "bounded")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The matrix of scenarios and runners."""
    if config.getoption("markexpr") != "transcripts":
        return
    matrix: dict[str, dict[str, str]] = {}
    for outcome, mark in (("passed", "ok"), ("failed", "FAILED"), ("skipped", "skipped")):
        for report in terminalreporter.stats.get(outcome, []):
            _, _, name = report.nodeid.partition("[")
            if not name:
                continue
            runner = "spark" if "tests/spark/" in report.nodeid else "bounded"
            for some in ("reference", "operator"):
                if name.endswith(f"-{some}]"):
                    name, runner = name.removesuffix(f"-{some}]"), some
            matrix.setdefault(name.removesuffix("]"), {})[runner] = mark
    terminalreporter.section("transcripts")
    for name, cells in sorted(matrix.items()):
        terminalreporter.write_line("  ".join(f"{cells.get(r, '-'):<9}" for r in _RUNNERS) + "  " + name)
    terminalreporter.write_line(f"{len(matrix)} scenarios on {', '.join(_RUNNERS)}")
