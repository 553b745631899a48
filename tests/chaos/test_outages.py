"""Kafka and Elasticsearch are restarted, hung and killed under a running pipeline, which says so and goes on."""

from __future__ import annotations

import signal
import time

import pytest

from pipelines.contracts import topics
from tests.chaos.faults import Servers, Silence
from tests.chaos.feed import HOSTS, METRICS, WINDOW, Feed
from tests.chaos.verify import verify
from tests.chaos.watching import health, lags, results, stored
from tests.integration.conftest import Pipeline

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

FIRST_RESULT_SECONDS = 20
END_SECONDS = 15
SILENCE_SECONDS = 15


def test_restarts_hangs_and_kills_lose_double_and_change_nothing(abused: tuple[Pipeline, Servers]) -> None:
    pipeline, servers = abused
    settings = pipeline.settings
    begin = (int(time.time() * 1000) - 3 * 3_600_000) // WINDOW * WINDOW
    feed = Feed(settings.kafka.bootstrap or "", settings.topic(topics.RAW_JSON), begin)
    feed.start()
    pipeline.start()
    pipeline.wait("the first documents", lambda: len(pipeline.documents()) > HOSTS * METRICS)
    pipeline.wait("a healthy answer", lambda: health(pipeline)[0] == 200, 60)
    silence = Silence(pipeline.log)

    with silence.watched(lambda: health(pipeline)[0] == 503):
        # both servers are shut down and come back, as after a reboot
        servers.down()
        pipeline.wait("503", lambda: health(pipeline)[0] == 503, 30)
        pipeline.wait("both named", lambda: all(s in health(pipeline)[1] for s in ("kafka", "elasticsearch")), 30)
        assert set(lags(pipeline)) == {None}, "an unknown lag is not 0"
        time.sleep(20)
        servers.up()
        before = results(pipeline)
        pipeline.wait("a result", lambda: results(pipeline) > before, FIRST_RESULT_SECONDS)
        pipeline.wait("health", lambda: health(pipeline)[0] == 200, 60)

        # a broker that hangs keeps its connections open: nothing is refused, nothing is answered
        servers.hang("kafka", 25)
        before = results(pipeline)
        pipeline.wait("a result", lambda: results(pipeline) > before, FIRST_RESULT_SECONDS)

        # a broker that dies while transactions are open; its supervisor starts it again at once
        servers.kill("kafka")
        pipeline.wait("Kafka", lambda: health(pipeline)[0] == 200 and results(pipeline) > 0, 60)
        before = results(pipeline)
        pipeline.wait("a result", lambda: results(pipeline) > before, FIRST_RESULT_SECONDS)

        servers.hang("elasticsearch", 12)
        servers.kill("elasticsearch")
        pipeline.wait("health", lambda: health(pipeline)[0] == 200, 120)
    assert silence.longest <= SILENCE_SECONDS, f"the log said nothing for {silence.longest:.0f} s"
    assert "Traceback" not in pipeline.log.read_text()

    # Ctrl-C ends it while Kafka hangs and while Elasticsearch does
    servers.freeze("kafka", "elasticsearch")
    assert pipeline.process
    began = time.monotonic()
    pipeline.process.send_signal(signal.SIGINT)
    pipeline.process.wait(60)
    assert time.monotonic() - began <= END_SECONDS
    servers.thaw("kafka", "elasticsearch")
    assert "Traceback" not in pipeline.log.read_text()

    end = feed.finish()
    pipeline.start()
    count = (end - begin) // WINDOW * HOSTS * METRICS
    pipeline.wait("all documents", lambda: stored(pipeline, end) >= count)
    counted = verify(pipeline, begin, end)
    assert counted["documents"] == count
    pipeline.stop()
