"""`newnormal deadletter` on a real Kafka: what the terminal says, and which letters are sent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.formats.dead_letters import DeadLetter
from engine.kafka.admin import delete_topics, ensure_topics
from engine.kafka.content import values
from engine.waiting import until
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings, load
from pipelines.query.dead_letters.letters import homes

Run = Callable[..., tuple[int, str, str]]
NOW = int(time.time() * 1000)

pytestmark = pytest.mark.servers


@pytest.fixture
def settings(endpoints: Endpoints, tmp_path: Any) -> Settings:
    """Two messages of a clock that was ahead, and one that is no JSON; a letter for each."""
    addresses: dict[str, Any] = {"kafka.bootstrap": endpoints.bootstrap}
    made = load(namespace=f"cli{time.time_ns()}.", state_dir=tmp_path, **addresses)
    delete_topics(endpoints.bootstrap, homes(made))  # letters of other tests' own jobs would be among them
    raw, home = made.topic(topics.RAW_JSON), made.topic(topics.DEADLETTER)
    ensure_topics(endpoints.bootstrap, {raw: topics.config(topics.RAW_JSON), home: {}}, 1, 1)
    producer = Producer({"bootstrap.servers": endpoints.bootstrap, "log_level": 0})
    good = json.dumps({"@timestamp": NOW, "host.name": "a", "metric": "m", "value": 1.0}).encode()
    for at, value in enumerate((good, good, b"{[red]")):
        producer.produce(raw, value, partition=0)
        common: dict[str, Any] = {"job": "normalizer", "topic": raw, "partition": 0, "offset": at}
        ahead = {"time": NOW - 3_600_000, "code": "TIME_AHEAD", "reason": "an hour ahead", "records": 1, "refused": "0"}
        letter = DeadLetter(
            **common, **(ahead if value == good else {"time": NOW, "code": "JSON_MALFORMED", "reason": "no JSON"})
        )
        producer.produce(home, letter.to_json())
    assert producer.flush(30) == 0
    return made


def options(settings: Settings) -> list[str]:
    return [
        "--kafka",
        settings.kafka.bootstrap or "",
        "--namespace",
        settings.namespace,
        "--state-dir",
        str(settings.state),
    ]


def test_letters_are_counted_shown_sent_again_and_then_counted_as_retried(settings: Settings, run: Run) -> None:
    given, raw = options(settings), settings.topic(topics.RAW_JSON)
    code, out, _ = run("deadletter", "list", *given)
    assert code == 0
    assert all(part in out for part in ("TIME_AHEAD", "JSON_MALFORMED", f"{raw}/0@1", "an hour ahead"))
    code, out, _ = run("deadletter", "show", f"{raw}/0@2", *given)
    assert (code, "{[red]" in out, "no JSON" in out) == (0, True, True)
    code, out, _ = run("deadletter", "retry", "--code", "TIME_AHEAD", *given)
    assert (code, out.splitlines()[0]) == (0, "2 letters sent again")
    assert f"{raw}/0@0 as {raw}/0@3" in out
    # Kafka answers a commit before the partitions have its markers, until which readers see nothing of it
    assert until(lambda: len(values(settings.kafka.bootstrap or "", raw)) == 5, seconds=30)
    shown = run("deadletter", "list", *given)[1]
    assert ("1970" in shown, "sent again" in shown) == (False, True)  # a number of letters, not a time
    listed = [json.loads(line) for line in run("deadletter", "list", "--json", *given)[1].splitlines()]
    assert [(letter["code"], "retried" in letter) for letter in listed] == [
        ("TIME_AHEAD", True), ("TIME_AHEAD", True), ("JSON_MALFORMED", False)
    ]  # fmt: skip


def test_what_is_not_sent_is_said_with_its_code(settings: Settings, run: Run) -> None:
    code, out, said = run("deadletter", "retry", "--all", *options(settings))
    assert (code, out.splitlines()[0]) == (1, "2 letters sent again")
    assert "1 not sent, LETTER_STILL_WRONG: JSON_MALFORMED" in said
    code, out, said = run("deadletter", "retry", "--code", "TIME_AHEAD", *options(settings))
    assert (code, out.splitlines()[0]) == (0, "0 letters sent again")


def test_a_retry_that_selects_no_letter_is_refused(settings: Settings, run: Run) -> None:
    code, _, said = run("deadletter", "retry", *options(settings))
    assert (code, "USAGE_INVALID" in said) == (2, True)
    code, _, said = run("deadletter", "retry", "nowhere/0@1", *options(settings))
    assert (code, "LETTER_UNKNOWN" in said) == (2, True)


def test_letters_must_be_selected_before_a_server_is_asked(run: Run, tmp_path: Path) -> None:
    code, _, shown = run("deadletter", "retry", "--state-dir", str(tmp_path))
    assert code == 2 and shown.startswith("USAGE_INVALID: no letter is selected")
