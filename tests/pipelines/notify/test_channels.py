"""What each channel sends, to real servers on loopback, and what is said when they do not take it."""

from __future__ import annotations

import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Silence
from pipelines.contracts.settings import load
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.jobs.incidents.silent_inputs import silent
from pipelines.notify.channels.senders import sender
from pipelines.notify.channels.sending import SendError
from pipelines.notify.left import LeftMails
from pipelines.notify.message import Message, single, summary
from pipelines.notify.news import LastReport, News
from pipelines.notify.trial import try_channel
from tests.endless_answers import endless
from tests.pipelines.notify.receivers import HttpReceiver, http_receiver, incident

HOSTILE = incident(message="<!channel> & \x1b[2J\r\nBcc: all@example.org", note="${x}")


def settings(**channel: Any) -> NotifySettings:
    console = {"notify.console": "https://console.example.org/"}
    return load(**{"notify.channels": {"night": channel}}, **console).notify


def send(given: NotifySettings, *found: News) -> str:
    mine = sender("night", given)
    if len(found) > 1:
        return mine.send(summary(found, given, mine.escape), LeftMails())
    return mine.send(single(found[0], given.channels["night"], given, "v1", mine.escape), LeftMails())


def test_a_webhook_gets_the_message_the_whole_incident_and_a_deduplication_id() -> None:
    with http_receiver() as receiver:
        given = settings(kind="webhook", url=f"{receiver.url}/hook?token=secret")
        said = send(given, News(incident(), "opened"))
        ((path, headers, body),) = receiver.got
    assert (path, headers["Idempotency-Key"], body["id"], body["state"]) == (
        "/hook?token=secret", "aaa:1:opened", "aaa:1:opened", "opened",
    )  # fmt: skip
    assert body["title"] == "[critical] opened: aaa is down"
    assert "db-1 (it began first)" in body["text"] and "time: 2026-01-04T23:59:40.000Z to now" in body["text"]
    assert "\n\nseverity: critical (80)" in body["text"] and body["text"].count("\n\n") == 1
    (entry,) = body["incidents"]
    assert entry["incident"] == orjson.loads(incident().to_json())
    assert entry["link"] == "https://console.example.org/#incident/aaa"
    assert "secret" not in said and receiver.url in said


def test_a_message_that_nothing_is_received_names_no_machines_and_counts_none() -> None:
    silence = Silence(input="*", since=1_767_571_200_000, noticed=1_767_571_500_000, time=1_767_571_500_000)
    (found,) = silent("default", [silence], [], {}, 2**60)
    given = settings(kind="webhook", url="http://127.0.0.1:9")
    said = single(News(found.incident, "opened"), given.channels["night"], given, "v1")
    assert said.title == "[critical] opened: nothing has been received since 00:00:00 UTC"
    assert said.text.splitlines() == [
        "nothing has been received since 00:00:00 UTC",
        "",
        "severity: critical (95)",
        "time: 2026-01-05T00:00:00.000Z to now",
        f"https://console.example.org/#incident/{found.incident.id}",
    ]


def test_a_summary_names_what_was_held_back_and_has_an_id_that_does_not_depend_on_the_order() -> None:
    found = [News(incident(f"i{n:02}"), "opened") for n in range(12)]
    with http_receiver() as receiver:
        given = settings(kind="webhook", url=receiver.url)
        send(given, *found)
        send(given, *reversed(found))
        first, second = receiver.bodies
    assert first["title"] == "12 incidents were held back"
    assert "opened: i09 is down (i09)" in first["text"] and "and 2 more" in first["text"]
    assert len(first["incidents"]) == 12 and first["id"] == second["id"]


def test_slack_gets_text_that_calls_nobody_and_a_colour() -> None:
    with http_receiver() as receiver:
        given = settings(kind="slack", url=receiver.url, title="$machines: $message $$5")
        send(given, News(HOSTILE, "opened"))
        send(given, News(incident(status="resolved"), "resolved", LastReport("opened", "critical", 0, 1)))
        opened, resolved = receiver.bodies
    assert opened["text"] == "db-1: &lt;!channel&gt; &amp; \\u001b[2J\\u000d\\u000aBcc: all@example.org $5"
    assert opened["attachments"][0]["footer"] == "aaa:1:opened"
    assert "<" not in opened["attachments"][0]["text"] and "${x}" in opened["attachments"][0]["text"]
    assert opened["attachments"][0]["color"] != resolved["attachments"][0]["color"]
    assert resolved["attachments"][0]["footer"] == "aaa:2:resolved"


