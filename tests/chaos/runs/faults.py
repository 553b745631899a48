"""The faults: what each does to the servers and the pipeline, and how it is undone."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from elasticsearch import ApiError, TransportError

from pipelines.contracts.elasticsearch_client import elasticsearch_client
from tests.chaos.runs.driver import DriverProcess
from tests.chaos.runs.processes import Target
from tests.chaos.runs.servers import Server, Servers

_UNLIMITED = -1
_FULL, _FREE = "1000000gb", "1mb"


@dataclass
class Scene:
    """What faults act upon.

    Attributes:
        servers: Kafka, Elasticsearch and the relay before Kafka.
        driver: The pipeline.
        second: The process of a second version, which may not run.
        rng: Chooses among several processes of one kind.
    """

    servers: Servers
    driver: DriverProcess
    second: DriverProcess
    rng: random.Random


Undo = Callable[[], None]
Act = Callable[[Scene], tuple[list[Target], Undo]]
"""Does something to a scene; returns the processes concerned, and what undoes it."""


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    Attributes:
        name: Its name, e.g. ``kill kafka``.
        act: Does it.
        seconds: How long it lasts: the least and the most; (0, 0) for one that is over at once.
        second: True if it is done to the second version, so that it needs one.
        in_order: True if it ends servers on purpose, so that nothing is started again before it is over.
    """

    name: str
    act: Act
    seconds: tuple[float, float] = (0.0, 0.0)
    in_order: bool = False
    second: bool = False


def _over() -> None:
    """Nothing to undo."""


def _kill(find: Callable[[Scene], list[Target]]) -> Act:
    def act(scene: Scene) -> tuple[list[Target], Undo]:
        targets = find(scene)
        for each in targets:
            each.signal(signal.SIGKILL)
        return targets, _over

    return act


def _stop(find: Callable[[Scene], list[Target]]) -> Act:
    def act(scene: Scene) -> tuple[list[Target], Undo]:
        targets = find(scene)
        for each in targets:
            each.signal(signal.SIGSTOP)
        return targets, lambda: _go_on(targets)

    return act


def _go_on(targets: list[Target]) -> None:
    for each in targets:
        each.signal(signal.SIGCONT)


def _driver(scene: Scene) -> list[Target]:
    return scene.driver.targets()[:1]


def _jvm(scene: Scene) -> list[Target]:
    return scene.driver.jvm()[:1]


def _worker(scene: Scene) -> list[Target]:
    forked = scene.driver.workers()[1:]
    return [scene.rng.choice(forked)] if forked else []


def _workers(scene: Scene) -> list[Target]:
    return scene.driver.workers()


def _kafka(scene: Scene) -> list[Target]:
    return scene.servers.kafka.targets()


def _elasticsearch(scene: Scene) -> list[Target]:
    return scene.servers.elasticsearch.targets()


def _restart_servers(scene: Scene) -> tuple[list[Target], Undo]:
    """Both servers end in order, and come back when the fault is over."""
    servers: tuple[Server, ...] = (scene.servers.elasticsearch, scene.servers.kafka)
    targets = [each for server in servers for each in server.targets()[:1]]
    for server in servers:
        server.stop()

    def undo() -> None:
        for server in servers:
            server.start()
        for server in servers:
            server.wait()

    return targets, undo


def _without_elasticsearch(scene: Scene) -> tuple[list[Target], Undo]:
    """Elasticsearch ends in order, and comes back when the fault is over."""
    server = scene.servers.elasticsearch
    targets = server.targets()[:1]
    server.stop()

    def undo() -> None:
        server.start()
        server.wait()

    return targets, undo


def outage(minutes: float) -> Fault:
    """Elasticsearch is away for so long, and nothing else is touched or started again meanwhile."""
    return Fault("no elasticsearch", _without_elasticsearch, (60 * minutes, 60 * minutes), in_order=True)


def _upgrade(scene: Scene) -> tuple[list[Target], Undo]:
    """The old driver ends in order, then a new one goes on from its state."""
    targets = _driver(scene)
    scene.driver.stop()
    scene.driver.start()
    return targets, _over


def _take_over(scene: Scene) -> tuple[list[Target], Undo]:
    """A new driver is started, which ends the old one."""
    targets = _driver(scene)
    scene.driver.replace()
    return targets, _over


def _zombie(scene: Scene) -> tuple[list[Target], Undo]:
    """The driver dies while its JVM stands still; the JVM wakes up when a new driver runs."""
    jvm, driver = _jvm(scene), _driver(scene)
    for each in jvm:
        each.signal(signal.SIGSTOP)
    for each in driver:
        each.signal(signal.SIGKILL)
    return [*driver, *jvm], lambda: _go_on(jvm)


