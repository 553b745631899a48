"""Mails, to a real mail server on loopback: what it gets, accounts, encryption, and what is said when it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest
import trustme

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Incident, Silence
from pipelines.contracts.settings import load
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.notify import teller
from pipelines.notify.channels import email
from pipelines.notify.channels.senders import sender
from pipelines.notify.channels.sending import SendError
from pipelines.notify.left import LeftMails
from pipelines.notify.memory import Memory
from pipelines.notify.message import single
from pipelines.notify.news import LastReport, News
from pipelines.notify.teller import Teller
from pipelines.notify.trial import try_channel
from tests.pipelines.incidents.cases import MINUTE, T0, Feed
from tests.pipelines.notify.mail_server import USER, MailServer, certificate, mail_server
from tests.pipelines.notify.receivers import incident, until

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")  # so says aiosmtpd of smtps
HOSTILE = incident(message="<!channel> & \x1b[2J\r\nBcc: all@example.org", note="${x}")
SECRET = "gr8-s3cret"


def settings(server: MailServer, **more: Any) -> NotifySettings:
    mail = {"kind": "email", "sender": "newnormal@example.org", "recipients": ["a@example.org", "b@example.org"]}
    channels = {"night": mail | {"server": server.address} | more}
    return load(**{"notify.channels": channels, "notify.console": "https://console.example.org/"}).notify


def send(given: NotifySettings, news: News) -> str:
    mine = sender("night", given)
    return mine.send(single(news, given.channels["night"], given, "v1", mine.escape), LeftMails())


def refused(given: NotifySettings) -> NewnormalError:
    with pytest.raises(NewnormalError) as caught:
        try_channel("night", given)
    assert SECRET not in str(caught.value)
    return caught.value


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """An authority of certificates that this process trusts, as one does of a company of one's own."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    return made


@pytest.fixture
def account(tmp_path: Path) -> dict[str, str]:
    """The settings of an account whose password stands in a file."""
    (tmp_path / "password").write_text(f"{SECRET}\n")
    return {"user": USER, "password_file": str(tmp_path / "password")}


@pytest.mark.parametrize("more", ["", "\u00e9"])
def test_no_name_reaches_the_mail_server_as_an_encoded_word(more: str) -> None:
    name = f"=?utf-8?q?db-1=0D=0AReply-To:_eve@example.org=0D=0A=0D=0A<h1>?= {more}"
    with mail_server() as server:
        send(settings(server, security="none"), News(incident(message=name), "opened"))
        (raw,) = server.raw
    head, _, _ = raw.partition(b"\r\n\r\n")
    assert b"=?utf-8?q?db-1=0D" not in head and b"\nReply-To" not in head
    subject = message_from_bytes(raw, policy=policy.default)["Subject"]
    assert subject == f"[critical] opened: {name.replace('=?', '= ?')}".strip()


