"""Measures how far two versions agree on the windows that both have judged."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.evaluation.comparison.verdicts import WINDOW


@dataclass(frozen=True)
class Agreement:
    """How far two versions agree.

    Attributes:
        windows: Number of windows on which they are compared: those on which both have a verdict; and those on which
            one has, and the other does not store verdicts on quiet windows.
        alone: For each version the number of windows within the compared times that only this version has.
        alike: Share of the windows on which both raise an alarm, or neither does; ``None`` without windows.
        same_kind: Share of the windows with two verdicts on which these have the same kind; ``None`` without any.
        kappa: Cohen's kappa of raising an alarm or not: 1 is full agreement, 0 what chance would give; ``None`` if
            neither raises any alarm, or both always do. Source: J. Cohen, Educational and Psychological Measurement 20
            (1960).
        kinds: Number of windows by (kind in the first version, kind in the second).
    """

    windows: int
    alone: tuple[int, int]
    alike: float | None
    same_kind: float | None
    kappa: float | None
    kinds: dict[tuple[str, str], int]


def agreement(first: pl.DataFrame, second: pl.DataFrame, sparse: tuple[bool, bool] = (False, False)) -> Agreement:
    """Compares the verdicts on the windows that both versions have.

    Args:
        first: Verdicts of the first version, on the times that both have judged.
        second: Those of the second one.
        sparse: For each version whether a window on which it has no verdict was quiet.
    """
    lengths = [set((each["window_end"] - each["window_start"]).unique()) for each in (first, second)]
    if all(lengths) and not lengths[0] & lengths[1]:
        sparse = (False, False)  # no window of one is a window of the other
    both = first.select(*WINDOW, "kind").join(second.select(*WINDOW, other="kind"), on=WINDOW)
    table = both.group_by("kind", "other").len().sort("len", "kind", "other", descending=[True, False, False])
    kinds = {(str(one), str(other)): int(number) for one, other, number in table.rows()}
    pairs, alone = both.height, [first.height - both.height, second.height - both.height]
    cells = {(one, other): 0 for one in (True, False) for other in (True, False)}
    for (one, other), number in kinds.items():
        cells[one in ALARM_KINDS, other in ALARM_KINDS] += number
    if sparse[1]:
        _quiet(cells, first.join(second, on=WINDOW, how="anti"), 0)
        alone[0] = 0
    if sparse[0]:
        _quiet(cells, second.join(first, on=WINDOW, how="anti"), 1)
        alone[1] = 0
    windows = sum(cells.values())
    if not windows:
        return Agreement(0, (alone[0], alone[1]), None, None, None, {})
    alike = (cells[True, True] + cells[False, False]) / windows
    same = sum(number for (one, other), number in kinds.items() if one == other) / pairs if pairs else None
    return Agreement(windows, (alone[0], alone[1]), alike, same, kappa(cells), kinds)


def _quiet(cells: dict[tuple[bool, bool], int], only: pl.DataFrame, version: int) -> None:
    """Counts the windows on which only one version (0, 1) has a verdict, and the other one was quiet."""
    alarms = only.filter(pl.col("kind").is_in(ALARM_KINDS)).height
    cells[(True, False) if version == 0 else (False, True)] += alarms
    cells[False, False] += only.height - alarms


def kappa(cells: dict[tuple[bool, bool], int]) -> float | None:
    """Cohen's kappa of two judges from the numbers of windows by (the first says yes, the second says yes).

    >>> round(kappa({(True, True): 20, (True, False): 5, (False, True): 10, (False, False): 15}), 3)
    0.4
    """
    total = sum(cells.values())
    observed = (cells[True, True] + cells[False, False]) / total
    yes = [(cells[True, True] + other) / total for other in (cells[True, False], cells[False, True])]
    chance = yes[0] * yes[1] + (1 - yes[0]) * (1 - yes[1])
    return None if chance == 1 else (observed - chance) / (1 - chance)
