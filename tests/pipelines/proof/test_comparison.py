"""What counts as the same when an incident is computed again: each field of it and of its verdicts, bit for bit."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.contracts.records import Incident
from pipelines.contracts.records.incident import AffectedSeries
from pipelines.contracts.settings import Settings
from pipelines.proof import account as accounts
from pipelines.proof.account import Account
from pipelines.proof.comparison import EARLIER, HOW_OFTEN, compare

START = 1_795_219_200_000
STEP = 10_000


def incident(**fields: Any) -> Incident:
    series = AffectedSeries(
        entity="web-1", metric="cpu", kind="anomaly", since=START, reported=START + STEP, record_score=80, actual=90.0,
        typical=50.0, lower=45.0, upper=55.0, change="1.8 × the usual",
    )  # fmt: skip
    known: dict[str, Any] = {
        "id": "3f2ab41c", "opened": START + STEP, "site": "default", "status": "resolved", "severity": "major",
        "severity_score": 60, "record_score": 80, "start": START, "end": START + 3 * STEP, "updated": START + 70 * STEP,
        "message": "web-1: cpu 1.8 × the usual", "machine_count": 1, "series_count": 1, "open_series": 0,
        "series": [series], "machines": [{"entity": "web-1", "since": START, "series": 1, "record_score": 80}],
        "metrics": [{"metric": "cpu", "machines": 1, "record_score": 80}],
        "candidates": [{"entity": "web-1", "metric": "cpu", "since": START, "share": 0.75, "reason": "first"}],
        "log_changes": [{"template": "lost <*>", "entity": "web-1", "since": START, "machines": 1}],
        "changes": [{"id": "d1", "kind": "deployment", "message": "web 2.1", "since": START - STEP, "entity": "web-1"}],
        "unknown_share": 0.25, "revision": START + 70 * STEP,
    }  # fmt: skip
    return Incident(**known | fields)


def verdict(window: int, kind: str = "anomaly", **fields: Any) -> dict[str, Any]:
    start = START + window * STEP
    known = {
        "host.name": "web-1", "metric": "cpu", "window_start": start, "@timestamp": start + STEP, "kind": kind,
        "record_score": 80.25, "actual": 90.1, "evidence": {"value": 7.125, "change": 3.5}, "rules": [], "revision": 0,
    }  # fmt: skip
    return known | fields


def verdicts(*some: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    return {(each["host.name"], each["metric"], each["window_start"], each["@timestamp"]): each for each in some}


SAID = incident(), verdicts(verdict(0), verdict(1), verdict(2, "recovered", record_score=1.5))


def test_what_was_written_more_often_or_later_is_the_same() -> None:
    again = incident(revision=START + 99 * STEP, ingested=START + 100 * STEP)
    others = verdicts(*(each | {"revision": 7, "event.ingested": 5} for each in SAID[1].values()))
    result = compare(SAID, (again, others))
    assert result.proven
    assert [(row.compared, row.equal) for row in result.rows[1:]] == [(3, 3)]
    assert result.rows[0].compared == result.rows[0].equal


FIELDS = sorted(verdict(0).keys() - HOW_OFTEN - {"host.name", "metric", "window_start", "@timestamp", "rules", "kind"})


@given(st.sampled_from(FIELDS), st.integers(0, 2), st.booleans())
def test_a_number_that_differs_in_its_last_bit_is_found_with_both_values(field: str, place: int, rounded: bool) -> None:
    key = list(SAID[1])[place]

    def next_to(value: Any) -> Any:
        return (
            {name: next_to(v) for name, v in value.items()} if isinstance(value, dict) else math.nextafter(value, 99.9)
        )

    altered = SAID[1] | {key: dict(SAID[1][key]) | {field: next_to(SAID[1][key][field])}}
    result = compare((SAID[0], altered), SAID, rounded=rounded)
    assert result.proven == rounded, "a bit is rounding only where windows are computed anew"
    if rounded:
        assert [row.rounded for row in result.rows] == [0, 1]
    else:
        (found,) = result.differences
        assert (found.field, found.said, found.computed) == (field, altered[key][field], SAID[1][key][field])


@pytest.mark.parametrize("field", sorted(json.loads(incident().to_json()).keys() - HOW_OFTEN - {"event.id"}))
def test_each_field_of_the_incident_counts_after_a_savepoint_but_for_those_that_rest_on_others(
    field: str,
) -> None:
    names = {info.alias or name: name for name, info in Incident.model_fields.items()}
    value = getattr(SAID[0], names[field])
    other: Any = [] if isinstance(value, list) else value + 1 if isinstance(value, int | float) else "minor"
    other = {"incident.state": "open"}.get(field, other)
    altered = SAID[0].model_copy(update={names[field]: other})
    assert [each.field for each in compare((altered, {}), (SAID[0], {})).differences] == [field]
    assert compare((altered, {}), (SAID[0], {}), EARLIER).proven == (field in EARLIER)


def test_news_that_one_side_lacks_differs_and_ordinary_verdicts_that_one_side_has_not_stored_do_not() -> None:
    quiet = SAID[1] | verdicts(verdict(3, "normal"))
    assert compare((SAID[0], quiet), SAID).proven
    assert compare(SAID, (SAID[0], quiet)).proven
    more = SAID[1] | verdicts(verdict(3))
    for one, other in ((more, SAID[1]), (SAID[1], more)):
        (found,) = compare((SAID[0], one), (SAID[0], other)).differences
        assert {found.said, found.computed} == {"anomaly", "nothing"}
    (found,) = compare((SAID[0], {}), (None, {})).differences
    assert found.computed == "nothing"


def test_it_is_computed_up_to_what_had_been_seen_when_the_last_of_it_was_said() -> None:
    late = verdict(1, revision=200 * STEP)
    account = Account(SAID[0], verdicts(verdict(0), late), START)
    assert account.until == late["@timestamp"] + 200 * STEP
    assert Account(SAID[0], verdicts(verdict(0)), START).until == SAID[0].revision
    assert Account(incident(revision=3), {}, START).until == SAID[0].updated, "revisions of earlier releases are counts"


def test_the_verdicts_on_a_series_are_those_beside_its_past_and_beside_its_peers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An incident names a series once; where only peers tell of it, the outlier is all that it rests on."""
    outlier = verdict(0, "outlier", metric="_peers.cpu")
    others = [verdict(1, metric="_peers.mem"), verdict(1, **{"host.name": "web-2"}), {"metric": "cpu"}, [], None]
    others += [verdict(1, metric=["cpu"]), verdict(1, **{"host.name": ["web-1"]}), verdict(50)]
    texts = [json.dumps(each).encode() for each in (verdict(0), outlier, *others)]
    messages = [type("Message", (), {"value": staticmethod(lambda text=text: text)}) for text in texts]
    monkeypatch.setattr(accounts, "content", lambda *_: messages)
    assert accounts.verdicts_on(Settings(), incident()) == verdicts(verdict(0), outlier)
