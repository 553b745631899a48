"""What the number of shards decides about log lines, which is the stated exception, and what it does not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from engine.testing import Driven
from pipelines.contracts.settings import load
from pipelines.jobs.templates.job import templates
from pipelines.jobs.templates.mining import SEVERITY, TEMPLATE
from tests.pipelines.site import lines
from tests.pipelines.test_rescaling import logs_batch, said

MINUTES, BATCHES = 6, 3


def counted(shards: int) -> list[dict[str, Any]]:
    frame, driven = lines(MINUTES), Driven(templates(load()), shards)
    for number in range(BATCHES):
        driven.kafka(logs_batch(frame, number))
    return driven.rows


def of_severities(rows: list[dict[str, Any]]) -> list[str]:
    return said([row for row in rows if row["metric"].startswith(SEVERITY)])


def of_templates(rows: list[dict[str, Any]]) -> Counter[tuple[str, int]]:
    """The lines of each machine and window, of all templates together."""
    total: Counter[tuple[str, int]] = Counter()
    for row in rows:
        total[row["entity"], row["window_end"]] += row["count"] if row["metric"].startswith(TEMPLATE) else 0
    return total


@pytest.mark.parametrize("shards", [2, 4])
def test_only_which_template_a_line_has_depends_on_the_number_of_shards(shards: int) -> None:
    wanted, found = counted(1), counted(shards)
    assert len(of_severities(wanted)) > 20
    assert of_severities(found) == of_severities(wanted)
    assert of_templates(found) == of_templates(wanted)