@pytest.mark.parametrize(
    ("name", "markup"),
    [
        ("@all x", "@all"), ("_@here_", "@here"), ("(@channel)", "@channel"), ("[the console](a.example)", "]("),
        ("![p](a.example/p.png)", "!["), ("http://evil.example", "://"), ("see www.evil.example", "www."),
        ("[x][y] [y]: a.example", "]["), ("[y]: a.example", "]:"), ("mailto:a@b.example", "mailto:"),
    ],
)  # fmt: skip
def test_names_are_no_markup_of_mattermost_and_rocket_chat_and_the_link_to_the_console_is_one(
    name: str, markup: str
) -> None:
    with http_receiver() as receiver:
        given = settings(kind="slack", url=receiver.url)
        send(given, News(incident(message=f"cpu on {name}"), "opened"))
        (told,) = receiver.bodies
    whole = told["text"] + told["attachments"][0]["text"].replace("https://console.example.org/#incident/", "")
    assert markup not in whole
    assert name in told["text"].replace("\u200b", ""), "all of it can be read"
    assert "https://console.example.org/#incident/" in told["attachments"][0]["text"]


def alerts(receiver: HttpReceiver) -> dict[tuple[str, str], str]:
    """What an Alertmanager shows after all requests: by incident and severity, when the alert ends.

    From the API's documentation: an alert is known by its labels, and the last one of the same labels counts.
    """
    assert {path for path, _, _ in receiver.got} == {"/api/v2/alerts"}
    posted = [alert for body in receiver.bodies for alert in body]
    assert all(set(alert) <= {"labels", "annotations", "startsAt", "endsAt", "generatorURL"} for alert in posted)
    assert all(isinstance(v, str) for a in posted for v in [*a["labels"].values(), *a["annotations"].values()])
    return {(alert["labels"]["incident"], alert["labels"]["severity"]): alert["endsAt"] for alert in posted}


def test_alertmanager_has_one_alert_an_incident_also_when_its_severity_rises_and_none_after_the_end() -> None:
    with http_receiver() as receiver:
        given = settings(kind="alertmanager", url=receiver.url)
        told = [News(incident(severity="minor"), "opened")]
        told.append(News(incident(severity="major"), "updated", told[0].as_report()))
        told.append(News(incident("bbb"), "opened"))
        standing = []
        told.append(News(incident(status="resolved", severity="minor"), "resolved", told[1].as_report()))
        for each in told:
            send(given, each)
            now = datetime.now(UTC).isoformat()
            standing.append({key for key, end in alerts(receiver).items() if end.replace("Z", "+00:00") > now})
        before = len(receiver.got)
        sender("night", given).repeat([News(incident("bbb", severity="minor"), "opened", told[2].as_report())])
        assert {alert["labels"]["severity"] for alert in receiver.bodies[before]} == {"critical"}
    a, b = ("aaa", "minor"), ("bbb", "critical")
    assert standing == [{a}, {("aaa", "major")}, {("aaa", "major"), b}, {b}]
    assert receiver.bodies[0][0]["generatorURL"] == "https://console.example.org/#incident/aaa"


def refused(given: NotifySettings) -> NewnormalError:
    with pytest.raises(NewnormalError) as caught:
        try_channel("night", given)
    return caught.value


