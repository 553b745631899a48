"""The embedded servers listen where `embedded.address` says, and can stay in the foreground as a container needs it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from deploy.embedded import services
from deploy.embedded.elasticsearch import Elasticsearch
from deploy.embedded.kafka import Kafka
from deploy.embedded.ports import HOST, PortClaims, is_free
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings, load

OTHER = "127.0.0.2"
"""Another address of the loopback interface, where nothing listens that listens at 127.0.0.1."""

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8 at once")


def test_by_default_only_this_machine_reaches_the_servers(tmp_path: Path) -> None:
    assert load(state_dir=tmp_path).embedded.address == HOST
    Kafka("java", "jars", str(tmp_path), "256m").launch({"port": 1, "controller": 2})
    properties = (tmp_path / "server.properties").read_text().splitlines()
    assert f"listeners=PLAINTEXT://{HOST}:1,CONTROLLER://{HOST}:2" in properties
    assert f"advertised.listeners=PLAINTEXT://{HOST}:1" in properties


def test_a_broker_that_listens_everywhere_tells_clients_the_name_of_its_machine(tmp_path: Path) -> None:
    kafka = Kafka("java", "jars", str(tmp_path), "256m", "0.0.0.0")
    kafka.launch({"port": 1, "controller": 2})
    properties = (tmp_path / "server.properties").read_text().splitlines()
    assert f"listeners=PLAINTEXT://0.0.0.0:1,CONTROLLER://{HOST}:2" in properties
    assert f"advertised.listeners=PLAINTEXT://{socket.gethostname()}:1" in properties
    assert kafka.address({"port": 1}) == f"{HOST}:1", "commands on this machine need no name"
    node = Elasticsearch("java", "home", str(tmp_path), "512m", "0.0.0.0")
    assert node.address({"port": 3}) == f"http://{HOST}:3"


@linux
@pytest.mark.servers
def test_clients_elsewhere_come_in_at_a_port_of_their_own_and_are_told_where_kafka_is_published(
    tmp_path: Path,
) -> None:
    with socket.create_server((OTHER, 0)) as elsewhere:
        published = f"{OTHER}:{elsewhere.getsockname()[1]}"
    settings = load(state_dir=tmp_path, **{"embedded.kafka_published": published})
    with services.embedded(settings, elasticsearch=False) as endpoints:
        (own,) = AdminClient({"bootstrap.servers": endpoints.bootstrap}).list_topics(timeout=60).brokers.values()
        assert f"{own.host}:{own.port}" == endpoints.bootstrap
        inner = json.loads((tmp_path / "ports.json").read_text())["kafka"]["published"]
        (told,) = AdminClient({"bootstrap.servers": f"{HOST}:{inner}"}).list_topics(timeout=60).brokers.values()
        assert f"{told.host}:{told.port}" == published


@pytest.mark.parametrize("wrong", ["localhost", "localhost:0", "a:1,b:2", "http://localhost:1"])
def test_an_address_of_kafka_that_is_none_is_refused(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(NewnormalError, match=r"embedded\.kafka_published"):
        load(state_dir=tmp_path, **{"embedded.kafka_published": wrong})


@pytest.mark.parametrize("wrong", ["kafka.example", "::1", "", "300.1.1.1"])
def test_an_address_that_is_none_is_refused(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(NewnormalError, match=r"embedded\.address"):
        load(state_dir=tmp_path, **{"embedded.address": wrong})


@linux
def test_a_port_that_is_taken_at_one_address_is_free_at_another(tmp_path: Path) -> None:
    with socket.create_server((OTHER, 0)) as other:
        port = int(other.getsockname()[1])
        assert not is_free(port, OTHER)
        assert PortClaims(tmp_path, OTHER).choose({"port": port}) != {"port": port}


@linux
@pytest.mark.servers
def test_a_broker_in_the_foreground_serves_at_its_address_and_ends_by_sigterm(settings: Settings) -> None:
    command = [sys.executable, "-m", "pipelines.cli.main", "services", "up", "--foreground", "--no-elasticsearch"]
    command += ["--address", OTHER, "--state-dir", str(settings.state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            table = "".join(process.stdout.readline() for _ in range(3))
            found = services.status(settings)
            assert found is not None and found.endpoints.bootstrap.startswith(f"{OTHER}:"), table
            metadata = AdminClient({"bootstrap.servers": found.endpoints.bootstrap}).list_topics(timeout=120)
            assert [broker.host for broker in metadata.brokers.values()] == [OTHER]
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0
            assert process.stdout.read().endswith("stopped\n")
        finally:
            process.kill()
    assert services.status(settings) is None
