"""What a channel is told of an incident: once for each state, whatever revisions come between."""

from __future__ import annotations

import pytest

from pipelines.contracts.records import Incident
from pipelines.contracts.settings.channels import WebhookChannel
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.contracts.settings.routes import Route
from pipelines.notify.message import single
from pipelines.notify.news import LastReport, News, news
from pipelines.notify.routing import Duty, Routing, Taken
from tests.pipelines.incidents.cases import MINUTE, STEP, Feed, outage, parsed
from tests.pipelines.notify.receivers import incident


def told(revisions: list[Incident], least: str = "warning", said: LastReport | None = None) -> list[str]:
    """The states and deduplication ids of what is told as revisions come one by one."""
    found = []
    routing = Routing([Route(name="hook", severity=least, channels=("hook",))])  # type: ignore[arg-type]
    taken: Taken | None = None
    for each in revisions:
        taken = routing.taken(each, taken)
        if (new := news(each, said, routing.duty("hook", each, taken, 0))) is not None:
            said = LastReport.of(new.as_report().stored())
            found.append(new.id)
    return found


OPEN, ACKNOWLEDGED, OVER = incident(), incident(status="acknowledged"), incident(status="resolved")
AGAIN = incident(status="reopened", reopenings=1)
MINOR, MAJOR = incident(severity="minor"), incident(severity="major")


@pytest.mark.parametrize(
    ("revisions", "expected"),
    [
        ([OPEN, OPEN, ACKNOWLEDGED, OPEN, OVER, OVER], ["aaa:1:opened", "aaa:2:resolved"]),
        ([OPEN, OVER, AGAIN, AGAIN, incident(status="resolved", reopenings=1)],
         ["aaa:1:opened", "aaa:2:resolved", "aaa:3:reopened", "aaa:4:resolved"]),
        ([OPEN, AGAIN], ["aaa:1:opened", "aaa:2:reopened"]),
        ([MINOR, MAJOR, MINOR, MAJOR, OPEN], ["aaa:1:opened", "aaa:2:updated", "aaa:3:updated"]),
        ([OVER], ["aaa:1:resolved"]),
        ([OPEN, incident(status="merged", merged_into="b")], ["aaa:1:opened", "aaa:2:resolved"]),
        ([incident(status="merged", merged_into="b")], []),
    ],
)  # fmt: skip
def test_each_state_is_told_once_and_a_severity_only_when_it_is_higher_than_all_before(
    revisions: list[Incident], expected: list[str]
) -> None:
    assert told(revisions) == expected


def test_a_channel_for_severe_incidents_hears_of_one_when_it_becomes_severe_and_then_also_its_end() -> None:
    assert told([MINOR, incident(status="resolved", severity="minor")], "major") == []
    assert told([MINOR, MAJOR, MINOR, incident(status="resolved", severity="minor")], "major") == [
        "aaa:1:opened",
        "aaa:2:resolved",
    ]


def test_what_an_earlier_release_left_untold_as_it_was_over_is_told_only_if_it_comes_back() -> None:
    assert told([OVER, AGAIN], said=LastReport("silent", "critical", 0, 0)) == ["aaa:1:reopened"]


def written(feed: Feed) -> list[News]:
    """What a channel is told as the incidents job writes revision after revision."""
    said: dict[str, LastReport] = {}
    found = []
    for each in map(parsed, feed.run.rows):
        if (new := news(each, said.get(each.id), Duty(True))) is not None:
            said[each.id] = new.as_report()
            found.append(new)
    return found


def test_an_outage_of_thirty_machines_with_twenty_metrics_each_is_one_message_and_its_end_another() -> None:
    feed = Feed()
    for n in range(0, 30, 10):  # some machines after others, as micro-batches may bring them
        feed.send(outage([f"m{m:02}" for m in range(n, n + 10)], n * 1_000, 5 * MINUTE), n * 1_000 + STEP)
    feed.send([], 30 * MINUTE)
    assert len(feed.run.rows) > 3, "the incident has many revisions"
    assert [each.state for each in written(feed)] == ["opened", "resolved"]


def test_two_unrelated_outages_are_two_messages_and_each_names_its_host_first() -> None:
    feed = Feed()
    for host in "ab":
        for vm in range(3):
            feed.place(f"vm-{host}{vm}", f"z-host-{host}")
    for host in "ab":
        feed.send(outage([f"vm-{host}{vm}" for vm in range(3)], 0, 5 * MINUTE), -MINUTE)
        feed.send(outage([f"z-host-{host}"], 2 * STEP, 5 * MINUTE, metrics=5), -MINUTE)
    feed.send([], 5 * MINUTE)
    channel, texts = WebhookChannel(kind="webhook", url="http://127.0.0.1:9", text="$cause: $reason"), []  # type: ignore[arg-type]
    for each in written(feed):
        texts.append(single(each, channel, NotifySettings(), "v1").text)
    assert sorted(text.partition(":")[0] for text in texts) == ["z-host-a", "z-host-b"]
    assert all("3 of the other machines depend on it" in text for text in texts)
