"""From a decoded record to the records of a job with several inputs, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.spec.duration import NEVER
from engine.spec.inputs import INPUT, schema
from engine.spec.source import Source
from engine.spec.steps import row_by_row


def rows(inputs: Sequence[Source], topic: str, record: dict[str, Any], arrived: int = NEVER) -> list[dict[str, Any]]:
    """The records that a job makes of a decoded record: after the steps, with the columns of `schema`."""
    records = []
    for number, source in enumerate(inputs):
        if topic in source.formats:
            stamp = {} if source.clock == "event" else {source.time: arrived}
            stepped = row_by_row(source.steps, [record | stamp], source.decoded())
            records += [_row(inputs, number, row) for row in stepped if row[source.time] is not None]
    return records


def _row(inputs: Sequence[Source], number: int, row: dict[str, Any]) -> dict[str, Any]:
    return row if len(inputs) == 1 else dict.fromkeys(schema(inputs).names) | row | {INPUT: number}
