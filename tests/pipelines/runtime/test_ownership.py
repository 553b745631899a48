"""One process a job: on one machine by a lock, across machines by a membership that Kafka keeps."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.embedded.endpoints import Endpoints
from deploy.embedded.ports import HOST
from engine.kafka.admin import ensure_topics
from engine.kafka.content import values
from engine.kafka.exactly_once import TransactionalWriter
from engine.runtime.messages import Outgoing
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from pipelines.runtime.driver import Driver
from pipelines.runtime.ownership import Ownership
from pipelines.runtime.watch import watching

pytestmark = pytest.mark.servers

HOLDER = """
import socket, sys, time
bootstrap, namespace, folder, host, jobs = sys.argv[1:]
socket.gethostname = lambda: host or "here"
from pathlib import Path
from pipelines.runtime.ownership import Ownership
with Ownership(bootstrap, namespace, namespace + "ledger", Path(folder), jobs.split(","), False) as held:
    held.check_others()
    print("holds", flush=True)
    time.sleep(600)
"""


@contextmanager
def holder(endpoints: Endpoints, namespace: str, folder: Path, jobs: str, host: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has jobs, on a machine of that name."""
    command = [sys.executable, "-c", HOLDER, endpoints.bootstrap, namespace, str(folder), host, jobs]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert "holds\n" in iter(process.stdout.readline, ""), "the other process did not get the jobs"
            yield process
        finally:
            process.kill()


@pytest.fixture
def namespace(endpoints: Endpoints, request: pytest.FixtureRequest) -> str:
    name = f"own{abs(hash((request.node.name, time.time_ns()))) % 10**9}."
    ensure_topics(endpoints.bootstrap, {f"{name}ledger": {}, f"{name}out": {}}, 1)
    return name


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.runtime.ownership.socket.gethostname", lambda: "here")


def mine(endpoints: Endpoints, namespace: str, folder: Path, *jobs: str, take_over: bool = False) -> Ownership:
    return Ownership(endpoints.bootstrap, namespace, f"{namespace}ledger", folder, jobs, take_over)


@pytest.mark.usefixtures("here")
def test_a_second_process_is_refused_with_the_pid_of_the_first_unless_it_takes_over(
    endpoints: Endpoints, namespace: str, tmp_path: Path
) -> None:
    with holder(endpoints, namespace, tmp_path, "detector,sink", "here") as first:
        with mine(endpoints, namespace, tmp_path, "extractor"):
            pass  # another job of the same directory is nobody's
        with (
            pytest.raises(NewnormalError, match="ALREADY_RUNNING") as refused,
            mine(endpoints, namespace, tmp_path, "sink"),
        ):
            pass
        assert str(first.pid) in refused.value.what
        assert "--take-over" in refused.value.accepted
        with mine(endpoints, namespace, tmp_path, "sink", take_over=True):
            assert first.wait(10) == -signal.SIGTERM


@pytest.mark.usefixtures("here")
def test_a_start_that_is_refused_opens_no_console_and_names_no_empty_namespace(
    endpoints: Endpoints, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = int(probe.getsockname()[1])
    settings = endpoints.settings(load(**{"state_dir": tmp_path, "console.port": port}))
    with holder(endpoints, "", settings.folder("checkpoints"), "sink", "here") as first:
        with pytest.raises(NewnormalError, match="ALREADY_RUNNING") as refused, watching(Driver(settings, ["sink"])):
            raise AssertionError("it started")
        assert refused.value.what == f"sink runs in process {first.pid}"
    shown = "".join(capfd.readouterr())
    assert "console" not in shown and f":{port}" not in shown


@pytest.mark.usefixtures("here")
def test_another_machine_with_the_same_jobs_of_a_namespace_is_named_and_one_that_died_is_forgotten(
    endpoints: Endpoints, namespace: str, tmp_path: Path
) -> None:
    with holder(endpoints, namespace, tmp_path / "elsewhere", "detector,sink", "pay-07") as far:
        with mine(endpoints, namespace, tmp_path / "here", "detector") as ours:
            deadline = time.monotonic() + 30
            while not (others := ours.others()):
                assert time.monotonic() < deadline, "Kafka tells of no other machine"
            assert (others[0].host, others[0].pid) == ("pay-07", far.pid)
            with pytest.raises(NewnormalError, match="ALREADY_RUNNING") as refused:
                ours.check_others()
            assert "pay-07" in refused.value.what
            far.kill()
            far.wait(10)
            ours.check_others()  # waits until the broker has noticed
        with mine(endpoints, namespace, tmp_path / "here", "extractor") as ours:
            ours.check_others()


def test_a_writer_that_another_one_replaced_says_so_and_writes_nothing(endpoints: Endpoints, namespace: str) -> None:
    def writer() -> TransactionalWriter:
        return TransactionalWriter(endpoints.bootstrap, f"{namespace}job", f"{namespace}ledger", "1", threading.Event())

    def some(text: bytes) -> list[Outgoing]:
        return [Outgoing.of(f"{namespace}out", 0, [text])]

    first, second = writer(), writer()
    assert first.write(0, some(b"first"))
    assert second.write(1, some(b"second"))
    with pytest.raises(NewnormalError, match="JOB_FENCED"):
        first.write(2, some(b"a zombie's"))
    assert not second.write(1, some(b"repeated")), "a batch whose number is committed is skipped"
    assert values(endpoints.bootstrap, f"{namespace}out") == [b"first", b"second"]
