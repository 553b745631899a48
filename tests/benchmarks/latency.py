"""Latency of the whole chain under a steady load, from the end of a window + the watermark's bound to what comes of it.

This is its feature, its verdict, and the document that a search finds.

The load is written by a process of its own, at an even pace; features and verdicts are seen by a plain consumer that
reads committed messages only; the sink tells when its documents were searchable. The first three minutes warm up
(the JVM compiles) and are not counted.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from confluent_kafka import Consumer
from rich.console import Console

from deploy.embedded.services import embedded
from engine.formats import columnar
from engine.kafka.admin import ensure_topics
from engine.spec.duration import END_OF_TIME, duration_ms
from pipelines.contracts import topics
from pipelines.contracts.records import Features
from pipelines.contracts.settings import Settings, load
from pipelines.runtime.driver import Driver

KEYS, WARM_SECONDS = 1_000, 180
say = Console(stderr=True).print

LOAD = """
import sys, time
from datagen.kafka_writer import KafkaWriter
bootstrap, topic, rate, seconds, keys = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
names = [(f"host-{k // 10}", f"m{k % 10}") for k in range(keys)]
tick, sent, began = 0.05, 0, time.time()
with KafkaWriter(bootstrap) as writer:
    while time.time() < began + seconds:
        now, due = int(time.time() * 1000), int((time.time() - began) * rate)
        part = [names[i % keys] for i in range(sent, due)]
        line = '{"@timestamp":%d,"host.name":"%s","metric":"%s","value":%d.5,"kind":"gauge"}'
        writer.write(topic, [line % (now, h, m, i % 97) for i, (h, m) in enumerate(part)], [h for h, _ in part])
        sent = due
        time.sleep(max(0.0, tick - (time.time() * 1000 - now) / 1000))
print(sent)
"""


def run(rate: int, seconds: int, state_dir: Path | None) -> dict[str, Any]:
    """Measures; returns the figures in milliseconds."""
    name = f"latency{int(time.time())}"
    settings = load(**{"namespace": f"{name}.", "state_dir": state_dir, "detector.emit": "all"})
    with embedded(settings) as servers:
        return _measure(servers.settings(settings), rate, seconds)


def _measure(settings: Settings, rate: int, seconds: int) -> dict[str, Any]:
    bootstrap = settings.kafka.bootstrap or ""
    wanted = {settings.topic(n): c for n, c in topics.configs().items()}
    ensure_topics(bootstrap, wanted, settings.kafka.partitions)
    driver = Driver(settings, live_from=END_OF_TIME)
    driver.claim()
    driver.start()
    bound, window = duration_ms(settings.watermark.out_of_orderness), duration_ms(settings.window.size)
    seen: dict[str, list[tuple[int, int]]] = {topic: [] for topic in ENDS}
    stop = threading.Event()
    watcher = threading.Thread(target=_watch, args=(settings, seen, stop))
    watcher.start()
    total = WARM_SECONDS + seconds
    arguments = [bootstrap, settings.topic(topics.RAW_JSON), str(rate), str(total), str(KEYS)]
    load_process = subprocess.Popen([sys.executable, "-c", LOAD, *arguments], stdout=subprocess.PIPE)
    began = time.time()
    try:
        while time.time() < began + total:
            driver.check()
            if driver.status.live_from == END_OF_TIME and time.time() > began + WARM_SECONDS:
                driver.status.live_from = int(time.time() * 1000) // window * window + window
            time.sleep(1)
        sent = int(load_process.communicate(timeout=60)[0])
    finally:
        load_process.kill()
    live_from = driver.status.live_from
    latency = driver.status.latency_ms()
    stop.set()
    watcher.join()
    driver.stop()
    first = int(began * 1000) + 60_000

    def waits(topic: str, since: int, until: int) -> dict[str, float]:
        return _percentiles([at - end - bound for end, at in seen[topic] if since <= end < until])

    return {
        "records_per_second": round(sent / total),
        "series": KEYS,
        "windows": sum(end >= live_from for end, _ in seen[topics.FEATURES]) // KEYS,
        "window_to_feature_ms": waits(topics.FEATURES, live_from, END_OF_TIME),
        "window_to_verdict_ms": waits(topics.NOVELTIES, live_from, END_OF_TIME),
        "minute_2_window_to_verdict_ms": waits(topics.NOVELTIES, first, first + 60_000),
        "window_to_searchable_ms": {name: None if at is None else at - bound for name, at in latency.items()},
    }


def _percentiles(waits: list[int]) -> dict[str, float]:
    return {"p50": float(np.percentile(waits, 50)), "p99": float(np.percentile(waits, 99))}


def _watch(settings: Settings, seen: dict[str, list[tuple[int, int]]], stop: threading.Event) -> None:
    """Notes ends of windows, and when they were seen, epoch milliseconds, by topic."""
    options = {"bootstrap.servers": settings.kafka.bootstrap, "group.id": "latency", "auto.offset.reset": "earliest"}
    consumer = Consumer(options | {"isolation.level": "read_committed", "fetch.wait.max.ms": 10})
    names = {settings.topic(topic): topic for topic in seen}
    consumer.subscribe([*names])
    while not stop.is_set():
        for message in consumer.consume(100, 0.05):
            now, topic = int(time.time() * 1000), names[message.topic() or ""]
            if not message.error():
                seen[topic].extend((end, now) for end in ENDS[topic](message.value() or b""))
    consumer.close()


def _of_features(value: bytes) -> list[int]:
    return columnar.decode(value, Features.arrow_schema())[0].column("window_end").to_pylist()


ENDS: dict[str, Callable[[bytes], list[int]]] = {
    topics.FEATURES: _of_features,
    topics.NOVELTIES: lambda value: [orjson.loads(value)["@timestamp"]],
}
"""Topics that are watched, with what reads the ends of windows out of a message."""
