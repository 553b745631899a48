"""What a decoded record is to a job of several inputs, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.spec.duration import NEVER
from engine.spec.inputs import INPUT, schema
from engine.spec.source import Source
from engine.spec.steps import row_by_row


def rows(inputs: Sequence[Source], topic: str, record: dict[str, Any], arrived: int = NEVER) -> list[dict[str, Any]]:
    """What a decoded record of a topic is to the job, for references: after the steps, with the columns of `schema`."""
    found = []
    for number, source in enumerate(inputs):
        if topic in source.formats:
            stamp = {} if source.clock == "event" else {source.time: arrived}
            made = row_by_row(source.steps, [record | stamp], source.decoded())
            found += [_row(inputs, number, row) for row in made]
    return found


def _row(inputs: Sequence[Source], number: int, row: dict[str, Any]) -> dict[str, Any]:
    return row if len(inputs) == 1 else dict.fromkeys(schema(inputs).names) | row | {INPUT: number}