def test_mails_on_one_incident_are_one_conversation_and_no_name_adds_a_header() -> None:
    with mail_server() as server:
        given = settings(server, security="none")
        send(given, News(HOSTILE, "opened"))
        send(given, News(incident(status="resolved"), "resolved", LastReport("opened", "critical", 0, 1)))
        (to, opened), (_, resolved) = server.got
    assert to == ["a@example.org", "b@example.org"]
    assert opened["Subject"] == "[critical] opened: <!channel> & \\u001b[2J\\u000d\\u000aBcc: all@example.org"
    assert "Bcc" not in opened and opened["Auto-Submitted"] == "auto-generated"
    assert (opened["Message-ID"], resolved["Message-ID"]) == (
        "<aaa.1.opened@example.org>", "<aaa.2.resolved@example.org>",
    )  # fmt: skip
    assert opened["References"] == resolved["References"] == "<aaa@example.org>"
    assert "https://console.example.org/#incident/aaa" in opened.get_content()


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_mail_goes_over_tls_from_the_account_whose_password_a_file_or_a_variable_has(
    security: Any, authority: trustme.CA, account: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_server(security, certificate(authority), SECRET) as server:
        said = send(settings(server, security=security, **account), News(incident(), "opened"))
        monkeypatch.setenv("MAIL_PASSWORD", SECRET)
        by_variable = {"user": USER, "password_variable": "MAIL_PASSWORD"}
        send(settings(server, security=security, **by_variable), News(incident("bbb"), "opened"))
        assert [mail["X-Newnormal-Id"] for _, mail in server.got] == ["aaa:1:opened", "bbb:1:opened"]
        assert server.encrypted == [True, True] and server.tried == [(USER, SECRET)] * 2
        assert said == f"channel night, {server.address} took it for 2 of 2 recipients"


def test_a_wrong_password_is_refused_without_being_shown_and_a_corrected_file_counts_at_once(
    authority: trustme.CA, account: dict[str, str]
) -> None:
    with mail_server("starttls", certificate(authority), "another") as server:
        given = settings(server, **account)
        server.wrong = f"535 5.7.8 {SECRET} is not the password"
        error = refused(given)
        assert isinstance(error, SendError) and not error.hopeless, "the message is kept until the account works"
        assert (error.code, error.what) == ("NOTIFY_REFUSED", "it answered 535 5.7.8 *** is not the password")
        server.wrong = "454 4.7.0 temporary failure"
        assert refused(given).code == "NOTIFY_UNREACHABLE"
        Path(account["password_file"]).write_text("another")
        send(given, News(incident(), "opened"))
        assert len(server.got) == 1


def test_a_server_that_wants_an_account_says_so(authority: trustme.CA) -> None:
    with mail_server("starttls", certificate(authority), SECRET) as server:
        error = refused(settings(server))
        assert error.code == "NOTIFY_REFUSED" and error.what.startswith("it answered 530")
        assert server.got == []


@pytest.mark.parametrize("security", ["starttls", "tls"])
@pytest.mark.parametrize(("ours", "name", "reason"), [
    (False, "127.0.0.1", "certificate verify failed"),
    (True, "mail.example.org", "certificate is not valid for '127.0.0.1'"),
])  # fmt: skip
def test_a_server_that_cannot_prove_who_it_is_gets_neither_password_nor_mail(
    security: Any, ours: bool, name: str, reason: str, authority: trustme.CA, account: dict[str, str]
) -> None:
    context = certificate(authority if ours else trustme.CA(), name)
    with mail_server(security, context, SECRET) as server:
        error = refused(settings(server, security=security, **account))
        assert error.code == "NOTIFY_UNREACHABLE" and reason in error.what
        assert (server.tried, server.got) == ([], [])


@pytest.mark.parametrize(("there", "wanted"), [("none", "starttls"), ("none", "tls"), ("tls", "starttls")])
def test_a_server_with_another_encryption_than_the_settings_gets_neither_password_nor_mail(
    there: Any, wanted: str, authority: trustme.CA, account: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.notify.channels.email.TIMEOUT", 1.0)  # both sides may wait for the other to speak
    with mail_server(there, certificate(authority), SECRET) as server:
        error = refused(settings(server, security=wanted, **account))
        assert error.code == "NOTIFY_UNREACHABLE" and server.address in error.where
        assert (server.tried, server.got) == ([], [])
        assert (there, wanted) != ("none", "starttls") or "STARTTLS" in error.what


def test_a_mail_server_that_knows_no_recipient_is_explained() -> None:
    with mail_server() as server:
        server.recipient = "550 no such user"
        error = refused(settings(server, security="none"))
        assert (error.code, error.what) == ("NOTIFY_REFUSED", "it answered 550 no such user")
        server.recipient = "451 later"
        assert refused(settings(server, security="none")).code == "NOTIFY_UNREACHABLE"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A channel looks often and asks again soon."""
    for name, seconds in (("_LOOK", 0.02), ("_FIRST", 0.02), ("_LONGEST", 0.04)):
        monkeypatch.setattr(teller, name, seconds)


@contextmanager
def telling(server: MailServer, folder: Path, *found: Incident) -> Iterator[tuple[Teller, Memory]]:
    """A teller of a mail channel that has read some incidents."""
    mail = {"kind": "email", "sender": "n@example.org", "recipients": ["a@example.org", "b@example.org"]}
    given = load(**{"notify.channels": {"night": mail | {"server": server.address, "security": "none"}}})
    memory = Memory(folder, ["night"])
    memory.begin("incidents")
    memory.take("incidents", found, {0: 1}, 0)
    mine = Teller("night", given, memory, lambda: ("incidents", "v1"))
    mine.start()
    try:
        yield mine, memory
    finally:
        mine.stop()
        mine.join(10)
        memory.close()


def taken(server: MailServer, recipient: str) -> list[str]:
    """The ids of the mails that a recipient got."""
    return [str(mail["X-Newnormal-Id"]) for to, mail in server.got if recipient in to]


@pytest.mark.usefixtures("quick")
def test_a_recipient_who_is_refused_for_the_moment_gets_each_mail_once_and_in_order_also_after_a_restart(
    tmp_path: Path,
) -> None:
    """Greylisting, or a full mailbox, of one of two recipients."""
    with mail_server() as server:
        server.refused = {"b@example.org": "451 4.7.1 greylisted, try again later"}
        with telling(server, tmp_path, incident()) as (mine, memory):
            until(lambda: mine.figures().failed >= 2)
            assert (mine.figures().sent, memory.last_reports("night")["aaa"].number) == (1, 1), "the other one was told"
            assert "b@example.org: 451 4.7.1 greylisted" in mine.figures().reason
            memory.take("incidents", [incident(status="resolved", revision=1)], {0: 2}, 0)
            until(lambda: len(taken(server, "a@example.org")) == 2)
            assert mine.figures().failing_since is not None, "doctor and the metrics see it"
        with telling(server, tmp_path) as (mine, _):
            until(lambda: mine.figures().failed >= 1)
            assert taken(server, "b@example.org") == []
            server.refused = {}
            until(lambda: len(taken(server, "b@example.org")) == 2 and mine.figures().failing_since is None)
        first = next(mail for to, mail in server.got if to == ["b@example.org"])
        assert first["Subject"] == server.got[0][1]["Subject"] and first.get_content() == server.got[0][1].get_content()
        for each in ("a@example.org", "b@example.org"):
            assert taken(server, each) == ["aaa:1:opened", "aaa:2:resolved"]


@pytest.mark.usefixtures("quick")
def test_a_recipient_whom_the_server_does_not_know_is_not_asked_again_and_one_is_given_up_after_days(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_server() as server:
        server.refused = {"b@example.org": "550 no such user"}
        with telling(server, tmp_path / "one", incident()) as (mine, memory):
            until(lambda: mine.figures().sent == 1)
            assert memory.left("night").recipients == frozenset()
        server.refused = {"b@example.org": "452 mailbox full"}
        monkeypatch.setattr(email, "_GIVEN_UP_MS", 0)
        with telling(server, tmp_path / "two", incident("bbb")) as (mine, memory):
            until(lambda: mine.figures().sent == 1 and not memory.left("night").recipients)
        assert taken(server, "a@example.org") == ["aaa:1:opened", "bbb:1:opened"]
        assert taken(server, "b@example.org") == []


@pytest.mark.usefixtures("quick")
def test_a_message_that_all_recipients_refuse_for_the_moment_is_not_told_and_its_last_state_is_sent(
    tmp_path: Path,
) -> None:
    with mail_server() as server:
        server.recipient = "451 later"
        with telling(server, tmp_path, incident()) as (mine, memory):
            until(lambda: mine.figures().failed >= 2)
            assert memory.last_reports("night") == {} and memory.left("night").recipients == frozenset()
            server.recipient = "250 fine"
            until(lambda: mine.figures().sent == 1)
        assert [to for to, _ in server.got] == [["a@example.org", "b@example.org"]]


@pytest.mark.usefixtures("quick")
def test_when_nothing_is_received_any_more_one_mail_says_so_and_one_that_it_is_over(tmp_path: Path) -> None:
    """The incidents are those of the incidents job; machines and causes, of which nothing is known, are left out."""
    feed = Feed()
    feed.send([], MINUTE)
    lasting = Silence(input="*", since=T0 + MINUTE, noticed=T0 + 6 * MINUTE, time=T0 + 6 * MINUTE)
    feed.say(lasting)
    (opened,) = feed.standing
    with mail_server() as server, telling(server, tmp_path, opened) as (_, memory):
        until(lambda: len(server.got) == 1)
        for n in (7, 8):
            feed.say(lasting.model_copy(update={"time": T0 + n * MINUTE}))
        feed.say(lasting.model_copy(update={"time": T0 + 9 * MINUTE, "until": T0 + 9 * MINUTE}))
        memory.take("incidents", feed.standing, {0: 2}, 0)
        until(lambda: len(server.got) == 2)
        (_, first), (_, second) = server.got
        assert first["Subject"] == "[critical] opened: nothing has been received since 00:01:00 UTC"
        assert first.get_content().splitlines() == [
            *("nothing has been received since 00:01:00 UTC", "", "severity: critical (95)"),
            "time: 2026-01-05T00:01:00.000Z to now",
        ]
        assert second["Subject"] == (
            "[critical] resolved: nothing was received since 00:01:00 UTC; received again after 8 min"
        )
        assert second["References"] == f"<{opened.id}@example.org>" == first["References"], "it is one conversation"
        assert "time: 2026-01-05T00:01:00.000Z to 2026-01-05T00:09:00.000Z" in second.get_content()
