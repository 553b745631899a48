"""The compose stack on a real Docker engine: it starts by one command, finds novelties, and stops.

`make test-stack` runs it, and nothing else does. Kafka and Elasticsearch run from our own image, so that no registry of
images is needed; ``STACK_IMAGES=official`` takes the official ones. ``BASE_IMAGE`` names another base for the
build.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from deploy.compose.containers import engine
from deploy.compose.project import Stack
from engine.spec.errors import NewnormalError
from pipelines.contracts.records.novelty import ALARM_KINDS

pytestmark = [pytest.mark.stack, pytest.mark.timeout(2700)]

OFFICIAL = os.environ.get("STACK_IMAGES") == "official"
PORTS = ("CONSOLE_PORT", "KAFKA_PORT", "ELASTICSEARCH_PORT", "KIBANA_PORT", "GRAFANA_PORT")
HOST = "127.0.0.1"


@dataclass
class Running:
    """The stack of this test: the variables that it was started with, and when."""

    variables: dict[str, str]
    began: float = 0.0
    measured: dict[str, float] = field(default_factory=dict)

    def newnormal(self, *arguments: str, seconds: float = 1500) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pipelines.cli.main", *arguments]
        return subprocess.run(
            command, env={**os.environ, **self.variables}, capture_output=True, text=True, timeout=seconds, check=False
        )

    def compose(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        stack = Stack(("*",), not OFFICIAL, self.variables)
        return stack.run(*arguments, capture_output=True, timeout=600)

    def ask(self, path: str, query: dict[str, Any] | None = None) -> dict[str, Any]:
        """Asks Elasticsearch at its published port."""
        url = f"http://{HOST}:{self.variables['ELASTICSEARCH_PORT']}/{path}"
        body = json.dumps(query).encode() if query else None
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as response:
            answer: dict[str, Any] = json.load(response)
            return answer

    def count(self, *filters: dict[str, Any]) -> int:
        """How many verdicts there are with these properties; 0 while no index can be read."""
        try:
            return int(self.ask("novelties/_count", {"query": {"bool": {"filter": list(filters)}}})["count"])
        except urllib.error.HTTPError as error:
            assert error.code in (404, 503), error
            return 0


def free_ports() -> dict[str, str]:
    sockets = [socket.create_server((HOST, 0)) for _ in PORTS]
    found = {name: str(each.getsockname()[1]) for name, each in zip(PORTS, sockets, strict=True)}
    for each in sockets:
        each.close()
    return found


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> float:
    """Waits until a condition is true; returns the seconds that this took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + seconds, f"{what}: not within {seconds:.0f} s"
        time.sleep(1)
    return time.monotonic() - began


@pytest.fixture(scope="module")
def stack() -> Iterator[Running]:
    """The stack with its agent, under a name and at ports of its own; it is removed at the end with its data."""
    try:
        with engine():
            pass
    except NewnormalError as error:
        pytest.skip(f"NOT TESTED: no Docker engine on this machine, so the stack was not started. {error}")
    started = Running({**free_ports(), "COMPOSE_PROJECT_NAME": f"newnormal-test-{os.getpid()}"})
    try:
        began = time.monotonic()
        done = started.newnormal("stack", "up", *([] if OFFICIAL else ["--embedded"]), "--build", "--timeout", "15m")
        assert done.returncode == 0, done.stdout + done.stderr
        print(done.stderr)
        started.measured["build and start, s"] = time.monotonic() - began
        yield started
    finally:
        started.newnormal("stack", "down", "--volumes", "--yes")
        print(json.dumps(started.measured))


def test_all_services_are_well_and_status_says_so(stack: Running) -> None:
    done = stack.newnormal("stack", "status", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    services = {each["service"]: each for each in json.loads(done.stdout)}
    assert set(services) == {"kafka", "elasticsearch", "pipeline", "agent"}
    assert [each["health"] for name, each in services.items() if name != "agent"] == ["healthy"] * 3


def test_containers_do_not_run_as_root_and_cannot_write_to_their_image(stack: Running) -> None:
    done = stack.compose("exec", "-T", "pipeline", "sh", "-c", "id -u; touch /opt/newnormal/x")
    assert done.stdout.strip() not in ("", "0")
    assert "Read-only file system" in done.stderr


def test_metrics_of_the_machine_are_judged_and_stored_in_elasticsearch(stack: Running) -> None:
    agents = {"term": {"host.name": "machine" if not OFFICIAL else socket.gethostname()}}
    stack.measured["first verdict on the machine, s"] = wait_for(
        lambda: stack.count(agents) > 0, 600, "a verdict on a metric of this machine"
    )


def test_an_incident_of_a_simulated_site_is_found(stack: Running) -> None:
    load = ["simulate", "--hosts", "2", "--vms", "4", "--backfill", "30m", "--duration", "0s"]
    done = stack.compose("run", "--rm", "--no-deps", "site", *load)
    assert done.returncode == 0, done.stderr
    news = {"terms": {"kind": list(ALARM_KINDS)}}
    stack.measured["first novelty of the site, s"] = wait_for(lambda: stack.count(news) > 0, 900, "a novelty")


def test_a_pipeline_that_was_killed_goes_on_where_it_was(stack: Running) -> None:
    before = stack.count()
    assert stack.compose("kill", "pipeline").returncode == 0
    down = stack.newnormal("stack", "status")
    assert down.returncode == 1 and "exited with code 137" in down.stdout
    again = stack.newnormal("stack", "up", *([] if OFFICIAL else ["--embedded"]), "--no-build")
    assert again.returncode == 0, again.stderr
    wait_for(lambda: stack.count() > before, 600, "further verdicts after the restart")


def test_logs_show_what_a_service_has_written_and_down_ends_all(stack: Running) -> None:
    shown = stack.newnormal("stack", "logs", "pipeline", "--tail", "20")
    assert shown.returncode == 0 and "pipeline" in shown.stdout
    done = stack.newnormal("stack", "down", "--volumes", "--yes")
    assert done.returncode == 0, done.stderr
    gone = stack.newnormal("stack", "status")
    assert (gone.returncode, gone.stdout.strip()) == (3, "the stack does not run")
