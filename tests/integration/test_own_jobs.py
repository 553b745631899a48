"""Jobs of one's own as docs/own-jobs.md has them, on real Kafka through Spark, with `kill -9` in the middle."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from engine.kafka.admin import ensure_topics
from tests.integration.conftest import Pipeline
from tests.integration.own_jobs import Row, examples, feed, hour_ago, pass_time, read, some_words

pytestmark = [pytest.mark.servers, pytest.mark.spark]

INPUTS = {
    "words": {"word": "end"},
    "clicks": {"user": "end", "page": "-"},
    "sales": {"shop": "end", "amount": 0.0},
    "orders": {"order": "end", "amount": 0.0},
    "payments": {"order": "end-payment", "amount": 0.0},
    "ad-events": {"ad": "end", "event": "view"},
    "ads": {"ad": "end", "campaign": "end"},
    "logins": {"user": "end", "outcome": "ok"},
    "readings": {"sensor": "end", "celsius": 0.0},
}
"""The topics that the examples read, and a record of each that only moves the time on."""


def counted_right(written: list[tuple[Row, str]], counts: list[Row]) -> None:
    """The counts are those of an independent count, each window once."""
    expected = Counter((row["word"], row["time"] // 10_000 * 10_000) for row, _ in written)
    found = Counter({(row["word"], row["window_start"]): row["n"] for row in counts})
    assert len(counts) == len(found), "each window of each word once"
    assert found == expected


def test_the_page_s_examples_give_what_it_says_though_the_driver_is_killed(pipeline: Pipeline, tmp_path: Path) -> None:
    bootstrap, files = pipeline.settings.kafka.bootstrap or "", []
    for name, code in examples().items():
        files.append(str(tmp_path / f"{name}.py"))
        Path(files[-1]).write_text(code)
    pipeline.environment |= {"NEWNORMAL_KAFKA__PARTITIONS": "2"}
    ensure_topics(bootstrap, {topic: {} for topic in INPUTS}, 2)
    t0, words = hour_ago(), some_words(100_000, hour_ago())
    half = len(words) // 2

    def send(topic: str, *rows: Row) -> None:
        key = next(iter(INPUTS[topic]))
        feed(bootstrap, topic, [({"time": t0 + 1000 * row.pop("at"), **row}, row[key]) for row in rows])

    def move_on(seconds: int, *topics: str) -> None:
        for topic in topics or INPUTS:
            pass_time(bootstrap, topic, {"time": t0 + 1000 * seconds, **INPUTS[topic]}, 2)

    def ours(topic: str) -> list[Row]:
        return [row for row in read(bootstrap, topic) if not any(str(v).startswith("end") for v in row.values())]

    feed(bootstrap, "words", words[:half])
    send("words", {"at": 1, "word": "a number", "time": "none"})
    send("clicks", *({"at": at, "user": "ann", "page": f"page-{at}"} for at in (0, 10, 20, 90)))
    send("sales", {"at": 5, "shop": "north", "amount": 10.0}, {"at": 10, "shop": "north", "amount": 5.0})
    send("orders", {"at": 0, "order": "one", "amount": 9.5}, {"at": 1, "order": "two", "amount": 3.0})
    send("payments", {"at": 60, "order": "one", "amount": 9.0})
    send(
        "ads",
        *({"at": at, "ad": ad, "campaign": c} for at, ad, c in ((0, "one", "p"), (0, "two", "p"), (60, "one", "q"))),
    )
    seen = [(10, "one", "view"), (12, "one", "click"), (15, "two", "view"), (59, "one", "view"), (61, "one", "view")]
    send("ad-events", *({"at": at, "ad": ad, "event": event} for at, ad, event in seen))
    for user, outcomes in (("bob", "failed failed ok"), ("eve", "failed ok failed ok")):
        send("logins", *({"at": 10 * i, "user": user, "outcome": o} for i, o in enumerate(outcomes.split())))
    send("readings", *({"at": i, "sensor": "s", "celsius": c} for i, c in enumerate((20.0, 25.0, 40.0))))
    move_on(120, "sales")
    pipeline.start(*files)
    pipeline.wait("the result of the first minute", lambda: any(r["timing"] == "on_time" for r in ours("takings")))
    pipeline.wait("a count", lambda: bool(read(bootstrap, "counts")))
    feed(bootstrap, "words", words[half : half + half // 2])
    pipeline.kill()
    feed(bootstrap, "words", words[half + half // 2 :])
    send("sales", {"at": 20, "shop": "north", "amount": 1.0})
    move_on(1500)
    pipeline.start(*files)
    pipeline.wait("the late sale", lambda: any(r["timing"] == "late" for r in ours("takings")))
    send("sales", {"at": 30, "shop": "north", "amount": 7.0})
    pipeline.wait("what is too late", lambda: bool(read(bootstrap, "takings.late")))
    soon = delete_and_view(bootstrap)
    for topic, n in (("campaign-views", 4), ("visits", 2), ("paid", 2), ("guessed", 1), ("risen", 3)):
        pipeline.wait(topic, lambda topic=topic, n=n: len(ours(topic)) >= n)  # type: ignore[misc]
    total = len(words)
    pipeline.wait("all counts", lambda: sum(row["n"] for row in ours("counts")) >= total)
    pipeline.stop()

    counted_right(words, ours("counts"))
    check_the_others(bootstrap, t0, ours)
    found = {(r["campaign"], r["window_start"]): r["views"] for r in ours("campaign-views")}
    window = soon // 10_000 * 10_000
    assert found == {("p", t0 + 10_000): 2, ("p", t0 + 50_000): 1, ("q", t0 + 60_000): 1, ("q", window): 1}


def delete_and_view(bootstrap: str) -> int:
    """Writes a tombstone for the advertisement ``two``, then a view of each one; returns the time of the views."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("ads", None, "two")
    assert producer.flush(60) == 0
    soon = int(time.time() * 1000) + 5_000
    feed(bootstrap, "ad-events", [({"time": soon, "ad": ad, "event": "view"}, ad) for ad in ("one", "two")])
    pass_time(bootstrap, "ad-events", {"time": soon + 20_000, **INPUTS["ad-events"]}, 2)
    return soon


