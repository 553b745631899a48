"""The compose stack on a real Docker engine: it starts by one command, finds novelties, and stops.

`make test-stack` runs the tests of this folder, and nothing else does. Kafka and Elasticsearch run from our own image,
so that no registry of images is needed; ``STACK_IMAGES=official`` takes the official ones. ``BASE_IMAGE`` names
another base for the build.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import docker
import httpx
import pytest

from pipelines.contracts.records.novelty import ALARM_KINDS
from tests.stack.running import EMBEDDED, Running, stack_of_its_own, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]

NOVELTY_SECONDS = 180
"""After so long, a stack that is up has found a novelty in what its load profile sends."""


@pytest.fixture(scope="module")
def stack(image: docker.models.images.Image) -> Iterator[Running]:
    """The stack with its agent, as `newnormal stack up` starts it."""
    with stack_of_its_own(IMAGE=image.tags[0]) as started:
        began = time.monotonic()
        done = started.newnormal("stack", "up", *EMBEDDED, "--no-build", "--timeout", "5m")
        assert done.returncode == 0, done.stdout + done.stderr
        print(f"{done.stderr}all services are well after {time.monotonic() - began:.0f} s")
        yield started


def test_all_services_are_well_and_status_says_so(stack: Running) -> None:
    done = stack.newnormal("stack", "status", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    services = {each["service"]: each for each in json.loads(done.stdout)}
    assert set(services) == {"passwords", "kafka", "elasticsearch", "pipeline", "agent"}
    assert [services[name]["health"] for name in ("kafka", "elasticsearch", "pipeline")] == ["healthy"] * 3


def test_elasticsearch_answers_nobody_without_the_generated_password(stack: Running) -> None:
    url = str(stack.endpoints.elasticsearch_url)
    for strange in ({}, {"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert httpx.post(f"{url}/novelties/_close", headers=strange, trust_env=False).status_code == 401
    shown = stack.compose("exec", "-T", "agent", "ls", "/run/passwords")
    assert shown.returncode != 0, "only those who need the passwords see them"


def test_containers_do_not_run_as_root_and_cannot_write_to_their_image(stack: Running) -> None:
    done = stack.compose("exec", "-T", "pipeline", "sh", "-c", "id -u; touch /opt/newnormal/x")
    assert done.stdout.strip() not in ("", "0")
    assert "Read-only file system" in done.stderr


def test_novelties_are_found_and_the_metrics_of_this_machine_are_judged(stack: Running) -> None:
    began = time.monotonic()
    assert stack.compose("up", "--detach", "--no-build", "site").returncode == 0
    news, machine = {"terms": {"kind": list(ALARM_KINDS)}}, {"term": {"host.name": socket.gethostname()}}
    wait_for(lambda: stack.count(news) > 0, NOVELTY_SECONDS, "a novelty")
    print(f"the first novelty came {time.monotonic() - began:.0f} s after the load profile was started")
    wait_for(lambda: stack.count(machine) > 0, 600, "a verdict on a metric of this machine")
    print(f"verdicts on this machine after {time.monotonic() - began:.0f} s")


def test_a_service_that_has_ended_is_named_and_started_again(stack: Running) -> None:
    assert stack.compose("kill", "agent").returncode == 0
    down = stack.newnormal("stack", "status")
    assert down.returncode == 1 and "exited with code 137" in down.stdout
    again = stack.newnormal("stack", "up", *EMBEDDED, "--no-build")
    assert again.returncode == 0, again.stderr
    assert stack.newnormal("stack", "status").returncode == 0


def test_logs_show_what_a_service_has_written_and_down_ends_all(stack: Running) -> None:
    shown = stack.newnormal("stack", "logs", "pipeline", "--tail", "20")
    assert shown.returncode == 0 and "pipeline" in shown.stdout
    done = stack.newnormal("stack", "down", "--volumes", "--yes")
    assert done.returncode == 0, done.stderr
    gone = stack.newnormal("stack", "status")
    assert (gone.returncode, gone.stdout.strip()) == (3, "the stack does not run")