def _no_room(find: Callable[[Scene], list[Target]]) -> Act:
    """No process concerned can write to a file: the limit of file sizes (EFBIG) stands in for a full disk (ENOSPC)."""

    def act(scene: Scene) -> tuple[list[Target], Undo]:
        targets = find(scene)
        for each in targets:
            each.limit_files(0)

        def undo() -> None:
            for each in {*targets, *find(scene)}:  # processes that were started meanwhile have inherited the limit
                each.limit_files(_UNLIMITED)

        return targets, undo

    return act


def _flood(scene: Scene) -> tuple[list[Target], Undo]:
    """Elasticsearch finds its disk too full by its own limits, and blocks writing until there is room again."""
    targets = _elasticsearch(scene)
    watermarks(scene.servers.url, _FULL)
    return targets, lambda: watermarks(scene.servers.url, _FREE)


def watermarks(url: str, free: str) -> None:
    """Sets how much free disk space Elasticsearch demands; it checks that every ten seconds."""
    disk = "cluster.routing.allocation.disk"
    limits: dict[str, Any] = {f"{disk}.watermark.{name}": free for name in ("low", "high", "flood_stage")}
    settings = limits | {f"{disk}.threshold_enabled": True, "cluster.info.update.interval": "10s"}
    try:
        with elasticsearch_client(url, request_timeout=10, max_retries=3, retry_on_timeout=True) as client:
            client.cluster.put_settings(persistent=settings)
    except (ApiError, TransportError):
        return  # it does not answer: the fault has no effect, and nothing is to be undone


def _slow(scene: Scene) -> tuple[list[Target], Undo]:
    relay = scene.servers.relay
    relay.mood = "slow"
    return [], lambda: setattr(relay, "mood", "open")


def _blackhole(scene: Scene) -> tuple[list[Target], Undo]:
    relay = scene.servers.relay
    relay.mood = "blackhole"
    return [], lambda: setattr(relay, "mood", "open")


def _cut(scene: Scene) -> tuple[list[Target], Undo]:
    scene.servers.relay.cut()
    return [], _over


_HANG = (3.0, 20.0)
FAULTS: Mapping[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault("kill driver", _kill(_driver)),
        Fault("kill second version", _kill(lambda scene: scene.second.targets()[:1]), second=True),
        Fault("kill worker", _kill(_worker)),
        Fault("kill all workers", _kill(_workers)),
        Fault("kill JVM", _kill(_jvm)),
        Fault("kill Kafka", _kill(_kafka)),
        Fault("kill Elasticsearch", _kill(_elasticsearch)),
        Fault("stop driver", _stop(_driver), _HANG),
        Fault("stop worker", _stop(_worker), _HANG),
        Fault("stop JVM", _stop(_jvm), _HANG),
        Fault("stop Kafka", _stop(_kafka), _HANG),
        Fault("stop Elasticsearch", _stop(_elasticsearch), _HANG),
        Fault("restart servers", _restart_servers, (1.0, 10.0), in_order=True),
        Fault("upgrade", _upgrade),
        Fault("upgrade by take-over", _take_over),
        Fault("zombie JVM", _zombie, (5.0, 25.0)),
        Fault("full disk of the pipeline", _no_room(lambda scene: scene.driver.targets()), (2.0, 8.0)),
        Fault("full disk of Kafka", _no_room(_kafka), (2.0, 8.0)),
        Fault("full disk of Elasticsearch", _flood, (15.0, 25.0)),
        Fault("slow broker", _slow, (5.0, 20.0)),
        Fault("broker swallows", _blackhole, (5.0, 20.0)),
        Fault("connections cut", _cut),
    )
}
"""All kinds of faults, by name."""


_CALM_SECONDS = (1.0, 8.0)
_AT_ONCE = 0.15


@dataclass(frozen=True)
class Planned:
    """A fault of a run.

    Attributes:
        fault: Its kind.
        lasts: For how many seconds.
        calm: Seconds from the recovery from the last fault to this one.
        at_once: True if it does not wait for that recovery.
    """

    fault: Fault
    lasts: float
    calm: float
    at_once: bool


def planned(faults: Mapping[str, Fault], seed: int) -> Iterator[Planned]:
    """An endless order of faults: each kind comes once before any comes again.

    >>> from tests.chaos.runs.faults import FAULTS
    >>> first, again = planned(FAULTS, 7), planned(FAULTS, 7)
    >>> [next(first) for _ in range(50)] == [next(again) for _ in range(50)]
    True
    """
    rng = random.Random(seed)
    while True:
        kinds = sorted(faults)
        rng.shuffle(kinds)
        for kind in kinds:
            fault = faults[kind]
            lasts, calm = rng.uniform(*fault.seconds), rng.uniform(*_CALM_SECONDS)
            yield Planned(fault, round(lasts, 1), round(calm, 1), rng.random() < _AT_ONCE)
