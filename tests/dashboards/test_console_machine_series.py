"""The rows of a machine's page: what is stored of each series, and what is believed of it."""

from __future__ import annotations

from typing import Any

from dashboards.console.machine_series import listed
from dashboards.console.sparks import Sparks

END, STEP = 1_700_000_000_000, 10_000
SPARKS = Sparks(END - 47 * STEP, END)


def windows(values: list[float], **more: Any) -> list[dict[str, Any]]:
    last = len(values) - 1
    return [{"window_end": END - (last - i) * STEP, "mean": value, **more} for i, value in enumerate(values)]


def believed(metric: str, state: dict[str, Any] | None, seen: list[dict[str, Any]]) -> dict[str, Any]:
    told = None if state is None else {"@timestamp": END, "kind": "normal", "values": 5, **state}
    return {"metric": metric, "state": told, "windows": seen, "needed": 8}


def test_a_series_whose_newest_window_is_normal_is_in_an_incident_as_long_as_the_belief_says_so() -> None:
    stored = {"metric": "cpu", "@timestamp": END, "kind": "normal", "actual": 7.0, "highest": 80.0, "spark": []}
    calm = {"metric": "disk", "@timestamp": END, "kind": "normal", "actual": 1.0, "highest": 90.0, "spark": []}
    was_open = {"incident.state": "open", "since": END - STEP}
    goes_on = believed("cpu", {"incident.state": "open", "since": END - 9 * STEP}, [])
    ended = believed("disk", {"incident.state": "closed"}, [])
    rows = listed([calm | was_open, stored], [goes_on, ended], SPARKS)
    assert [(row["metric"], row["open_since"]) for row in rows] == [("cpu", END - 9 * STEP), ("disk", None)]
    alone = listed([calm | was_open], [], SPARKS)
    assert alone[0]["open_since"] == END - STEP, "without a belief the newest document decides"


def test_a_new_series_says_how_far_it_is_learned_and_so_does_a_machine_as_a_whole() -> None:
    new, whole = windows([3.0, 4.0]), believed("_machine", {"kind": "learning"}, [])
    rows = {row["metric"]: row for row in listed([], [believed("cpu", None, new), whole], SPARKS)}
    assert (rows["cpu"]["kind"], rows["cpu"]["windows"], rows["cpu"]["needed"]) == ("learning", 2, 8)
    assert (rows["cpu"]["actual"], rows["cpu"]["@timestamp"]) == (4.0, END)
    assert rows["cpu"]["spark"] == [(46, 3.0), (47, 4.0)]
    assert (rows["_machine"]["windows"], rows["_machine"].get("actual")) == (5, None)


def test_the_newest_window_decides_whether_it_is_stored_or_only_known() -> None:
    stored = {"metric": "cpu", "@timestamp": END - 5 * STEP, "kind": "anomaly", "actual": 7.0, "highest": 80.0}
    band = {"kind": "normal", "lower": 2.0, "upper": 4.0}
    (row,) = listed([stored | {"spark": [(1, 7.0)]}], [believed("cpu", {}, windows([3.0], **band))], SPARKS)
    assert (row["actual"], row["kind"], row["lower"], row["highest"]) == (3.0, "normal", 2.0, 80.0)
    (old,) = listed([stored | {"spark": [], "@timestamp": END + STEP}], [believed("cpu", None, windows([3.0]))], SPARKS)
    assert (old["actual"], old["kind"]) == (7.0, "anomaly")
