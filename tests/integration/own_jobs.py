"""The examples of docs/own-jobs.md as a new user has them: copied from the page into files of their own."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from engine.kafka.content import values
from engine.spec.errors import NewnormalError

PAGE = Path(__file__).parents[2] / "docs" / "own-jobs.md"
NAMES = ("word_count", "sessions", "early_and_late", "join", "enrichment", "pattern", "process")
Row = dict[str, Any]


def examples() -> dict[str, str]:
    """The code of each example, in the order of the page."""
    return dict(zip(NAMES, re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S), strict=True))


def feed(bootstrap: str, topic: str, rows: Iterable[tuple[Row, str]]) -> None:
    """Writes rows as JSON, each under its key, in their order."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 2_000_000})
    for row, key in rows:
        while True:
            try:
                producer.produce(topic, json.dumps(row), key)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0


def pass_time(bootstrap: str, topic: str, row: Row, partitions: int) -> None:
    """Writes a record to each partition, so that the watermark comes to its time."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition in range(partitions):
        producer.produce(topic, json.dumps(row), partition=partition)
    assert producer.flush(60) == 0


def read(bootstrap: str, topic: str) -> list[Row]:
    """What a topic holds, read committed; heartbeats are none.

    A topic that is not there yet, or cannot be read for the moment, as where a killed writer's transaction is open,
    holds nothing: whoever waits asks again.
    """
    try:
        found = values(bootstrap, topic)
    except NewnormalError as error:
        assert error.code in ("TOPIC_UNKNOWN", "KAFKA_READ_FAILED"), error
        return []
    return [json.loads(value) for value in found if value.startswith(b"{")]


def some_words(n: int, begin: int, seed: int = 1) -> list[tuple[Row, str]]:
    """Words over five minutes, up to 3 s out of order, of which some are said more often than others."""
    rng = random.Random(seed)
    found = []
    for i in range(n):
        word = f"word-{int(rng.paretovariate(1.0)) % 100}"
        found.append(({"time": begin + 3_000 + i * 290_000 // n - rng.randrange(3_000), "word": word}, word))
    return found


def hour_ago() -> int:
    """A full minute about an hour ago, epoch milliseconds."""
    return (int(time.time()) // 60 - 60) * 60_000
