"""Containers of the stack are killed, paused and cut off under load, and nothing is lost, doubled or different.

``STACK_FAULTS`` says how many faults are done; by default twelve: each kind to each service.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from engine.spec.duration import duration_ms
from pipelines.contracts.version_names import FIRST
from tests.chaos.runs.comparison import REFERENCE, make_reference, site
from tests.chaos.runs.conductor import Results
from tests.chaos.runs.load import Load
from tests.chaos.runs.scenario import Scenario
from tests.chaos.runs.verifier.verify import verify
from tests.stack.container_faults import FAULTS, Victim, can_blackhole
from tests.stack.running import Running, stack_of_its_own, wait_for

SERVICES = ("kafka", "elasticsearch", "pipeline")
COUNT = int(os.environ.get("STACK_FAULTS", len(SERVICES) * len(FAULTS)))
pytestmark = [pytest.mark.stack, pytest.mark.timeout(600 + 90 * COUNT)]
LASTS_SECONDS, RECOVERY_SECONDS = 8.0, 240.0
LATENESS = "3m"
SETTINGS = {
    "NEWNORMAL_DETECTOR__EMIT": "all",  # the verifier wants a verdict on each window
    "NEWNORMAL_WINDOW__ALLOWED_LATENESS": LATENESS,
    "NEWNORMAL_ENGINE__MAX_MESSAGES": "2000",
}


def planned(count: int) -> list[tuple[str, str]]:
    """The kinds of the first faults and their services, which take turns: after twelve, each kind was done to each."""
    kinds = tuple(FAULTS)
    return [(kinds[n % len(kinds)], SERVICES[n % len(SERVICES)]) for n in range(count)]


def seconds_to_next(results: Results) -> float:
    """Waits until Elasticsearch answers, then for a result that it does not have yet; says how long that took."""
    answers = len(results.course)
    answered = wait_for(lambda: results.look() >= 0 and len(results.course) > answers, RECOVERY_SECONDS, "an answer")
    before = results.last
    return answered + wait_for(lambda: results.look() > before, RECOVERY_SECONDS, "a new result")


@pytest.fixture(scope="module")
def stack(image: docker.models.images.Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Kafka, Elasticsearch and the pipeline, without an agent: its messages of today would make the load too late."""
    settings = tmp_path_factory.mktemp("stack") / "settings.env"
    settings.write_text("".join(f"{name}={value}\n" for name, value in SETTINGS.items()))
    with stack_of_its_own(IMAGE=image.tags[0], SETTINGS_FILE=str(settings)) as started:
        done = started.compose("up", "--detach", "--wait", "--no-build", "pipeline")
        assert done.returncode == 0, done.stderr
        yield started


def test_nothing_is_lost_doubled_or_different_when_containers_are_killed_paused_and_cut_off(
    engine: docker.DockerClient, stack: Running, tmp_path: Path
) -> None:
    settings = stack.settings(tmp_path, **{"window.allowed_lateness": LATENESS})
    window = duration_ms(settings.window.size)
    begin = (int(time.time() * 1000) - duration_ms("8h")) // window * window
    make_reference(settings)
    results = Results(settings.elasticsearch.url or "", f"{settings.alias}-2*")
    with Load(str(settings.kafka.bootstrap), Scenario(seed=1, begin=begin), speed=5.0) as load:
        first = wait_for(lambda: results.look() > 0, RECOVERY_SECONDS, "the first result")
        print(f"first result after {first:.0f} s")
        faults = 0
        for kind, service in planned(COUNT):
            if kind == "blackhole" and not can_blackhole():
                print(f"NOT TRIED: {kind} {service}, as that takes root, nsenter and iptables")
                continue
            with FAULTS[kind](Victim(engine, stack.name, service)):
                time.sleep(LASTS_SECONDS)
            faults += 1
            print(f"{kind} {service}: a new result after {seconds_to_next(results):.1f} s")
        until = load.finish(window)
    assert stack.compose("stop", "pipeline").returncode == 0
    for version in (FIRST, REFERENCE):
        command = ["run", "--rm", "--no-deps", "pipeline", "run", "--as", version, "--until", "now"]
        done = stack.compose(*command, seconds=300)
        assert done.returncode == 0, done.stdout + done.stderr
    tally = verify(site(settings, until))
    assert not tally.findings, "\n".join(map(str, tally.findings))
    print(f"0 lost, 0 doubled, 0 different after {faults} faults; compared: {tally.compared}")
    assert tally.compared[f"windows of metrics of {FIRST}"] > 1_000
    assert (
        tally.compared[f"documents of {FIRST}"] == tally.compared[f"verdicts of the reference run of {FIRST}"] > 1_000
    )
