"""Starts, finds and stops the servers of a state directory, for the length of a block or in the background."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from deploy.embedded import external, state_file
from deploy.embedded.endpoints import Endpoints
from deploy.embedded.owner import Owned
from deploy.embedded.server_process import signal_group, wait_until_gone
from deploy.embedded.start_plan import plan
from deploy.embedded.supervisor import START_SECONDS, STOP_SECONDS
from deploy.progress import Say, saying
from engine.locks import try_lock
from engine.private_files import private_folder
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings

_LOOK_SECONDS = 1.0


@contextmanager
def embedded(
    settings: Settings, *, kafka: bool = True, elasticsearch: bool = True, say: Say | None = None
) -> Iterator[Endpoints]:
    """Servers for the length of a block; they end with this process, however it ends.

    Servers that ``settings`` names are checked and used. Servers that run already for the state directory are used and
    left running. The others are started, and stopped at the end of the block.

    Args:
        settings: Addresses, state directory and heaps.
        kafka: Whether a Kafka broker is wanted.
        elasticsearch: Whether an Elasticsearch node is wanted.
        say: Function that is called with the progress; by default it is shown on stderr.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE``, ``ELASTICSEARCH_UNREACHABLE``, ``SERVICES_PARTIAL``, ``JAVA_MISSING``,
            ``MEMORY_SHORT``, ``DISK_FULL``, ``DOWNLOAD_FAILED`` or ``SERVER_FAILED``.
    """
    elsewhere = _elsewhere(settings, kafka, elasticsearch)
    names = _missing_from(elsewhere, kafka, elasticsearch)
    if not names:
        yield elsewhere
        return
    running, started = _join_or_start(settings, names, say)
    endpoints = running.endpoints
    try:
        yield Endpoints(
            (elsewhere.bootstrap or endpoints.bootstrap) if kafka else "",
            (elsewhere.elasticsearch_url or endpoints.elasticsearch_url) if elasticsearch else "",
        )
    finally:
        if started:
            started.stop()


def running(settings: Settings, *, kafka: bool = True, elasticsearch: bool = True) -> Settings:
    """The settings with the addresses of servers that run already; starts none.

    Args:
        settings: Addresses, which take precedence, and the state directory.
        kafka: Whether a Kafka broker is needed.
        elasticsearch: Whether an Elasticsearch node is needed.

    Raises:
        NewnormalError: ``SERVERS_ABSENT``; ``KAFKA_UNREACHABLE``, ``ELASTICSEARCH_UNREACHABLE``.
    """
    elsewhere = _elsewhere(settings, kafka, elasticsearch)
    names = _missing_from(elsewhere, kafka, elasticsearch)
    servers = state_file.read(settings.state) if names else None
    missing = set(names) - {server.name for server in servers.servers} if servers else set(names)
    if missing:
        option = "--kafka host:port" if "kafka" in missing else "--elasticsearch http://host:port"
        raise NewnormalError(
            "SERVERS_ABSENT",
            f"no {' and no '.join(sorted(missing))} runs for {settings.state}, and no setting names one",
            "state_dir",
            f"`newnormal run` or `newnormal services up` with this state directory; another --state-dir; or {option}",
            "nothing was started: this command only looks at what runs",
        )
    return elsewhere.settings(servers.endpoints.settings(settings) if servers else settings)


def up(
    settings: Settings, *, kafka: bool = True, elasticsearch: bool = True, say: Say | None = None
) -> state_file.Running:
    """Starts servers that go on running after this process; running servers are left as they are.

    Raises:
        NewnormalError: As ``embedded``.
    """
    names = _missing_from(Endpoints(), kafka, elasticsearch)
    running, started = _join_or_start(settings, names, say)
    return started.detach() if started else running


def stay(settings: Settings) -> None:
    """Returns when Ctrl-C or SIGTERM came and the servers of the state directory are stopped.

    Raises:
        NewnormalError: ``SERVER_FAILED`` if they end before that.
    """
    try:
        while status(settings):
            time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        down(settings)
        return
    where, accepted = str(settings.state / "logs"), "see the logs"
    raise NewnormalError("SERVER_FAILED", "the servers ended by themselves", where, accepted, "no server is running")


def status(settings: Settings) -> state_file.Running | None:
    """The servers that run for the state directory, or ``None``."""
    return state_file.read(settings.state)


def down(settings: Settings) -> bool:
    """Stops the servers of the state directory, detached or not; ``False`` if none runs."""
    running = state_file.read(settings.state)
    if running is None:
        return False
    os.kill(running.pid, signal.SIGTERM)
    if not wait_until_gone(running.pid, running.started, STOP_SECONDS + 10):
        for server in running.servers:
            signal_group(server.pid, signal.SIGKILL)
        os.kill(running.pid, signal.SIGKILL)
        state_file.remove(settings.state)
    return True


def _elsewhere(settings: Settings, kafka: bool, elasticsearch: bool) -> Endpoints:
    bootstrap = (settings.kafka.bootstrap or "") if kafka else ""
    url = (settings.elasticsearch.url or "") if elasticsearch else ""
    if bootstrap:
        external.check_kafka(bootstrap)
    if url:
        external.check_elasticsearch(url)
    return Endpoints(bootstrap, url)


def _missing_from(elsewhere: Endpoints, kafka: bool, elasticsearch: bool) -> list[str]:
    names = ["kafka"] if kafka and not elsewhere.bootstrap else []
    return names + (["elasticsearch"] if elasticsearch and not elsewhere.elasticsearch_url else [])


def _join_or_start(settings: Settings, names: list[str], say: Say | None) -> tuple[state_file.Running, Owned | None]:
    state = settings.state
    try:
        (private_folder(state) / "logs").mkdir(exist_ok=True)
    except OSError as error:
        accepted = "a directory that can be written to"
        raise NewnormalError("STATE_DIR", str(error), "state_dir", accepted, "nothing was started") from None
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if running := state_file.read(state):
            missing = set(names) - {server.name for server in running.servers}
            if missing:
                raise NewnormalError(
                    "SERVICES_PARTIAL",
                    f"the servers that run for {state} do not include {' and '.join(sorted(missing))}",
                    f"process {running.pid}",
                    "`newnormal services down`, then start again; or another state_dir",
                    "what runs was left as it is",
                )
            return running, None
        if _is_free(state_file.lock_path(state)):
            started = Owned(state, plan(settings, names))
            with saying(f"Starting {' and '.join(names)}") if say is None else nullcontext(say) as tell:
                if running := started.wait(tell):
                    return running, started
        time.sleep(0.2)  # another process is starting or stopping the same servers
    raise NewnormalError(
        "SERVICES_BUSY", "another process has been starting or stopping the servers for minutes", str(state),
        "another state_dir, or patience", "nothing was started",
    )  # fmt: skip


def _is_free(lock: Path) -> bool:
    held = try_lock(lock)
    if held:
        held.close()
    return held is not None
