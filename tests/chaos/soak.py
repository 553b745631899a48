"""A soak: random faults of Kafka and Elasticsearch under a running pipeline, then the independent count.

    python -m tests.chaos.soak --minutes 20 --faults 10 --seed 1

Needs no other servers; takes what `make demo` takes. Ends with 1 if the count is wrong or the log fell silent.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from deploy.embedded import services
from deploy.embedded.elasticsearch import runtime_dir
from engine.kafka.admin import ensure_topics
from pipelines.contracts import topics
from pipelines.contracts.settings import load
from tests.chaos.faults import Servers, Silence
from tests.chaos.feed import HOSTS, METRICS, WINDOW, Feed
from tests.chaos.verify import verify
from tests.chaos.watching import health, stored
from tests.integration.conftest import Pipeline

SILENCE_SECONDS = 15.0
_CALM_SECONDS = 15.0
Fault = tuple[str, Callable[[], None]]
"""What it is called, and what does it."""


def faults(servers: Servers, rng: random.Random, count: int) -> list[Fault]:
    """So many faults in random order, each kind of them where ``count`` allows."""
    kinds: list[Fault] = [
        ("both restart", lambda: servers.restart(rng.uniform(1, 45))),
        ("Kafka hangs", lambda: servers.hang("kafka", rng.uniform(2, 60))),
        ("Kafka is killed", lambda: servers.kill("kafka")),
        ("Elasticsearch hangs", lambda: servers.hang("elasticsearch", rng.uniform(2, 40))),
        ("Elasticsearch is killed", lambda: servers.kill("elasticsearch")),
    ]
    chosen = (kinds * (count // len(kinds) + 1))[:count]
    rng.shuffle(chosen)
    return chosen


def main() -> None:
    """Runs the soak and prints what was counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0, help="how long faults are done")
    parser.add_argument("--faults", type=int, default=10, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of the faults' order and lengths")
    parser.add_argument("--absent", type=float, default=0.0, help="seconds of one long absence of both, first of all")
    options = parser.parse_args()
    state = Path(tempfile.mkdtemp(prefix="newnormal-soak-"))
    servers = Servers(load(state_dir=state))
    try:
        rng = random.Random(options.seed)
        chosen = faults(servers, rng, options.faults)
        if options.absent:
            chosen.insert(0, (f"both absent for {options.absent:g} s", lambda: servers.restart(options.absent)))
        soak(servers, state, options.minutes, chosen, rng)
    finally:
        servers.down()
        shutil.rmtree(runtime_dir(state / "elasticsearch"), ignore_errors=True)
    shutil.rmtree(state)


def soak(servers: Servers, state: Path, minutes: float, chosen: list[Fault], rng: random.Random) -> None:
    """Feeds, does the faults, and compares at the end; what is wrong leaves the state directory for a look."""
    servers.up()
    found = services.status(servers.settings)
    assert found is not None
    settings = found.endpoints.settings(servers.settings)
    ensure_topics(
        found.endpoints.bootstrap,
        {settings.topic(name): config for name, config in topics.configs().items()},
        settings.kafka.partitions,
    )
    environment = os.environ | {"NEWNORMAL_STATE_DIR": str(state), "NEWNORMAL_CONSOLE__PORT": "0"}
    pipeline = Pipeline(settings, state / "driver.log", environment)
    begin = (int(time.time() * 1000) - 6 * 3_600_000) // WINDOW * WINDOW
    feed = Feed(settings.kafka.bootstrap or "", settings.topic(topics.RAW_JSON), begin)
    feed.start()
    try:
        disturb(pipeline, minutes, chosen, rng)
        end = feed.finish()
        expected = (end - begin) // WINDOW * HOSTS * METRICS
        pipeline.wait("all documents", lambda: stored(pipeline, end) >= expected, 600)
        print(json.dumps(verify(pipeline, begin, end)))
    finally:
        pipeline.stop()
    assert "Traceback" not in pipeline.log.read_text()


def disturb(pipeline: Pipeline, minutes: float, chosen: list[Fault], rng: random.Random) -> None:
    """Does the faults, one after another, each when the pipeline has come back from the last."""
    pipeline.start()
    pipeline.wait("health", lambda: health(pipeline)[0] == 200 and len(pipeline.documents()) > 0, 300)
    silence, began, each = Silence(pipeline.log), time.monotonic(), minutes * 60 / max(1, len(chosen))
    with silence.watched(lambda: health(pipeline)[0] == 503):
        for number, (what, do) in enumerate(chosen):
            print(f"{time.monotonic() - began:6.0f} s  {what}", flush=True)
            do()
            pipeline.wait(f"health after: {what}", lambda: health(pipeline)[0] == 200, 240)
            print(f"{time.monotonic() - began:6.0f} s  healthy", flush=True)
            time.sleep(max(rng.uniform(0, _CALM_SECONDS), began + (number + 1) * each - time.monotonic()))
    print(f"longest silence of the log while something was away: {silence.longest:.1f} s")
    assert silence.longest <= SILENCE_SECONDS, f"the log said nothing for {silence.longest:.0f} s while nothing moved"


if __name__ == "__main__":
    main()
