"""Latency of the whole chain under a steady load: end of window + watermark bound → feature, and → searchable document.

The load is written by a process of its own, at an even pace; features are seen by a plain consumer that reads committed
messages only; the sink tells when its documents were searchable. The first three minutes warm up
(the JVM compiles) and are not counted.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
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
    seen: list[tuple[int, int]] = []
    stop = threading.Event()
    watcher = threading.Thread(target=_watch, args=(bootstrap, settings.topic(topics.FEATURES), seen, stop))
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
    feature = np.array([at - end - bound for end, at in seen if end >= live_from])
    return {
        "records_per_second": round(sent / total),
        "series": KEYS,
        "windows": len(feature) // KEYS,
        "window_to_feature_ms": {"p50": float(np.percentile(feature, 50)), "p99": float(np.percentile(feature, 99))},
        "window_to_searchable_ms": {name: None if at is None else at - bound for name, at in latency.items()},
    }


def _watch(bootstrap: str, topic: str, seen: list[tuple[int, int]], stop: threading.Event) -> None:
    options = {"bootstrap.servers": bootstrap, "group.id": "latency", "auto.offset.reset": "earliest"}
    consumer = Consumer(options | {"isolation.level": "read_committed", "fetch.wait.max.ms": 10})
    consumer.subscribe([topic])
    while not stop.is_set():
        for message in consumer.consume(100, 0.05):
            now = int(time.time() * 1000)
            if not message.error():
                rows, _ = columnar.decode(message.value() or b"", Features.arrow_schema())
                seen.extend((end, now) for end in rows.column("window_end").to_pylist())
    consumer.close()
