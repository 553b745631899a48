"""The state view with many series: how fast it reads, and how fast it answers while its states are updated."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import orjson
from confluent_kafka import Producer

from deploy.embedded.services import embedded
from engine.columns.partitioning import crc32
from engine.kafka.admin import ensure_topics
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings, load
from pipelines.evaluation import show
from pipelines.query.view.answers import Answers
from pipelines.query.view.database import Database
from pipelines.query.view.detector_topics import TOPICS
from pipelines.query.view.follower import Follower
from pipelines.query.view.part import Part
from tests.benchmarks.queries import say

_METRICS = 20
_GETS = 20_000
_CATCH_UP = 0.01
"""How often the view's process that answers catches up, seconds."""

_REQUESTS = 50
"""Requests a second over HTTP."""


def run(
    series: int = 1_000_000,
    rate: int = 20_000,
    seconds: int = 20,
    kafka: str | None = None,
    state_dir: Path | None = None,
) -> dict[str, Any]:
    """Measures, prints a table, returns the figures."""
    settings = load(**{"kafka.bootstrap": kafka, "state_dir": state_dir})
    with embedded(settings, elasticsearch=False) as servers:
        own = servers.settings(settings).model_copy(update={"namespace": f"view-{int(time.time())}."})
        wanted = {own.topic(name): topics.config(name) for name in TOPICS}
        ensure_topics(own.kafka.bootstrap or "", wanted, own.kafka.partitions, 1)
        say(f"writing the states of {series:,} series")
        _write(own, series, range(series), None)
        figures: dict[str, Any] = {"series": series, "updates_per_second": rate}
        follower = Follower(own)
        view = Answers(follower.database, own, follower.partitions, follower.part)
        began = time.perf_counter()
        while view.age()["messages_behind"]:
            follower.step()
        figures["read_per_second"] = round(series / (time.perf_counter() - began))
        say("asking in process")
        figures["get_ms"] = _percentiles(_gets(view, series))
        follower.close()
        figures |= _over_http(own, series, rate, seconds)
    rows = [[name, str(value)] for name, value in figures.items()]
    show.table(f"State view, {series:,} series", ["", ""], rows)
    return figures


def _name(number: int) -> tuple[str, str]:
    return f"host-{number // _METRICS}", f"metric.{number % _METRICS}"


def _write(settings: Settings, series: int, numbers: Any, rate: int | None, stop: threading.Event | None = None) -> int:
    """Writes states; with a rate so many a second, until ``stop``; returns their number."""
    producer = Producer(
        {"bootstrap.servers": settings.kafka.bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 500_000}
    )
    topic, began, count = settings.topic(topics.STATE), time.perf_counter(), 0
    for number in numbers:
        entity, metric = _name(number)
        state = {"host.name": entity, "metric": metric, "window_start": count, "@timestamp": count + 10_000}
        state |= {"kind": "normal", "record_score": 1.5, "actual": 50.1, "typical": 50.0, "lower": 43.2, "upper": 57.1}
        state |= {"values": 1_000, "regime": 0, "regimes": [50.0]}
        key = orjson.dumps({"entity": entity, "metric": metric})
        place = crc32(entity) % settings.kafka.partitions
        while True:
            try:
                producer.produce(topic, orjson.dumps(state), key=key, partition=place)
                break
            except BufferError:
                producer.poll(0.1)
        count += 1
        if count % 1_000 == 0:
            producer.poll(0)
            if stop and stop.is_set():
                break
            if rate:
                time.sleep(max(0.0, count / rate - (time.perf_counter() - began)))
    producer.flush()
    return count