@pytest.mark.parametrize(
    ("status", "code", "hopeless"),
    [(400, "NOTIFY_REFUSED", True), (404, "NOTIFY_REFUSED", False), (302, "NOTIFY_REFUSED", False),
     (429, "NOTIFY_UNREACHABLE", False), (503, "NOTIFY_UNREACHABLE", False)],
)  # fmt: skip
def test_an_answer_that_is_no_success_is_explained_without_what_may_be_secret(
    status: int, code: str, hopeless: bool, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("Bearer secret-key\n")
    with http_receiver() as receiver:
        receiver.answers = lambda _: (status, {"Retry-After": "7"}, "no_team /services/secret secret-key \x1b")
        given = settings(kind="slack", url=f"{receiver.url}/services/secret", authorization_file=str(tmp_path / "key"))
        error = refused(given)
    assert isinstance(error, SendError)
    assert (error.code, error.hopeless, error.after) == (code, hopeless, 7.0)
    assert f"it answered {status} no_team" in error.what and receiver.url in error.where
    assert "/services/secret" not in str(error) and "\x1b" not in str(error)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3600", (3600, 3600)),
        ("99999999999999999999", (86_400, 86_400)),
        ("in two hours", (7_000, 7_200)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", (0, 0)),
        ("soon", None),
        ("-5", None),
    ],
)
def test_a_receiver_is_asked_again_when_it_says_in_seconds_or_as_a_date(
    text: str, expected: tuple[float, float] | None
) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True)
    with http_receiver() as receiver:
        receiver.answers = lambda _: (503, {"Retry-After": date if text == "in two hours" else text}, "")
        error = refused(settings(kind="slack", url=receiver.url))
    assert isinstance(error, SendError)
    if expected is None or error.after is None:
        assert error.after is expected
    else:
        assert expected[0] <= error.after <= expected[1]


def test_a_receiver_that_is_not_there_is_explained() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = refused(settings(kind="webhook", url=f"http://127.0.0.1:{port}/secret"))
    assert error.code == "NOTIFY_UNREACHABLE" and f"http://127.0.0.1:{port}" in error.where
    mail = {"sender": "a@example.org", "recipients": ["b@example.org"], "security": "none"}
    error = refused(settings(kind="email", server=f"127.0.0.1:{port}", **mail))
    assert error.code == "NOTIFY_UNREACHABLE" and f"127.0.0.1:{port}" in error.where


def test_secrets_come_from_files_and_variables_and_an_absent_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with http_receiver() as receiver:
        (tmp_path / "url").write_text(f"{receiver.url}/of-the-file\n")
        monkeypatch.setenv("PAGER_KEY", "Bearer 123")
        given = settings(kind="webhook", url_file=str(tmp_path / "url"), authorization_variable="PAGER_KEY")
        try_channel("night", given)
        ((path, headers, body),) = receiver.got
        monkeypatch.delenv("PAGER_KEY")
        error = refused(given)
    assert (path, headers["Authorization"], body["state"]) == ("/of-the-file", "Bearer 123", "test")
    assert error.code == "NOTIFY_SECRET" and "authorization_variable: PAGER_KEY" in error.where
    error = refused(settings(kind="webhook", url_file=str(tmp_path / "none")))
    assert error.code == "NOTIFY_SECRET" and str(tmp_path / "none") in error.where
    (tmp_path / "url").write_text("secret, but no url")
    error = refused(settings(kind="webhook", url_file=str(tmp_path / "url")))
    assert error.code == "NOTIFY_SECRET" and "secret, but" not in str(error)


def test_an_unknown_channel_is_answered_with_the_known_ones() -> None:
    with pytest.raises(NewnormalError) as caught:
        try_channel("day", settings(kind="webhook", url="http://127.0.0.1:9"))
    assert (caught.value.code, caught.value.accepted) == ("NOTIFY_CHANNEL_UNKNOWN", "night")


def test_a_message_of_an_incident_without_causes_has_no_gaps() -> None:
    bare = incident(candidates=[], machines=[])
    given = settings(kind="webhook", url="http://127.0.0.1:9", text="$cause|$link|$severity\n$note\n$cause\n$severity")
    made: Message = single(News(bare, "opened"), given.channels["night"], given, "v1")
    assert made.text == "|https://console.example.org/#incident/aaa|critical\ncritical"


@pytest.mark.parametrize(("part", "pause"), [(b"ok" * 1_000_000, 0.0), (b"ok", 0.5)], ids=["fast", "slow"])
def test_an_answer_without_an_end_is_an_answer(part: bytes, pause: float) -> None:
    """The status says that the message was taken; sent again, it would come twice."""
    with endless(part, pause) as url:
        began = time.monotonic()
        assert "answered 200 ok" in send(settings(kind="webhook", url=url), News(incident(), "opened"))
    assert time.monotonic() - began < 25
