"""The embedded servers, really started: they serve, they survive what they should, and they leave nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from deploy.embedded import services, state_file
from deploy.embedded.elasticsearch import runtime_dir
from deploy.embedded.endpoints import Endpoints
from deploy.embedded.ports import HOST
from deploy.embedded.server_process import is_same_process
from deploy.progress import silent
from engine.kafka.admin import ensure_topics
from engine.spec.errors import NewnormalError
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.settings import Settings, load

pytestmark = pytest.mark.servers

OWNER = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, shells have it ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from deploy.embedded.services import embedded
from pipelines.contracts.settings import load
with embedded(load(state_dir=sys.argv[1]), elasticsearch=sys.argv[2] == "both"):
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def clean(settings: Settings) -> Iterator[Settings]:
    """Settings whose servers are stopped and whose data outside the state directory are removed at the end."""
    yield settings
    services.down(settings)
    shutil.rmtree(runtime_dir(settings.state / "elasticsearch"), ignore_errors=True)


def family(running: state_file.Running) -> list[tuple[int, float]]:
    """The supervisor and everything under it, as pid and start time."""
    supervisor = psutil.Process(running.pid)
    processes = [supervisor, *supervisor.children(recursive=True)]
    return [(process.pid, process.create_time()) for process in processes]


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.1)


def assert_all_gone(processes: list[tuple[int, float]]) -> None:
    wait_for(lambda: not any(is_same_process(pid, started) for pid, started in processes))


def running(settings: Settings) -> state_file.Running:
    found = services.status(settings)
    assert found is not None
    return found


@contextmanager
def owner(settings: Settings, what: str) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that has servers and goes on until it is killed."""
    command = [sys.executable, "-c", OWNER, str(settings.state), what]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        try:
            yield process
        finally:
            process.kill()


def write(endpoints: Endpoints) -> None:
    admin = AdminClient({"bootstrap.servers": endpoints.bootstrap})
    for created in admin.create_topics([NewTopic("kept", 1, 1)]).values():
        created.result(30)
    producer = Producer({"bootstrap.servers": endpoints.bootstrap})
    producer.produce("kept", b"a record")
    assert producer.flush(30) == 0
    with elasticsearch_client(endpoints.elasticsearch_url) as client:
        client.index(index="kept", id="1", document={"a": "document"}, refresh=True)


def assert_still_there(endpoints: Endpoints) -> None:
    consumer = Consumer({"bootstrap.servers": endpoints.bootstrap, "group.id": "test"})
    consumer.assign([TopicPartition("kept", 0, 0)])
    message = consumer.poll(60)
    consumer.close()
    assert message is not None
    assert message.value() == b"a record"
    with elasticsearch_client(endpoints.elasticsearch_url) as client:
        assert client.get(index="kept", id="1")["_source"] == {"a": "document"}


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipelines.cli.services", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)


def test_detached_servers_serve_are_joined_survive_kill_9_with_their_data_and_stop_when_told(clean: Settings) -> None:
    state = ["--state-dir", str(clean.state)]
    assert cli("status", *state).returncode == 3

    assert cli("up", *state).returncode == 0
    first = json.loads(cli("status", *state, "--json").stdout)
    assert first["owner"] is None
    with services.embedded(clean, say=silent) as endpoints:
        assert endpoints == running(clean).endpoints, "embedded() must use what runs"
        write(endpoints)
    processes = family(running(clean))
    assert len(processes) >= 4, "supervisor, Kafka, Elasticsearch's launcher and Elasticsearch"

    os.kill(first["pid"], signal.SIGKILL)
    assert_all_gone(processes)
    assert cli("status", *state).returncode == 3, "an old record must not be believed"

    assert cli("up", *state).returncode == 0
    assert_still_there(running(clean).endpoints)
    again = json.loads(cli("status", *state, "--json").stdout)
    places = [[(server["name"], server["address"]) for server in each["servers"]] for each in (first, again)]
    assert places[0] == places[1], "clients that wait for a server look for it where it was"
    processes = family(running(clean))
    assert cli("down", *state).stdout == "stopped\n"
    assert_all_gone(processes)
    assert "no server was running" in cli("down", *state).stdout