def check_the_others(bootstrap: str, t0: int, ours: Callable[[str], list[Row]]) -> None:
    """The results of the other examples, worked out by hand."""
    (refused,) = read(bootstrap, "counts.deadletter")
    assert (refused["error.code"], refused["kafka.topic"]) == ("FIELD_INVALID", "words")
    visits = {(r["clicks"], r["entry"], r["exit"]) for r in ours("visits")}
    assert visits == {(3, "page-0", "page-20"), (1, "page-90", "page-90")}
    amounts = {row["timing"]: row["amount"] for row in ours("takings")}
    assert (amounts["on_time"], amounts["late"]) == (15.0, 16.0)
    (too_late,) = read(bootstrap, "takings.late")
    assert too_late == {"time": t0 + 30_000, "shop": "north", "amount": 7.0}
    paid = {row["order"]: (row["amount"], row.get("amount_right")) for row in ours("paid")}
    assert paid == {"one": (9.5, 9.0), "two": (3.0, None)}
    (guessed,) = ours("guessed")
    assert (guessed["user"], guessed["a_time"], guessed["c_time"]) == ("bob", t0, t0 + 20_000)
    assert sorted(row["rise"] for row in ours("risen")) == [0.0, 5.0, 15.0]
    assert [row["rise"] for row in ours("alarms")] == [15.0]


@pytest.mark.slow
def test_a_million_words_are_counted_right_over_a_kill_and_in_more_shards(pipeline: Pipeline, tmp_path: Path) -> None:
    bootstrap, file = pipeline.settings.kafka.bootstrap or "", tmp_path / "my_jobs.py"
    names = {'"words"': '"million.words"', '"counts"': '"million.counts"'}
    code = examples()["word_count"]
    for old, new in names.items():
        code = code.replace(old, new)
    file.write_text(code)
    words = some_words(1_000_000, hour_ago())
    pipeline.start(str(file))
    pipeline.wait("the start", lambda: "job started" in pipeline.log.read_text())
    feed(bootstrap, "million.words", words[:400_000])
    pipeline.wait("a count", lambda: bool(read(bootstrap, "million.counts")))
    feed(bootstrap, "million.words", words[400_000:700_000])
    pipeline.kill()
    feed(bootstrap, "million.words", words[700_000:900_000])
    pipeline.start(str(file))
    before = len(read(bootstrap, "million.counts"))
    pipeline.wait("further counts", lambda: len(read(bootstrap, "million.counts")) > before)
    pipeline.stop()
    own = ("--file", str(file))
    assert "savepoint words: million.counts" in pipeline.command("savepoint", "create", "words", *own)
    restore = ("savepoint", "restore", "words", "--shards", "4", "--yes")
    assert "JOB_UNKNOWN" in pipeline.refused(*restore), "these are no jobs of the chain"
    assert "set engine.shards = 4" in pipeline.command(*restore, *own)
    pipeline.environment["NEWNORMAL_ENGINE__SHARDS"] = "4"
    feed(bootstrap, "million.words", words[900_000:])
    partitions = pipeline.settings.kafka.partitions
    pass_time(bootstrap, "million.words", {"time": hour_ago() + 600_000, "word": "end"}, partitions)
    pipeline.start(str(file))

    def counts() -> list[Row]:
        return [row for row in read(bootstrap, "million.counts") if row["word"] != "end"]

    pipeline.wait("all counts", lambda: sum(row["n"] for row in counts()) >= len(words), 600)
    pipeline.stop()
    counted_right(words, counts())
