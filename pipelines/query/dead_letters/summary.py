"""Counts dead letters by job and code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pipelines.query.dead_letters.letters import Letter


def summary(letters: Iterable[Letter]) -> list[dict[str, Any]]:
    """A row for each job and code: number of letters, of those sent again, first and last time, and an example.

    The example is the newest letter that was not sent again, else the newest one. Jobs with most letters come first.
    """
    groups: dict[tuple[str, str], list[Letter]] = {}
    for each in letters:
        groups.setdefault((each.letter.job, each.letter.code), []).append(each)
    table = []
    for (job, code), some in groups.items():
        open_ = [each for each in some if each.mark is None]
        example, times = (open_ or some)[-1], [each.letter.time for each in some]
        table.append(
            {
                "job": job,
                "code": code,
                "letters": len(some),
                "sent again": len(some) - len(open_),
                "first": min(times),
                "last": max(times),
                "example": example.place,
                "reason": example.letter.reason,
            }
        )
    return sorted(table, key=lambda row: (-row["letters"], row["job"], row["code"]))
