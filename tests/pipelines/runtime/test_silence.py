"""What is noticed of inputs on which nothing arrives, by a log of records and heartbeats as Kafka would keep it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest

from engine.kafka.heartbeat_sender import Beat
from pipelines.contracts.records import Silence
from pipelines.runtime.silence import Silences, Spans

MINUTE, HOUR = 60_000, 3_600_000
T0 = 1_767_571_200_000
PACE = 2_500


class Log:
    """Topics of two partitions each; heartbeats are ``None``."""

    def __init__(self, *topics: str) -> None:
        self.topics, self.now = topics, T0
        self.kept: dict[tuple[str, int], list[tuple[int, bool]]] = defaultdict(list)
        self.read_messages = 0

    def append(self, topic: str, partition: int, beat: bool) -> int:
        self.kept[topic, partition].append((self.now, beat))
        return len(self.kept[topic, partition]) - 1

    def read(self, spans: Spans) -> list[tuple[str, int]]:
        found = []
        for (topic, partition), (begin, end) in spans.items():
            some = self.kept[topic, partition][begin:end]
            self.read_messages += len(some)
            found += [(topic, time) for time, beat in some if not beat]
        return found

    def run(
        self, known: Silences, until: int, sending: Iterable[str] = (), each: int = 20, others: int = 0, every: int = 1
    ) -> list[Silence]:
        """Lets time pass to ``until`` milliseconds after `T0`; returns what was to be written.

        Args:
            known: Takes in the heartbeats.
            until: The end.
            sending: The topics that get records.
            each: How many records they get between two heartbeats.
            others: How many heartbeats other processes send in each partition between two of ours.
            every: They get records between every so many heartbeats.
        """
        found, turn = [], 0
        while self.now + PACE <= T0 + until:
            self.now += 1_000
            turn += 1
            for topic in sending if turn % every == 0 else ():
                for n in range(each):
                    self.append(topic, n % 2, beat=False)
            for topic in self.topics:
                for partition in (0, 1):
                    for _ in range(others):
                        self.append(topic, partition, beat=True)
            self.now += PACE - 1_000
            places = [(topic, partition) for topic in self.topics for partition in (0, 1)]
            found += known.take(Beat(*place, self.append(*place, beat=True), self.now) for place in places)
        return found

    def started(self, lasting: Iterable[Silence] = ()) -> Silences:
        return Silences(5 * MINUTE, lasting, self.read)


def told(found: Iterable[Silence]) -> list[tuple[str, str]]:
    """The input of each silence that began, and of each that ended; that they last is left out."""
    news = [each for each in found if each.until or each.time == each.noticed]
    return [(each.input, "ended" if each.until else "began") for each in news]


@pytest.mark.parametrize("others", [0, 2])
@pytest.mark.parametrize("records", [1, 20])
def test_all_inputs_that_stop_are_one_silence_of_all_that_the_first_record_ends(others: int, records: int) -> None:
    """Also while other processes send heartbeats, and if so few records come that they could be heartbeats."""
    log = Log("a", "b")
    known = log.started()
    assert log.run(known, 20 * MINUTE, ["a", "b"], records, others) == []
    last = log.now - PACE + 1_000
    found = log.run(known, 30 * MINUTE, others=others)
    assert told(found) == [("*", "began")]
    assert found[0].since == last and 5 * MINUTE <= found[0].noticed - last <= 5 * MINUTE + 2 * PACE
    again = log.now + 1_000
    (ended,) = log.run(known, 40 * MINUTE, ["b"], records, others)[:1]
    assert (ended.input, ended.since, ended.until) == ("*", last, again)


def test_it_is_written_every_minute_that_a_silence_lasts_and_not_in_between() -> None:
    log = Log("a")
    known = log.started()
    log.run(known, 5 * MINUTE, ["a"])
    found = log.run(known, 20 * MINUTE)
    assert 9 <= len(found) <= 12 and len({(each.input, each.since) for each in found}) == 1


def test_a_site_to_which_nothing_was_ever_sent_is_not_silent() -> None:
    log = Log("a", "b")
    assert log.run(log.started(), 2 * HOUR) == []


def test_a_pause_of_the_pipeline_is_no_silence_of_the_senders() -> None:
    """While nobody sends heartbeats nothing is known; the time without records counts from the first one again."""
    log = Log("a")
    log.run(log.started(), 10 * MINUTE, ["a"])
    log.now += 8 * HOUR
    known = log.started()
    begin = log.now - T0
    assert log.run(known, begin + 4 * MINUTE) == [], "stopped for hours, and silent for four minutes"
    (began,) = log.run(known, begin + 6 * MINUTE)[:1]
    assert began.since < T0 + 10 * MINUTE and began.noticed >= T0 + begin + 5 * MINUTE


def test_a_process_that_was_suspended_counts_anew() -> None:
    log = Log("a")
    known = log.started()
    log.run(known, 10 * MINUTE, ["a"])
    log.now += 8 * HOUR
    assert log.run(known, log.now - T0 + 4 * MINUTE) == []


def test_a_silence_goes_on_over_a_restart_and_is_ended_by_what_came_meanwhile() -> None:
    log = Log("a", "b")
    known = log.started()
    log.run(known, 10 * MINUTE, ["a", "b"])
    lasting = log.run(known, 20 * MINUTE)[-1]
    again = log.started([lasting])
    found = log.run(again, 22 * MINUTE)
    assert {(each.input, each.since, each.until) for each in found} == {("*", lasting.since, None)}
    log.now += HOUR
    at = log.now
    log.append("a", 0, beat=False)
    log.now += HOUR
    (ended,) = log.run(log.started([lasting]), log.now - T0 + PACE)
    assert (ended.input, ended.since, ended.until) == ("*", lasting.since, at)


@pytest.mark.parametrize("others", [0, 2])
def test_an_input_that_stops_alone_is_told_and_ends_alone(others: int) -> None:
    log = Log("a", "b")
    known = log.started()
    log.run(known, 10 * MINUTE, ["a", "b"], others=others)
    assert told(log.run(known, 30 * MINUTE, ["a"], others=others)) == [("b", "began")]
    assert told(log.run(known, 40 * MINUTE, ["a", "b"], others=others)) == [("b", "ended")]


def test_inputs_that_stop_one_soon_after_the_other_are_one_silence() -> None:
    log = Log("a", "b")
    known = log.started()
    log.run(known, 10 * MINUTE, ["a", "b"])
    log.run(known, 12 * MINUTE, ["a"])
    assert told(log.run(known, 20 * MINUTE)) == [("*", "began")]


def test_inputs_that_come_back_one_soon_after_the_other_are_no_silence_of_the_other() -> None:
    log = Log("a", "b")
    known = log.started()
    log.run(known, 10 * MINUTE, ["a", "b"])
    log.run(known, 20 * MINUTE)
    assert told(log.run(known, 24 * MINUTE, ["a"])) == [("*", "ended")]
    assert log.run(known, 40 * MINUTE, ["a", "b"]) == []


def test_an_input_that_never_had_a_record_says_nothing() -> None:
    log = Log("a", "never")
    known = log.started()
    assert log.run(known, HOUR, ["a"]) == []
    assert told(log.run(known, 2 * HOUR)) == [("*", "began")]


def test_an_input_that_pauses_by_its_nature_is_told_three_times_a_day_at_most() -> None:
    """The log of a quiet site has a line every ten minutes."""
    log = Log("a", "logs")
    known, found = log.started(), []
    for turn in range(1, 13):
        found += log.run(known, (10 * turn - 1) * MINUTE, ["a"])
        found += log.run(known, 10 * turn * MINUTE, ["a", "logs"])
    assert told(found).count(("logs", "began")) == 3


def test_a_busy_site_is_not_read() -> None:
    """Heartbeats tell by their offsets that much came between them."""
    log = Log("a")
    known = log.started()
    log.run(known, HOUR, ["a"], 100)
    assert log.read_messages <= 200, "the end of each partition at the start, and no more"


def test_a_site_with_a_record_a_minute_is_not_silent() -> None:
    log = Log("a")
    assert log.run(log.started(), 2 * HOUR, ["a"], 1, every=24) == []
