"""PagerDuty, Opsgenie, Teams and ntfy, by receivers written from their documentation: what an operator sees there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Incident
from pipelines.contracts.records.incident import AffectedMachine, Candidate
from pipelines.contracts.settings import load
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.contracts.settings.routes import Runbook
from pipelines.notify.channels import http
from pipelines.notify.channels.senders import check, sender
from pipelines.notify.channels.sending import SendError
from pipelines.notify.left import LeftMails
from pipelines.notify.message import single, summary
from pipelines.notify.news import LastReport, News
from pipelines.notify.trial import try_channel
from tests.pipelines.notify.documented import (
    OPSGENIE_KEY,
    PAGERDUTY_KEY,
    Alert,
    Ntfy,
    Opsgenie,
    PagerDuty,
    Teams,
    documented,
)
from tests.pipelines.notify.receivers import http_receiver, incident

LINKS: dict[str, Any] = {
    "notify.console": "https://console.example.org",
    "notify.dashboard": "https://grafana.example.org/d/m?var-machine=$machine&from=$from&to=$to",
    "notify.runbooks": [
        {"metric": "disk*", "url": "https://wiki.example.org/disk"},
        {"machine": "db-*", "url": "https://wiki.example.org/databases#$metric"},
    ],
}
PAGES = [
    ("Incident", "https://console.example.org/#incident/aaa"),
    ("Dashboard", "https://grafana.example.org/d/m?var-machine=db-1&from=1767567580000&to=1767574800000"),
    ("Runbook", "https://wiki.example.org/databases#cpu"),
]
BUTTONS = [
    ("Acknowledge", "https://console.example.org/#incident/aaa/acknowledge"),
    ("Maintenance", "https://console.example.org/#incident/aaa/maintenance"),
]
LONG = incident(message="ä" * 5_000 + '"\\' * 20_000, note="n" * 20_000)


def settings(**channel: Any) -> NotifySettings:
    return load(**{"notify.channels": {"night": channel}}, **LINKS).notify


def send(given: NotifySettings, *found: News) -> str:
    mine = sender("night", given)
    if len(found) > 1:
        return mine.send(summary(found, given, mine.escape), LeftMails())
    return mine.send(single(found[0], given.channels["night"], given, "v1", mine.escape), LeftMails())


def life() -> list[News]:
    """The news of an incident that becomes more severe, goes on, ends and comes back."""
    minor, major = incident(severity="minor"), incident(severity="major")
    over, again = incident(status="resolved", severity="major"), incident(status="reopened", severity="minor")
    found: list[News] = []
    for number, (state, it) in enumerate(
        [("opened", minor), ("updated", major), ("ongoing", major), ("resolved", over), ("reopened", again)]
    ):
        before = LastReport("opened", "minor", 0, number) if number else None
        found.append(News(it, state, before))  # type: ignore[arg-type]
    return found


def seen(alerts: dict[str, list[Alert]], of: str = "aaa") -> list[tuple[str, bool]]:
    return [(each.severity, each.open) for each in alerts[of]]


@pytest.fixture
def keys(tmp_path: Path) -> Callable[[str], str]:
    def write(key: str) -> str:
        (tmp_path / "key").write_text(f"{key}\n")
        return str(tmp_path / "key")

    return write


def test_pagerduty_has_one_alert_an_incident_which_rises_ends_and_comes_back(keys: Callable[[str], str]) -> None:
    with documented(service := PagerDuty()) as receiver:
        given = settings(kind="pagerduty", url=receiver.url, key_file=keys(PAGERDUTY_KEY))
        stages = []
        for news in life():
            said = send(given, news)
            stages.append(seen(service.alerts))
    assert stages == [
        [("warning", True)],
        [("error", True)],
        [("error", True)],
        [("error", False)],
        [("error", False), ("warning", True)],
    ]
    (first, _) = service.alerts["aaa"]
    assert first.title == "[minor] opened: aaa is down"
    assert [(each["text"], each["href"]) for each in first.fields["links"]] == PAGES + BUTTONS
    assert first.fields["payload"]["source"] == "db-1"
    assert first.fields["payload"]["custom_details"]["text"].startswith("aaa is down")
    assert PAGERDUTY_KEY not in said and "answered 202" in said


def test_opsgenie_has_one_alert_an_incident_which_rises_ends_and_comes_back(keys: Callable[[str], str]) -> None:
    with documented(service := Opsgenie()) as receiver:
        given = settings(kind="opsgenie", url=receiver.url, key_file=keys(OPSGENIE_KEY))
        stages = []
        for news in life():
            send(given, news)
            stages.append(seen(service.alerts))
        told_again = len(service.alerts["aaa"])
        send(given, life()[4])
    assert stages == [[("P3", True)], [("P2", True)], [("P2", True)], [("P2", False)], [("P2", False), ("P3", True)]]
    assert len(service.alerts["aaa"]) == told_again, "a message that is sent again opens no second alert"
    first = service.alerts["aaa"][0]
    assert first.title == "[major] updated: aaa is down"
    assert first.fields["description"].endswith("runbook: https://wiki.example.org/databases#cpu")
    assert first.fields["details"]["acknowledge"] == BUTTONS[0][1]


def test_teams_gets_a_card_with_buttons_in_which_nothing_is_markup() -> None:
    with documented(service := Teams()) as receiver:
        given = settings(kind="teams", url=f"{receiver.url}/workflows/secret?sig=secret")
        said = send(given, News(incident(message="[a](http://evil.example) **b** <at>all</at>"), "opened"))
        send(given, News(incident(status="resolved"), "resolved", LastReport("opened", "critical", 0, 1)))
        send(given, *[News(incident(f"i{n}"), "opened") for n in range(12)])
    card, over, several = service.cards
    texts = [run["text"] for block in card["body"] for run in block["inlines"]]
    assert texts[0] == "[critical] opened: [a](http://evil.example) **b** <at>all</at>"
    assert texts[-1] == "aaa:1:opened"
    assert [(act["title"], act["url"]) for act in card["actions"]] == PAGES + BUTTONS
    assert [act["title"] for act in over["actions"]] == ["Incident", "Dashboard", "Runbook"]
    assert over["body"][0]["inlines"][0]["color"] == "good"
    assert several["body"][0]["inlines"][0]["text"] == "12 incidents were held back"
    assert "secret" not in said


def test_ntfy_gets_a_notification_whose_tap_opens_the_incident_and_that_has_three_buttons(
    keys: Callable[[str], str],
) -> None:
    with documented(service := Ntfy()) as receiver:
        key = {"authorization_file": keys("Bearer tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2")}
        given = settings(kind="ntfy", url=receiver.url, topic="newnormal_alerts", **key)
        send(given, News(incident(), "opened"))
        send(given, News(incident(status="resolved"), "resolved", LastReport("opened", "critical", 0, 1)))
        headers = receiver.got[0][1]
    opened, over = service.notifications
    assert (opened["topic"], opened["title"]) == ("newnormal_alerts", "[critical] opened: aaa is down")
    assert (opened["priority"], over["priority"]) == (5, 3)
    assert opened["click"] == PAGES[0][1]
    assert [(act["label"], act["url"]) for act in opened["actions"]] == [*BUTTONS, PAGES[2]]
    assert headers["Authorization"].startswith("Bearer tk_")


@pytest.mark.parametrize("service", [PagerDuty, Opsgenie, Teams, Ntfy])
@pytest.mark.parametrize("state", ["opened", "updated", "ongoing", "resolved"])
def test_a_message_of_any_length_is_taken(service: Any, state: Any, keys: Callable[[str], str]) -> None:
    with documented(service()) as receiver:
        key = PAGERDUTY_KEY if service is PagerDuty else OPSGENIE_KEY
        more: dict[str, Any] = {
            PagerDuty: {"kind": "pagerduty", "key_file": keys(key)},
            Opsgenie: {"kind": "opsgenie", "key_file": keys(key)},
            Teams: {"kind": "teams"},
            Ntfy: {"kind": "ntfy", "topic": "a"},
        }[service]
        before = None if state == "opened" else LastReport("opened", "minor", 0, 1)
        given = settings(url=receiver.url, **more)
        send(given, News(LONG, state, before))
        bare: Incident = incident(candidates=[], machines=[], machine_count=0, series_count=0)
        send(given, News(bare, state, before))
        try_channel("night", given)
        assert len(receiver.got) >= 3


@pytest.mark.parametrize("service", [PagerDuty, Opsgenie, Teams, Ntfy])
def test_a_message_on_series_of_the_longest_names_is_taken(service: Any, keys: Callable[[str], str]) -> None:
    """Percent-encoded in addresses, such names are longer than what some receivers take."""
    with documented(service()) as receiver:
        more = {"key_file": keys(PAGERDUTY_KEY if service is PagerDuty else OPSGENIE_KEY)}
        more = {Teams: {}, Ntfy: {"topic": "a"}}.get(service, more)
        given = settings(kind=service.__name__.lower(), url=receiver.url, **more)
        machine, metric = "\U0001f600" * 512, "\U0001f600" * 1_024
        cause = Candidate(entity=machine, metric=metric, since=0, share=1.0, reason="it began first")
        found = incident(
            candidates=[cause], machines=[AffectedMachine(entity=machine, since=0, series=3, record_score=90)]
        )
        for all_of_it in ("$machine/$metric", "$metric/$metric/$metric"):
            address = f"https://grafana.example.org/{all_of_it}"
            changed = {"dashboard": address, "runbooks": (Runbook(url=address),)}
            send(given.model_copy(update=changed), News(found, "opened"))
        assert len(receiver.got) == 2


@pytest.mark.parametrize(
    ("service", "key", "wrong", "hopeless"),
    [
        (PagerDuty, PAGERDUTY_KEY, "too-short", False),
        (PagerDuty, PAGERDUTY_KEY, "f" * 32, False),
        (Opsgenie, OPSGENIE_KEY, "another", False),
    ],
)
def test_a_wrong_key_gives_no_message_up_and_is_not_shown(
    service: Any, key: str, wrong: str, hopeless: bool, keys: Callable[[str], str]
) -> None:
    with documented(service()) as receiver:
        given = settings(kind=service.__name__.lower(), url=receiver.url, key_file=keys(wrong))
        with pytest.raises(SendError) as caught:
            send(given, News(incident(), "opened"))
        assert (caught.value.code, caught.value.hopeless) == ("NOTIFY_REFUSED", hopeless)
        assert wrong not in str(caught.value)
        keys(key)
        send(given, News(incident(), "opened"))


@pytest.mark.parametrize("kind", ["pagerduty", "opsgenie", "teams", "ntfy"])
def test_a_receiver_that_is_busy_is_asked_again_when_it_says(kind: str, keys: Callable[[str], str]) -> None:
    more = {"key_file": keys(PAGERDUTY_KEY)} if kind in ("pagerduty", "opsgenie") else {}
    more |= {"topic": "a"} if kind == "ntfy" else {}
    with http_receiver() as receiver:
        receiver.answers = lambda _: (429, {"Retry-After": "9"}, "")
        with pytest.raises(SendError) as caught:
            send(settings(kind=kind, url=receiver.url, **more), News(incident(), "opened"))
    assert (caught.value.code, caught.value.after, caught.value.hopeless) == ("NOTIFY_UNREACHABLE", 9.0, False)


def test_what_teams_refuses_inside_an_answer_of_success_is_sent_again() -> None:
    with http_receiver() as receiver:
        told = "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429"
        receiver.answers = lambda _: (200, {}, told)
        with pytest.raises(SendError) as caught:
            send(settings(kind="teams", url=receiver.url), News(incident(), "opened"))
    assert caught.value.code == "NOTIFY_UNREACHABLE"


def test_slack_itself_gets_buttons_and_what_takes_the_same_gets_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is Slack is told by the host; here every host leads to the receiver."""
    with http_receiver() as receiver:
        real = http.httpx.stream
        monkeypatch.setattr(http.httpx, "stream", lambda method, _, **more: real(method, receiver.url, **more))
        for host in ("hooks.slack.com", "chat.example.org"):
            send(settings(kind="slack", url=f"https://{host}/services/x"), News(incident(), "opened"))
        slack, other = (body["attachments"][0] for body in receiver.bodies)
    assert [(it["type"], it["text"], it["url"]) for it in slack["actions"]] == [
        ("button", *each) for each in PAGES + BUTTONS
    ]
    assert "actions" not in other
    assert all(url in other["text"] for _, url in PAGES)


def test_an_absent_key_stops_the_start_and_is_named(tmp_path: Path) -> None:
    given = settings(kind="pagerduty", key_file=str(tmp_path / "none"))
    with pytest.raises(NewnormalError) as caught:
        check("night", given)
    assert caught.value.code == "NOTIFY_SECRET"
    assert "notify.channels.night.key_file" in caught.value.where
