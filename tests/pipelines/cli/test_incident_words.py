"""The state of an incident in words, without servers."""

from __future__ import annotations

import pytest

from pipelines.cli.incidents import _state
from tests.pipelines.incidents.cases import MINUTE, Feed, news


@pytest.mark.parametrize(("status", "words"), [
    ("acknowledged", "acknowledged by ann"), ("resolved", "resolved, looked after by ann"),
])  # fmt: skip
def test_who_looks_after_an_incident_has_not_resolved_it(status: str, words: str) -> None:
    """An incident is resolved by silence, whoever has acknowledged it."""
    feed = Feed()
    feed.send([news("db-1", "cpu", 0), news("db-1", "mem", 0)], MINUTE)
    found = feed.standing[0]
    assert _state(found) == found.status
    assert _state(found.model_copy(update={"status": status, "acknowledged_by": "ann"})) == words
