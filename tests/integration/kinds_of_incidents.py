"""A site of nine hours with one incident of each kind that needs more than a surge of one metric."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from datagen.kafka_writer import KafkaWriter
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings

MINUTE, MINUTES = 60_000, 540
"""Windows of a minute are meant."""
SILENT, CHATTY, FULL, CANARY = "web-2", "web-3", "db-1", "shop/cart-9c8d7f6b5-w5w6r"
"""A machine that falls silent, its log too; one whose log has lines that nobody knows; one whose disk is nearly full; a
pod that is slow from its start, after a release."""
_SETS = ("7d4b9c6f5", "5f7c8d9b4", "6d5c4b7f8")
_PODS = ("x2x7p", "b4c5d", "z6z7q", "m2n4p", "q5r6s", "k8l9m")
_TEXTS = ("GET /items/{} 200", "session {} opened", "cache flushed")


def send(settings: Settings, start: int) -> None:
    """Sends all of it, with the release before which the pod is slow as a change.

    Args:
        settings: To whose topics it is sent.
        start: The first instant, epoch milliseconds.
    """
    samples, lines = list(_samples(start)), sorted(_lines(start), key=lambda line: line["@timestamp"])
    release = {"event.id": "ci/7", "@timestamp": start + 418 * MINUTE, "event.action": "deployment"}
    changes = [release | {"message": "cart 2.0", "host.name": ["shop/cart-*"]}]
    with KafkaWriter(settings.kafka.bootstrap or "") as writer:
        for name, records in ((topics.RAW_JSON, samples), (topics.LOGS_JSON, lines), (topics.CHANGES, changes)):
            keys = [record.get("event.id") or record["host.name"] for record in records]
            writer.write(settings.topic(name), [json.dumps(record) for record in records], keys)


def _samples(start: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(5)
    names = ("@timestamp", "host.name", "metric", "value", "kind")
    for half in range(2 * MINUTES):
        at, minute = start + half * MINUTE // 2 + 7_000, half / 2
        load = (1 + 0.2 * np.sin(minute / 60)) * np.exp(0.05 * rng.normal(size=12))
        rows = [(f"web-{k}", "cpu.util", 0.3 * load[k], "ratio") for k in (1, 2, 3)]
        rows += [(f"web-{k}", "load.1m", 2.0 * load[k + 2], "gauge") for k in (1, 2, 3)]
        rows += [(FULL, "disk.used_percent{path=/}", 40 + 55 * minute / MINUTES + 0.02 * rng.normal(), "gauge")]
        generation = int(minute // 120) if minute < 360 else 2
        for k, pod in enumerate(_PODS):
            rows += [(f"shop/cart-{_SETS[generation]}-{pod}", "http.latency", 0.05 * load[4 + k], "latency")]
        rows += [(CANARY, "http.latency", 0.2 * load[11], "latency")] if minute >= 420 else []
        for host, metric, value, kind in rows:
            if not _is_silent(host, minute):
                yield dict(zip(names, (at, host, metric, float(value), kind), strict=True))


def _lines(start: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(6)
    names = ("@timestamp", "host.name", "process.name", "log.syslog.severity.code", "message")
    for minute in range(MINUTES):
        for host in ("web-1", "web-2", "web-3"):
            rates = (0.0, 0.0, 0.0) if _is_silent(host, minute) else (6.0, 2.0, 1.0)
            rows = [
                ("app", 6, text.format(rng.integers(10**6)))
                for text, rate in zip(_TEXTS, rates, strict=True)
                for _ in range(rng.poisson(rate))
            ]
            if host == CHATTY and 250 <= minute < 256:
                rows += 20 * [("kernel", 3, "EXT4-fs error (device vda1): unable to read block 4711")]
            for row in rows:
                at = start + minute * MINUTE + int(rng.integers(MINUTE))
                yield dict(zip(names, (at, host, *row), strict=True))


def _is_silent(host: str, minute: float) -> bool:
    return host == SILENT and 440 <= minute < 470
