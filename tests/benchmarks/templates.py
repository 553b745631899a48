"""Log templates on recorded lines whose true templates are known: grouping accuracy, and new kinds that are not new.

Each file is a CSV with the columns ``Content`` (the line) and ``EventId`` (its true template), as those of
J. Zhu et al., Loghub: a large collection of system log datasets for AI-driven log analytics, ISSRE 2023.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from engine.spec.errors import NewnormalError
from pipelines.jobs.templates.job import masked
from pipelines.jobs.templates.miner import Miner

WINDOW = 50
"""So many lines are mined together, as if they were the lines of one window."""


def run(data: Path) -> dict[str, Any]:
    """Figures of each system, and the means of all."""
    systems = {file.stem.partition("_")[0]: judged(lines(file)) for file in recorded(data)}
    names = next(iter(systems.values()))
    mean = {name: round(sum(system[name] for system in systems.values()) / len(systems), 3) for name in names}
    return {"systems": systems, "mean": mean}


def recorded(data: Path) -> list[Path]:
    """The files of recorded logs in a folder.

    Raises:
        NewnormalError: ``FILE_UNUSABLE`` if it has none.
    """
    folder = data / "loghub" if (data / "loghub").exists() else data
    files = sorted(folder.glob("*_structured.csv"))
    if not files:
        raise NewnormalError("FILE_UNUSABLE", f"{folder} has no *_structured.csv", "option --data", "recorded logs")
    return files


def lines(file: Path) -> pl.DataFrame:
    """The lines of a file (``message``) and their true templates (``truth``), in their order."""
    frame = pl.read_csv(file, infer_schema=False)
    return frame.select(pl.col("Content").fill_null("").alias("message"), truth="EventId")


def judged(frame: pl.DataFrame) -> dict[str, float]:
    """Mines the lines of one program, in windows of `WINDOW` lines, and compares their templates with the true ones."""
    frame = frame.with_columns(program=pl.lit("app"), first=pl.int_range(pl.len()))
    miner, found = Miner(), []
    began = time.perf_counter()
    for at in range(0, frame.height, WINDOW):
        part = frame.slice(at, WINDOW).with_columns(masked=masked("message"))
        found += miner.window(part, at + WINDOW)["id"].to_list()
    took = time.perf_counter() - began
    truth = frame["truth"].to_list()
    return {
        "grouping_accuracy": round(grouping_accuracy(found, truth), 3),
        "templates": len(set(found)),
        "true_templates": len(set(truth)),
        "false_new_kinds": false_new_kinds(found, truth),
        "microseconds_a_line": round(took / frame.height * 1e6, 1),
    }


def grouping_accuracy(found: Sequence[str], truth: Sequence[str]) -> float:
    """The share of the lines whose template has exactly the lines of their true template.

    Source: J. Zhu et al., Tools and benchmarks for automated log parsing, ICSE 2019.

    >>> grouping_accuracy(["a", "a", "b", "c"], ["x", "x", "y", "y"])
    0.5
    """
    of_found: defaultdict[str, list[int]] = defaultdict(list)
    of_truth: defaultdict[str, list[int]] = defaultdict(list)
    for at, (one, other) in enumerate(zip(found, truth, strict=True)):
        of_found[one].append(at)
        of_truth[other].append(at)
    right = sum(len(some) for some in of_found.values() if of_truth[truth[some[0]]] == some)
    return right / len(found)


def false_new_kinds(found: Sequence[str], truth: Sequence[str]) -> int:
    """How often a template was new though lines of the true template had been seen before: a false "never seen".

    >>> false_new_kinds(["a", "b", "c", "a"], ["x", "x", "y", "y"])
    1
    """
    seen: tuple[set[str], set[str]] = set(), set()
    count = 0
    for one, other in zip(found, truth, strict=True):
        count += one not in seen[0] and other in seen[1]
        seen[0].add(one)
        seen[1].add(other)
    return count
