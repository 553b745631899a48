"""One's own machines in the first minute: remote writes come in at the gateway, and the console shows what is known."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pyarrow as pa
import pytest

from engine.formats.columnar import decode
from pipelines.contracts import topics
from pipelines.contracts.records import Features
from tests.integration.conftest import Pipeline
from tests.pipelines.formats.remote_writes import request, series

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]

MACHINES = ("web-1", "web-2")
HEADERS = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
CPU, SENT = "cpu{port=9100}", "sent_bytes_total{port=9100}"


@contextmanager
def sending(gateway: str) -> Iterator[None]:
    """Sends a remote write a second of two machines, each with a gauge that alternates and a counter, until the end."""
    ended = threading.Event()

    def send() -> None:
        n, begun = 0, time.time()
        while not ended.wait(1):
            at, n = int(time.time() * 1000), n + 1
            told = [
                series({"__name__": name, "instance": f"{machine}:9100"}, (value, at))
                for machine in MACHINES
                for name, value in (("cpu", 20.0 + n % 3), ("sent_bytes_total", 1e9 + 5e6 * (at / 1000 - begun)))
            ]
            body = pa.compress(request(*told), codec="snappy", asbytes=True)
            httpx.post(f"{gateway}/api/v1/write", content=body, headers=HEADERS, timeout=30).raise_for_status()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_machines_are_listed_and_their_series_have_value_and_band_in_the_first_minute_without_another_command(
    pipeline: Pipeline,
) -> None:
    del pipeline.environment["NEWNORMAL_DETECTOR__EMIT"]  # quiet windows are not stored
    pipeline.start()
    gateway = pipeline.spawn("gateway", "--port", "0")
    try:
        address, gate = (
            said(pipeline, r"console\b.*?(http://127\.0\.0\.1:\d+)"),
            said(pipeline, r"gateway at (http\S+)"),
        )
        pipeline.wait("the jobs to run", lambda: pipeline.log.read_text().count("job started") >= 7)

        def asked(path: str, **query: str) -> dict[str, Any]:
            return dict(httpx.get(address + path, params=query, timeout=30).json())

        def row(metric: str = CPU) -> dict[str, Any]:
            return next(
                (each for each in asked("/api/machine", name="web-1")["series"] if each["metric"] == metric), {}
            )

        with sending(gate):
            began = time.monotonic()
            took = {}
            pipeline.wait("both machines to be suggested", lambda: asked("/api/entities")["entities"] == [*MACHINES])
            took["listed"] = time.monotonic() - began
            site = asked("/api/site")
            assert (site["machines"], site["missing"]) == (2, "")
            assert [(each["name"], each["needed"]) for each in site["learning"]] == [(name, 8) for name in MACHINES]
            assert 1 <= site["learning"][0]["windows"] < 8
            pipeline.wait("a value", lambda: row().get("actual") is not None)
            took["value"] = time.monotonic() - began
            pipeline.wait("a band", lambda: row().get("upper") is not None)
            took["band"] = time.monotonic() - began
            shown = row()
            assert 20.0 <= shown["actual"] <= 22.0 and shown["lower"] < shown["upper"]
            assert (shown["kind"], shown["needed"]) == ("learning", 8)
            assert row(SENT)["metric_kind"] == "counter"
            assert asked("/api/series/page", entity="web-1", metric=CPU)["series"][-1]["actual"] is not None
            pipeline.wait("both machines to be learned", lambda: asked("/api/site")["learning"] == [])
            assert row()["kind"] == "normal"
            assert row(SENT)["actual"] == pytest.approx(5e6, rel=0.2), "what a counter counts by the second"
            page = asked("/api/series/page", entity="web-1", metric=CPU)
            assert not page["novelties"] and page["series"][-1]["upper"] is not None
        print("seconds from the first sample on:", {name: round(seconds, 1) for name, seconds in took.items()})
        assert took["band"] < 120, "a minute, and as much again for a machine that runs other tests"
        pipeline.wait("the newest window to be read", lambda: asked("/api/site")["last"] == newest(pipeline))
    finally:
        gateway.terminate()
        gateway.wait(30)
    pipeline.stop()
    alone = pipeline.spawn("console")
    pipeline.process = alone  # so that the fixture ends it
    address = said(pipeline, r"console at (http\S+)")
    pipeline.wait("a console without a pipeline to know the machines", lambda: asked("/api/site")["machines"] == 2, 30)
    assert asked("/api/site")["last"] == newest(pipeline), "no data since"


def said(pipeline: Pipeline, pattern: str) -> str:
    """What the last match of a pattern in the log captures; it is waited for."""
    found: list[str] = []

    def there() -> bool:
        found.extend(re.findall(pattern, pipeline.log.read_text()))
        return bool(found)

    pipeline.wait(pattern, there)
    return found[-1]


def newest(pipeline: Pipeline) -> int:
    """The end of the newest window in the topic."""
    tables = [decode(each.value() or b"", Features.arrow_schema())[0] for each in pipeline.read(topics.FEATURES)]
    return max(end for table in tables for end in table.column("window_end").to_pylist())
