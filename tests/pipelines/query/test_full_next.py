"""The view lists what will be full next, and forgets what has room again."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import orjson

from pipelines.query.view.database import Database
from pipelines.query.view.keys import FULL, names
from pipelines.query.view.states import StateMessage, take_states


def state(machine: str, median: int | None) -> dict[str, Any]:
    believed = {"host.name": machine, "metric": "disk", "kind": "normal", "record_score": 0.0}
    return believed if median is None else believed | {"full_median": median}


def take(database: Database, *states: dict[str, Any]) -> list[str]:
    """Takes states; returns the machines whose disk will be full, the next first."""
    messages = {names(each["host.name"], "disk"): StateMessage(0, orjson.dumps(each)) for each in states}
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    puts: dict[bytes, bytes] = {}
    gone: set[bytes] = set()
    take_states(database, messages, counts, puts, gone)
    database.write(list(puts.items()), list(gone))
    nearest = [series for _, series in database.scan(FULL)]
    return [orjson.loads(value)["host.name"] for value in database.get_many(nearest) if value]


def test_what_will_be_full_next_comes_first_and_what_has_room_again_is_left_out(tmp_path: Path) -> None:
    database = Database(tmp_path)
    assert take(database, state("a", 900), state("b", 1_700_000_000_000), state("c", 70_000), state("d", None)) == [
        "a",
        "c",
        "b",
    ]
    assert take(database, state("b", 5), state("a", None)) == ["b", "c"]
    assert take(database, state("c", 70_000)) == ["b", "c"]
    database.close()