def test_nothing_is_left_when_the_owner_is_killed_and_taken_ports_are_avoided(clean: Settings) -> None:
    with ExitStack() as stack:
        for port in (9092, 9200):
            taken = stack.enter_context(socket.socket())
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):  # taken by another already: just as well
                taken.bind((HOST, port))
                taken.listen()
        with owner(clean, "both") as process:
            found = running(clean)
            assert found.owner == process.pid
            assert not found.endpoints.bootstrap.endswith(":9092")
            assert not found.endpoints.elasticsearch_url.endswith(":9200")
            processes = family(found)
            assert len(processes) >= 4
            process.kill()
            assert_all_gone(processes)
    assert services.status(clean) is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_when_the_owner_gets(number: signal.Signals, clean: Settings) -> None:
    with owner(clean, "kafka") as process:
        processes = family(running(clean))
        process.send_signal(number)
        assert_all_gone(processes)


def test_two_brokers_that_start_at_once_get_ports_of_their_own(tmp_path: Path) -> None:
    places = [load(state_dir=tmp_path / name) for name in ("one", "two")]
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        both = [pool.submit(stack.enter_context, owner(settings, "kafka")) for settings in places]
        assert all(each.result(120).poll() is None for each in both)
        addresses = [running(settings).endpoints.bootstrap for settings in places]
        assert len(set(addresses)) == 2
        ensure_topics(addresses[0], {"first": {}}, 1)
        found = [set(AdminClient({"bootstrap.servers": each}).list_topics(timeout=10).topics) for each in addresses]
        assert "first" in found[0] and "first" not in found[1], "each broker is one of its own"


def test_a_server_that_dies_is_started_again_on_the_same_address(clean: Settings) -> None:
    with services.embedded(clean, elasticsearch=False, say=silent) as endpoints:
        before = running(clean).servers[0]
        os.kill(before.pid, signal.SIGKILL)
        wait_for(lambda: running(clean).servers[0].pid != before.pid)
        after = running(clean).servers[0]
        assert replace(after, pid=before.pid, started=before.started, restarts=0) == before
        assert after.restarts == 1
        admin = AdminClient({"bootstrap.servers": endpoints.bootstrap})
        assert admin.list_topics(timeout=60).brokers

        with (
            pytest.raises(NewnormalError, match="SERVICES_PARTIAL") as partial,
            services.embedded(clean, say=silent),
        ):
            pass
        assert "do not include elasticsearch" in partial.value.what


def test_servers_elsewhere_are_used_and_never_stopped(endpoints: Endpoints, settings: Settings) -> None:
    elsewhere = endpoints.settings(settings)
    with services.embedded(elsewhere) as found:
        assert found == endpoints
    assert services.status(elsewhere) is None, "nothing of our own was started"
    with services.embedded(elsewhere) as found:
        assert found == endpoints


@pytest.mark.parametrize(
    ("setting", "address", "code"),
    [
        ("kafka.bootstrap", "127.0.0.1:1", "KAFKA_UNREACHABLE"),
        ("elasticsearch.url", "http://127.0.0.1:1", "ELASTICSEARCH_UNREACHABLE"),
    ],
)
def test_servers_elsewhere_that_do_not_answer_are_named(
    setting: str, address: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.embedded.external.TIMEOUT", 2.0)
    settings = load(state_dir=tmp_path, **{setting: address})
    wanted = {"kafka": setting.startswith("kafka"), "elasticsearch": setting.startswith("elasticsearch")}
    with pytest.raises(NewnormalError, match=code) as refused, services.embedded(settings, **wanted):
        pass
    assert address in refused.value.what
    assert refused.value.where == setting


def test_servers_that_do_not_fit_are_refused_by_the_command_without_a_stack_trace(tmp_path: Path) -> None:
    refused = cli("up", "--state-dir", str(tmp_path), "--kafka-heap", "1000g")
    assert refused.returncode == 1
    assert refused.stderr.startswith("MEMORY_SHORT")
    assert "Traceback" not in refused.stderr