@contextmanager
def _updated(settings: Settings, series: int, rate: int) -> Iterator[list[int]]:
    """Updates states of random series meanwhile, in a process of its own; gives the number of updates at the end."""
    code = (
        "import sys, pickle, threading, numpy as np; from tests.benchmarks.view import _write; "
        "settings, series, rate = pickle.load(sys.stdin.buffer); stop = threading.Event(); "
        "threading.Thread(target=lambda: (sys.stdin.buffer.read(), stop.set()), daemon=True).start(); "
        "rng = np.random.default_rng(3); "
        "numbers = (int(n) for _ in range(10**6) for n in rng.integers(series, size=1000)); "
        "print(_write(settings, series, numbers, rate, stop))"
    )

    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin and process.stdout
    process.stdin.write(pickle.dumps((settings, series, rate)))
    process.stdin.flush()
    count: list[int] = []
    try:
        yield count
    finally:
        process.stdin.close()
        count.append(int(process.stdout.read() or 0))
        process.wait()


def _timed(ask: Callable[[int], object], numbers: Any, every: float = 0.0) -> np.ndarray:
    took, began = [], time.perf_counter()
    for count, number in enumerate(numbers):
        if every:
            time.sleep(max(0.0, began + count * every - time.perf_counter()))
        start = began + count * every if every else time.perf_counter()  # an answer that waits for another waits too
        ask(int(number))
        took.append(time.perf_counter() - start)
    return np.array(took) * 1e3


def _gets(view: Answers, series: int) -> np.ndarray:
    return _timed(lambda n: view.state(*_name(n)) or 1 / 0, np.random.default_rng(1).integers(series, size=_GETS))


def _percentiles(milliseconds: np.ndarray) -> dict[str, float]:
    return {f"p{p}": round(float(np.percentile(milliseconds, p)), 3) for p in (50, 99)}


def _over_http(settings: Settings, series: int, rate: int, seconds: int) -> dict[str, Any]:
    """Asks a process of `newnormal view`; it goes on with the folder that the view in this process has left."""
    environment = {"NAMESPACE": settings.namespace, "STATE_DIR": str(settings.state_dir), "VIEW__PORT": "0"}
    environment["KAFKA__BOOTSTRAP"] = settings.kafka.bootstrap or ""
    command = [sys.executable, "-m", "pipelines.cli.main", "view", "--as", "v1"]
    env = os.environ | {f"NEWNORMAL_{name}": value for name, value in environment.items()}
    began = time.perf_counter()
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        url = process.stdout.readline().split(" at ")[1].split()[0]
        started = time.perf_counter() - began
        numbers = np.random.default_rng(2).integers(series, size=_REQUESTS * seconds)
        with httpx.Client(base_url=url) as client, _updated(settings, series, rate) as updates:
            time.sleep(3)
            before, start = client.get("/health").json()["messages"], time.perf_counter()

            def ask(number: int) -> None:
                client.get("/state/{}/{}".format(*_name(number))).raise_for_status()

            took = _timed(ask, numbers, 1 / _REQUESTS)
            health = client.get("/health").json()
            read = (health["messages"] - before) / (time.perf_counter() - start)
            in_process, catching_up = _beside(settings, series)
        assert updates
        return {
            "restart_s": round(started, 2),
            "http_ms_while_updated": _percentiles(took),
            "read_per_second_meanwhile": round(read),
            "messages_behind_at_the_end": health["age"]["messages_behind"],
            "get_ms_while_updated": in_process,
            "catch_up_ms": catching_up,
            "load": round(os.getloadavg()[0], 1),
        }
    finally:
        process.terminate()
        process.wait(30)


def _beside(settings: Settings, series: int) -> tuple[dict[str, float], dict[str, float]]:
    """Asks in this process while the other one writes: the times of a get, and of seeing what was written since."""
    folder = settings.folder("view") / "part-1-of-1"
    database = Database(folder / "data", folder / "benchmark")
    view, gets, caught = Answers(database, settings, settings.kafka.partitions, Part()), [], []
    for number in np.random.default_rng(1).integers(series, size=(200, _GETS // 200)):
        caught.append(_timed(lambda _: database.catch_up(), [0]))
        gets.append(_timed(lambda n: view.state(*_name(n)) or 1 / 0, number))
        time.sleep(_CATCH_UP)
    database.close()
    return _percentiles(np.concatenate(gets)), _percentiles(np.concatenate(caught))
