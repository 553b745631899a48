"""A channel is told until it takes the message, once, over restarts and promotions; with a real receiver."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Incident
from pipelines.contracts.records.severity import Severity
from pipelines.contracts.settings import Settings, load
from pipelines.contracts.settings.routes import Route
from pipelines.notify import teller
from pipelines.notify.memory import Memory
from pipelines.notify.news import LastReport, news
from pipelines.notify.routing import Duty, Routing
from pipelines.notify.teller import Teller
from pipelines.query.told import ToldFiles
from tests.pipelines.notify.receivers import HttpReceiver, http_receiver, incident, until

Topic = tuple[str, str]
V1, V2 = ("incidents", "v1"), ("incidents-v2", "v2")


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpReceiver]:
    monkeypatch.setattr(teller, "_LOOK", 0.02)
    monkeypatch.setattr(teller, "_FIRST", 0.02)
    monkeypatch.setattr(teller, "_LONGEST", 0.04)
    with http_receiver() as made:
        yield made


def settings(receiver: HttpReceiver, **more: Any) -> Settings:
    return load(**{"notify.channels": {"hook": {"kind": "webhook", "url": receiver.url}}, "notify.rate": 100, **more})


def read(memory: Memory, topic: Topic, *found: Incident, to: int = 1) -> None:
    """What a reader does that has read some incidents, and the topic to its end."""
    memory.take(topic[0], found, {0: to}, int(time.time() * 1000))
    memory.begin(topic[0])


@contextmanager
def telling(memory: Memory, given: Settings, topic: Callable[[], Topic | None] = lambda: V1) -> Iterator[None]:
    mine = Teller("hook", given, memory, topic)
    mine.start()
    try:
        yield
    finally:
        mine.stop()
        mine.join(10)


def ids(receiver: HttpReceiver) -> list[str]:
    return [body["id"] for body in receiver.bodies]


def settled(receiver: HttpReceiver, count: int) -> list[str]:
    """The ids of messages, when there are so many and no more come within several looks."""
    until(lambda: len(receiver.got) >= count)
    time.sleep(0.15)
    return ids(receiver)


def held_back(receiver: HttpReceiver, number: int) -> threading.Event:
    """The receiver answers its request of this number, from 1, when the event is set."""
    answered = threading.Event()

    def when_told(asked: int) -> tuple[int, dict[str, str], str]:
        if asked == number:
            answered.wait(10)
        return 200, {}, ""

    receiver.answers = when_told
    return answered


def test_what_is_open_at_first_is_told_and_what_was_over_is_not_and_a_restart_repeats_nothing(
    receiver: HttpReceiver, tmp_path: Path
) -> None:
    given, memory = settings(receiver), Memory(tmp_path, ["hook"])
    read(memory, V1, incident("over", "resolved"), incident("lasts"))
    with telling(memory, given):
        assert settled(receiver, 1) == ["lasts:1:opened"]
    (told,) = ToldFiles(tmp_path).read()
    assert (told.channel, told.state, told.incidents) == ("hook", "opened", ("lasts",))
    assert told.title == receiver.bodies[0]["title"]
    assert 0 <= time.time() * 1000 - told.at < 60_000
    memory.close()
    memory = Memory(tmp_path, ["hook"])
    assert memory.offsets("incidents") == {0: 1}
    read(memory, V1, incident("brief", "resolved", revision=1))
    with telling(memory, given):
        assert settled(receiver, 2) == ["lasts:1:opened", "brief:1:resolved"]
    memory.close()


def test_a_message_is_sent_again_until_it_is_taken_and_always_with_the_same_id(
    receiver: HttpReceiver, tmp_path: Path
) -> None:
    asked: list[float] = []

    def busy_at_first(number: int) -> tuple[int, dict[str, str], str]:
        asked.append(time.monotonic())
        return (429, {"Retry-After": "1"}, "") if number == 1 else (503 if number < 4 else 200, {}, "")

    receiver.answers = busy_at_first
    memory = Memory(tmp_path, ["hook"])
    read(memory, V1, incident())
    with telling(memory, settings(receiver)):
        assert settled(receiver, 1) == ["aaa:1:opened"]
    assert receiver.asked == 4 and asked[1] - asked[0] >= 1.0, "Retry-After is respected"
    memory.close()


def test_a_process_that_ends_between_answer_and_storing_sends_the_message_again_with_the_same_id(
    receiver: HttpReceiver, tmp_path: Path
) -> None:
    answered = held_back(receiver, 1)
    memory = Memory(tmp_path, ["hook"])
    read(memory, V1, incident())
    with telling(memory, settings(receiver)):
        until(lambda: receiver.asked == 1)
        memory.close()  # from now on nothing can be stored, as after kill -9
        answered.set()
    memory = Memory(tmp_path, ["hook"])
    with telling(memory, settings(receiver)):
        assert settled(receiver, 2) == ["aaa:1:opened", "aaa:1:opened"]
    memory.close()


@pytest.mark.parametrize("end", ["resolved", "merged"])
@pytest.mark.parametrize("again", [False, True])
def test_what_began_in_a_message_of_which_nothing_was_stored_is_ended_if_it_is_over_at_the_next_start(
    receiver: HttpReceiver, tmp_path: Path, end: str, again: bool
) -> None:
    number = 3 if again else 1
    answered = held_back(receiver, number)
    memory = Memory(tmp_path, ["hook"])
    read(memory, V1, incident())
    with telling(memory, settings(receiver)):
        if again:
            settled(receiver, 1)
            read(memory, V1, incident(status="resolved", revision=1))
            settled(receiver, 2)
            read(memory, V1, incident(status="reopened", revision=2, reopenings=1))
        until(lambda: receiver.asked == number)
        memory.close()  # from now on nothing can be stored, as after kill -9
        answered.set()
    memory = Memory(tmp_path, ["hook"])
    read(memory, V1, incident(status=end, revision=3, reopenings=int(again)))
    with telling(memory, settings(receiver)):
        assert [each.split(":")[2] for each in settled(receiver, number + 1)][-2:] == [
            "reopened" if again else "opened",
            "resolved",
        ]
    memory.close()


def test_the_rate_also_counts_the_messages_before_a_restart(receiver: HttpReceiver, tmp_path: Path) -> None:
    once = {"notify.rate": 1, "notify.per": "1h"}
    for number in range(2):
        memory = Memory(tmp_path, ["hook"])
        read(memory, V1, incident(f"i{number}"), to=number + 1)
        with telling(memory, settings(receiver, **once)):
            assert settled(receiver, 1) == ["i0:1:opened"]
        memory.close()


def test_a_message_that_is_wrong_in_itself_does_not_hold_back_the_others_for_ever(
    receiver: HttpReceiver, tmp_path: Path
) -> None:
    receiver.answers = lambda number: (400 if number <= 5 else 200, {}, "")
    memory = Memory(tmp_path, ["hook"])
    read(memory, V1, incident("wrong"), incident("right", severity="minor"))
    with telling(memory, settings(receiver)):
        assert settled(receiver, 1) == ["right:1:opened"]
    assert receiver.asked == 6
    memory.close()


def test_after_a_promotion_the_same_incident_is_not_told_again_and_one_that_is_gone_ends(
    receiver: HttpReceiver, tmp_path: Path
) -> None:
    memory, shown = Memory(tmp_path, ["hook"]), [V1]
    read(memory, V1, incident("both"), incident("old"))
    with telling(memory, settings(receiver), lambda: shown[0]):
        assert sorted(settled(receiver, 2)) == ["both:1:opened", "old:1:opened"]
        read(memory, V2, incident("both"), incident("new"), incident("past", "resolved"))
        shown[0] = V2
        assert sorted(settled(receiver, 4)[2:]) == ["new:1:opened", "old:2:resolved"]
        gone = next(body for body in receiver.bodies if body["id"] == "old:2:resolved")
        assert "version v2, which is shown now, has no such incident" in gone["text"]
        shown[0] = V1
        assert sorted(settled(receiver, 6)[4:]) == ["new:2:resolved", "old:3:reopened"]
    memory.close()


def test_an_outage_of_the_site_is_a_few_messages_and_a_summary(receiver: HttpReceiver, tmp_path: Path) -> None:
    memory = Memory(tmp_path, ["hook"])
    read(memory, V1, *(incident(f"i{n:02}", severity="minor") for n in range(30)))
    with telling(memory, settings(receiver, **{"notify.rate": 3, "notify.per": "1h"})):
        settled(receiver, 3)
        read(memory, V1, incident("later"), to=2)
        settled(receiver, 3)
    assert [body["state"] for body in receiver.bodies] == ["opened", "opened", "summary"]
    assert len(receiver.bodies[2]["incidents"]) == 28
    memory.close()


def test_a_higher_revision_counts_whatever_the_order(receiver: HttpReceiver, tmp_path: Path) -> None:
    memory = Memory(tmp_path, ["hook"])
    read(memory, V1, incident(revision=2), incident(status="resolved", revision=1))
    with telling(memory, settings(receiver)):
        assert settled(receiver, 1) == ["aaa:1:opened"]
    memory.close()


def test_only_one_process_has_the_folder(tmp_path: Path) -> None:
    memory = Memory(tmp_path, ["hook"])
    with pytest.raises(NewnormalError) as caught:
        Memory(tmp_path, ["hook"])
    assert caught.value.code == "NOTIFY_UNUSABLE" and str(tmp_path) in caught.value.where
    memory.close()


def test_what_was_over_a_month_ago_is_forgotten_and_what_lasts_is_not(tmp_path: Path) -> None:
    memory, now = Memory(tmp_path, ["hook"]), int(time.time() * 1000)
    long_ago = now - 31 * 86_400_000
    memory.take("incidents", [incident("over", "resolved"), incident("lasts")], {0: 2}, long_ago)
    memory.take("incidents", [incident("fresh", "resolved")], {0: 3}, now)
    memory.begin("incidents")
    memory.forget(now)
    memory.close()
    memory = Memory(tmp_path, ["hook"])
    assert sorted(each.incident.id for each in memory.incidents("incidents")[0]) == ["fresh", "lasts"]
    memory.close()


def routing(severity: Severity = "warning") -> Routing:
    """One route, to the channel, for incidents of a severity or a higher one."""
    return Routing([Route(name="hook", severity=severity, channels=("hook",))])


def past(memory: Memory) -> list[str]:
    """Incidents that the channel would be told of now."""
    said, found = memory.last_reports("hook"), []
    for each in memory.incidents("incidents")[0]:
        duty = memory.routing.duty("hook", each.incident, each.taken, 0)
        found += [each.incident.id] if news(each.incident, said.get(each.incident.id), duty) else []
    return sorted(found)


def test_a_lower_severity_of_a_channel_does_not_tell_of_what_was_over_before(tmp_path: Path) -> None:
    memory = Memory(tmp_path, ["hook"], routing("critical"))
    memory.begin("incidents")
    minor, severe = incident("minor", "resolved", "minor"), incident("severe", "resolved")
    memory.take("incidents", [minor, severe, incident("open", severity="minor")], {0: 3}, 0)
    assert past(memory) == ["severe"]
    memory.close()
    memory = Memory(tmp_path, ["hook"], routing("warning"))
    memory.take("incidents", [incident("meanwhile", "resolved", "minor")], {0: 4}, 0)
    memory.begin("incidents")
    assert past(memory) == ["open", "severe"]
    memory.take("incidents", [incident("later", "resolved", "minor")], {0: 5}, 0)
    memory.close()
    memory = Memory(tmp_path, ["hook"], routing("warning"))
    memory.begin("incidents")
    assert past(memory) == ["later", "open", "severe"], "with the same severity, a start forgets nothing"
    memory.close()


def test_a_channel_that_is_put_back_is_told_of_what_is_not_over_and_of_the_end_of_what_it_knows(tmp_path: Path) -> None:
    memory = Memory(tmp_path, ["hook", "other"])
    memory.begin("incidents")
    memory.take("incidents", [incident("known")], {0: 1}, 0)
    memory.say("hook", {"known": LastReport("opened", "critical", 0, 1)}, 0, 9)
    memory.close()
    memory = Memory(tmp_path, ["other"])
    memory.begin("incidents")
    meanwhile = [incident("known", "resolved", revision=1), incident("brief", "resolved"), incident("lasts")]
    memory.take("incidents", meanwhile, {0: 4}, 0)
    memory.close()
    memory = Memory(tmp_path, ["hook", "other"])
    memory.begin("incidents")
    assert past(memory) == ["known", "lasts"]
    memory.close()


def test_what_changes_before_it_is_sent_again_has_another_id_and_the_same_has_the_same(
    receiver: HttpReceiver, tmp_path: Path
) -> None:
    """A receiver that leaves out what it has by its id must not leave out that the incident became critical."""
    taken = threading.Event()
    receiver.answers = lambda _: (200 if taken.is_set() else 503, {}, "")
    memory = Memory(tmp_path, ["hook"])
    read(memory, V1, incident(severity="minor"))
    with telling(memory, settings(receiver)):
        until(lambda: receiver.asked > 0)
        read(memory, V1, incident(severity="critical", revision=1), to=2)
        taken.set()
        until(lambda: bool({"aaa:2:opened", "aaa:2:updated"} & set(ids(receiver))))
    first = news(incident(severity="minor"), None, Duty(True))
    assert first is not None
    again = [news(incident(severity=s), None, Duty(True), first.as_report()) for s in ("minor", "critical")]  # type: ignore[arg-type]
    assert [each.id for each in again if each] == ["aaa:1:opened", "aaa:2:opened"]
    higher = news(incident(severity="major"), first.as_report(), Duty(True))
    assert higher is not None
    more = [
        news(incident(severity=s), first.as_report(), Duty(True), higher.as_report()) for s in ("major", "critical")
    ]  # type: ignore[arg-type]
    assert [each.id for each in more if each] == ["aaa:2:updated", "aaa:3:updated"]
    memory.close()
