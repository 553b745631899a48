"""What many machines do at once is one incident of the site, which says how many of how many; an outlier is of one."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.contracts.records.news import LIVING
from tests.pipelines.incidents.cases import MINUTE, T0, Feed, news
from tests.pipelines.incidents.test_titles import AT, only, worst

HOUR = 60 * MINUTE


def counted(machines: dict[int, int], at: int) -> list[dict[str, Any]]:
    """How many machines of each partition sent something in the hour before ``at`` milliseconds after `T0`."""
    same = {"window_start": T0 + at - HOUR, "window_end": T0 + at, "since": None, "incident_state": None}
    return [
        news(f"_partition-{place}", LIVING, at, "normal", actual=float(number), record_score=0.0, **same)
        for place, number in machines.items()
    ]


def fleet(names: list[str], gap: int, times: float = 2.3, metric: str = "net.tx") -> list[dict[str, Any]]:
    rows = []
    for number, name in enumerate(names):
        usual = 100.0 + number
        rows += worst(name, metric, times * usual, usual, at=AT + number * gap, record_score=80.0)
    return rows


@pytest.mark.parametrize("gap", [0, 2_000, 10_000])
def test_what_moves_everywhere_is_one_incident_that_says_how_many_of_how_many(gap: int) -> None:
    """Up to 14 minutes lie between the first and the last."""
    feed = Feed()
    names = [f"web-{number}" for number in range(60)] + [f"db-{number}" for number in range(27)]
    feed.send([*counted({0: 70, 1: 50}, AT), *fleet(names, gap)], AT + 2 * MINUTE + len(names) * gap)
    found = only(feed)
    assert found.machine_count == 87
    assert found.message == "87 of 120 machines: net.tx up, 2.3 × the usual"


def test_a_rollout_of_an_hour_over_the_machines_of_a_role_is_one_incident() -> None:
    feed = Feed()
    names = [f"shop/cart-7d4b9c6f5-x2x{letter}p" for letter in "bcdfghjklmnpqrstvwxz2456789"]
    feed.send(fleet(names, 2 * MINUTE, metric="latency.p95"), AT + 2 * HOUR)
    (one,) = [each for each in feed.incidents.values() if each.status != "merged"]
    assert one.machine_count == len(names)


def test_machines_that_have_no_role_in_common_are_no_fleet_if_they_come_two_minutes_apart() -> None:
    feed = Feed()
    names = ["alder", "beech", "cedar", "elm", "fir", "hazel"]
    feed.send(fleet(names, 2 * MINUTE), AT + HOUR)
    assert len([each for each in feed.incidents.values() if each.status != "merged"]) == len(names)


def test_without_a_count_the_title_says_how_many_machines() -> None:
    feed = Feed()
    feed.send(fleet([f"web-{number}" for number in range(12)], 0, times=0.2), AT + 2 * MINUTE)
    assert only(feed).message.startswith("12 machines: net.tx down, ")


def test_machines_of_one_host_are_told_by_the_host() -> None:
    feed = Feed()
    names = [f"vm-{number}" for number in range(8)]
    for name in names:
        feed.place(name, "host-1")
    feed.send([*worst("host-1", "net.tx", 900.0, 300.0, at=AT), *fleet(names, 0)], AT + 2 * MINUTE)
    assert only(feed).message.startswith("host-1: net.tx 3 × the usual")


def test_the_severity_of_many_machines_is_that_of_the_one_in_the_middle() -> None:
    mild, one_far = Feed(), Feed()
    names = [f"web-{number}" for number in range(100)]
    slight = [row | {"record_score": 58.0} for row in fleet(names, 0, times=1.06) if row["kind"] == "anomaly"]
    mild.send(slight, AT + 2 * MINUTE)
    far = worst("web-0", "net.tx", 40_000.0, 100.0, at=AT, record_score=95.0)
    one_far.send([*far, *slight[1:]], AT + 2 * MINUTE)
    assert only(mild).severity in ("minor", "major")
    assert only(mild).severity_score < 65
    assert only(one_far).severity == "critical"


def test_an_outlier_is_an_incident_of_its_machine_that_says_what_its_peers_suggest() -> None:
    feed = Feed()
    first, last = worst("web-7", "_peers.latency.p95", 62.0, 20.0)
    feed.send([first | {"kind": "outlier"}, last], AT + 2 * MINUTE)
    found = only(feed)
    assert found.message == "web-7: latency.p95 3.1 × what its peers suggest"
    assert [(s.metric, s.kind) for s in found.series] == [("latency.p95", "outlier")]
    assert [m.metric for m in found.metrics] == ["latency.p95"]


def test_a_series_unlike_its_past_and_its_peers_is_one_series() -> None:
    feed = Feed()
    first, last = worst("web-7", "_peers.latency.p95", 62.0, 20.0, record_score=60.0)
    feed.send([first | {"kind": "outlier"}, last, *worst("web-7", "latency.p95", 62.0, 20.0)], AT + 2 * MINUTE)
    assert only(feed).series_count == 1
