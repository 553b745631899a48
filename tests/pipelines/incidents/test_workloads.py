"""Replicas of a workload: what several of them show is one incident, named after the workload."""

from __future__ import annotations

import pytest

from pipelines.contracts.records import Placement
from pipelines.contracts.records.news import LIVING
from tests.pipelines.incidents.cases import MINUTE, STEP, T0, Feed, news
from tests.pipelines.incidents.test_titles import AT, only, silent, worst

CARTS = [f"shop/cart-7d4b9c6f5-{end}" for end in ("b4n7s", "x2x7p", "zk5t2", "q8d7f")]
PAY = "shop/pay-5f7c9d8b6c-b4n7s"


def test_replicas_that_show_the_same_minutes_apart_are_one_incident_named_after_their_workload() -> None:
    """Three minutes, `incidents.related`, may lie between two of them: at six it began on the third."""
    feed = Feed()
    rows = [
        row for n, pod in enumerate(CARTS[:3]) for row in worst(pod, "cpu", 3.8, 1.0, at=AT + 3 * n * MINUTE)
    ]  # fmt: skip
    feed.send(rows, AT + 8 * MINUTE)
    found = only(feed)
    assert found.message == "3 replicas of shop/cart: cpu 3.8 × the usual"
    assert [(each.entity, each.workload) for each in found.machines] == [(pod, "shop/cart") for pod in CARTS[:3]]


def test_replicas_that_begin_later_than_related_machines_may_are_another_incident() -> None:
    feed = Feed()
    late = AT + 3 * MINUTE + STEP
    rows = [*worst(CARTS[0], "cpu", 3.8, 1.0), *worst(CARTS[1], "cpu", 3.8, 1.0, at=late)]
    feed.send(rows, late + MINUTE)
    assert [each.machine_count for each in feed.standing] == [1, 1]


def test_of_one_replica_the_incident_has_its_own_name_and_what_others_show_otherwise_is_another() -> None:
    feed = Feed()
    feed.send(
        [*worst(CARTS[0], "cpu", 3.8, 1.0), *worst(CARTS[1], "gc", 2.0, 1.0, at=AT + 2 * MINUTE)], AT + 3 * MINUTE
    )
    assert [each.message for each in feed.standing] == [
        f"{CARTS[0]}: cpu 3.8 × the usual",
        f"{CARTS[1]}: gc 2 × the usual",
    ]


def test_two_workloads_that_show_the_same_minutes_apart_are_two_incidents() -> None:
    feed = Feed()
    feed.send([*worst(CARTS[0], "cpu", 3.8, 1.0), *worst(PAY, "cpu", 2.0, 1.0, at=AT + 2 * MINUTE)], AT + 3 * MINUTE)
    assert [each.machines[0].workload for each in feed.standing] == ["shop/cart", "shop/pay"]


def test_where_the_name_does_not_say_the_workload_a_placement_does() -> None:
    feed = Feed()
    names = ["0b6c1f2e", "77aa3d41"]
    for name in names:
        feed._take([feed._row(Placement(entity=name, workload="shop/cart", time=T0).to_json(), "topology", 0)])
    rows = [row for n, pod in enumerate(names) for row in worst(pod, "cpu", 3.8, 1.0, at=AT + 2 * n * MINUTE)]
    feed.send(rows, AT + 4 * MINUTE)
    assert only(feed).message == "2 replicas of shop/cart: cpu 3.8 × the usual"


def test_replicas_among_others_are_counted_by_their_workload() -> None:
    feed = Feed()
    rows = [
        row for pod in [PAY, *CARTS] for row in worst(pod, "cpu", 3.8, 1.0, record_score=95.0 if pod == PAY else 80)
    ]
    rows += [row for pod in [PAY, *CARTS] for row in worst(pod, "memory", 2.0, 1.0, record_score=60.0)]
    feed.send(rows, AT + MINUTE)
    assert only(feed).message == (
        f"{PAY}: cpu 3.8 × the usual, memory 2 × the usual; 4 replicas of shop/cart show it too"
    )


def test_replicas_that_have_sent_nothing_are_counted() -> None:
    feed = Feed()
    feed.send([row for pod in CARTS for row in silent(pod)], AT + MINUTE)
    assert only(feed).message == "4 replicas of shop/cart have sent nothing since 00:10:00 UTC"


@pytest.mark.parametrize(
    ("counted", "words"),
    [
        ([("shop/cart", 6)], "3 of 6 replicas"),
        ([("shop/cart", 6), ("shop/cart", 7), ("shop/pay", 9)], "3 of 7 replicas"),
        ([("shop/cart", 3)], "all 3 replicas"),
        ([("shop/cart", 2)], "3 replicas"),
        ([("shop/pay", 9)], "3 replicas"),
    ],
    ids=["some", "most of some minutes", "all", "too few", "of another workload"],
)
def test_a_title_says_of_how_many_replicas_if_the_detector_has_counted_them(
    counted: list[tuple[str, int]], words: str
) -> None:
    feed = Feed()
    counts = [
        news(name, LIVING, AT + n * MINUTE, "normal", actual=float(number), incident_state=None)
        for n, (name, number) in enumerate(counted)
    ]
    rows = [row for pod in CARTS[:3] for row in worst(pod, "cpu", 3.8, 1.0)]
    feed.send([*counts, *rows], AT + 5 * MINUTE)
    assert only(feed).message == f"{words} of shop/cart: cpu 3.8 × the usual"
    silence = Feed()
    silence.send([*counts, *(row for pod in CARTS[:3] for row in silent(pod))], AT + 5 * MINUTE)
    assert only(silence).message == f"{words} of shop/cart have sent nothing since 00:10:00 UTC"


def test_a_count_of_long_before_is_not_that_of_an_incident() -> None:
    feed = Feed()
    old = news("shop/cart", LIVING, AT - 11 * MINUTE, "normal", actual=6.0, incident_state=None)
    feed.send([old, *(row for pod in CARTS[:3] for row in worst(pod, "cpu", 3.8, 1.0))], AT + 5 * MINUTE)
    assert only(feed).message == "3 replicas of shop/cart: cpu 3.8 × the usual"


def test_a_title_counts_no_replicas_that_were_counted_ahead_of_the_watermark() -> None:
    """The news of a partition may be read ahead of the others: of ten minutes, only those up to the watermark count."""
    feed, later = Feed(), AT + 8 * MINUTE
    counts = [
        news("shop/cart", LIVING, at, "normal", actual=number, incident_state=None)
        for at, number in ((AT, 4.0), (later, 9.0))
    ]
    rows = [row for pod in CARTS[:3] for row in worst(pod, "cpu", 3.8, 1.0)]
    feed.send([*counts, *rows], later)
    assert only(feed).message == "3 of 4 replicas of shop/cart: cpu 3.8 × the usual"
    feed.send([], later + STEP)
    assert only(feed).message == "3 of 9 replicas of shop/cart: cpu 3.8 × the usual"
