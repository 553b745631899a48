"""Conducts a chaos run: servers, load, pipeline and faults; then a run without faults, and the verification."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from engine.kafka.admin import ensure_topics
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from pipelines.chaos.driver import DriverProcess
from pipelines.chaos.faults import FAULTS, Scene, watermarks
from pipelines.chaos.load import Load
from pipelines.chaos.plan import Planned, planned
from pipelines.chaos.report import Disturbance, append
from pipelines.chaos.results import Results
from pipelines.chaos.scenario import Scenario
from pipelines.chaos.servers import Servers
from pipelines.chaos.verifier.finding import Tally
from pipelines.chaos.verifier.verify import Site, verify
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.versions.registry import Registry
from pipelines.versions.version import Version

REFERENCE = "reference"
_FIRST_SECONDS, _PATIENCE_SECONDS, _END_SECONDS = 300.0, 180.0, 900.0
_LOOK_SECONDS = 0.25
_FEW_MESSAGES = 2_000
"""Most messages of a micro-batch: even a long backlog is then read in several, as it is when the pipeline keeps up."""


@dataclass(frozen=True)
class Course:
    """What a chaos run gave.

    Attributes:
        disturbances: The faults.
        documents: Seconds since the first result, and the number of documents then.
        tally: What the verifier found.
    """

    disturbances: list[Disturbance]
    documents: list[tuple[float, int]]
    tally: Tally


@dataclass
class Conductor:
    """Runs the whole.

    Args:
        settings: Settings with a state directory of its own.
        out: Folder of the log of faults.
        seed: Decides the load, the faults and their lengths.
        minutes: For how long faults are done.
        speed: Seconds of event time for each second.
        say: Is told what happens now.
        done: Is given each fault that is over.
    """

    settings: Settings
    out: Path
    seed: int
    minutes: float
    speed: float
    say: Callable[[str], None]
    done: Callable[[Disturbance], None]
    disturbances: list[Disturbance] = field(default_factory=list)

    def run(self) -> Course:
        """Runs everything; returns what was counted.

        Raises:
            NewnormalError: If the servers or the pipeline do not start, or the runs to the end fail.
        """
        with ExitStack() as stack:
            self.say("starting Kafka and Elasticsearch")
            servers = stack.enter_context(Servers(self.settings))
            watermarks(servers.url, "1mb")
            settings = self.settings.model_copy(
                update={"kafka": self.settings.kafka.model_copy(update={"bootstrap": servers.bootstrap})}
            )
            names = {settings.topic(name): config for name, config in topics.configs().items()}
            ensure_topics(servers.bootstrap, names, settings.kafka.partitions)
            Registry(settings).put(Version(name=REFERENCE, base="v1", jobs=_without_sink(), created=1))
            driver = DriverProcess(settings.state, _environment(settings, servers), settings.state / "driver.log")
            results = Results(servers.url, settings.alias)
            stack.callback(results.close)
            scene = Scene(servers, driver, random.Random(self.seed))
            window = duration_ms(settings.window.size)
            begin = (int(time.time() * 1000) - 8 * 3_600_000) // window * window
            with _stopped(driver), Load(servers.bootstrap, Scenario(self.seed, begin), self.speed) as load:
                driver.start()
                self._disturb(scene, results)
                self.say("ending the load")
                servers.kafka.wait()
                until = load.finish(window)
                driver.stop()
                self.say("processing what is left")
                driver.run_to_end("--until", "now", seconds=_END_SECONDS)
                self.say("processing all again without faults, as the reference")
                driver.run_to_end("--as", REFERENCE, "--until", "now", seconds=_END_SECONDS)
            self.say("counting")
            tally = verify(self._site(servers, until))
            return Course(self.disturbances, results.course, tally)

    def _site(self, servers: Servers, until: int) -> Site:
        settings = self.settings
        return Site(
            bootstrap=servers.bootstrap,
            elasticsearch=servers.url,
            documents=settings.alias,
            reference=f"-{REFERENCE}",
            window=duration_ms(settings.window.size),
            out_of_orderness=duration_ms(settings.watermark.out_of_orderness),
            lateness=duration_ms(settings.window.allowed_lateness),
            until=until,
        )

    def _disturb(self, scene: Scene, results: Results) -> None:
        self.say("waiting for the first result")
        if not self._until(scene, lambda: results.look() > 0, _FIRST_SECONDS):
            raise NewnormalError(
                "CHAOS_RUN_FAILED", "no first result came", str(scene.driver.log), "a running pipeline"
            )
        results.began, results.course = time.monotonic(), []
        for plan in planned(FAULTS, self.seed):
            self._until(scene, lambda: results.look() < 0, plan.calm)
            if time.monotonic() - results.began > self.minutes * 60:
                return
            self.done(self._one(scene, results, plan))

    def _one(self, scene: Scene, results: Results, plan: Planned) -> Disturbance:
        self.say(plan.fault.name)
        at, since, restarts = datetime.now(UTC), time.monotonic() - results.began, self._restarts
        targets, undo = plan.fault.act(scene)
        try:
            self._until(scene, lambda: results.look() < 0, plan.lasts, mending=not plan.fault.in_order)
        finally:
            undo()
        over = time.monotonic()
        before = results.look()
        recovered = self._until(scene, lambda: results.look() > before, 0 if plan.at_once else _PATIENCE_SECONDS)
        recovery = time.monotonic() - over if recovered else None
        disturbance = Disturbance(
            number=len(self.disturbances) + 1,
            at=at.isoformat(timespec="milliseconds"),
            since=round(since, 2),
            fault=plan.fault.name,
            pids=tuple(each.pid for each in targets),
            lasted=round(over - results.began - since, 2),
            recovery=None if recovery is None else round(recovery, 2),
            waited=not plan.at_once,
            restarts=self._restarts - restarts,
        )
        self.disturbances.append(disturbance)
        append(self.out / "faults.jsonl", disturbance)
        if disturbance.stalled:
            self.say("no result: the pipeline is stopped and started again, as an operator would")
            scene.driver.stop()
            scene.driver.start()
        return disturbance

    _restarts: int = 0

    def _until(self, scene: Scene, done: Callable[[], bool], seconds: float, mending: bool = True) -> bool:
        """Waits for a condition, and meanwhile starts again what has ended; ``False`` if it does not come in time."""
        deadline = time.monotonic() + seconds
        while not done():
            if mending:
                mended = [scene.servers.kafka.mend(), scene.servers.elasticsearch.mend(), scene.driver.mend()]
                self._restarts += sum(mended)
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_SECONDS)
        return True


@contextmanager
def _stopped(driver: DriverProcess) -> Iterator[None]:
    try:
        yield
    finally:
        driver.stop()


def _without_sink() -> tuple[str, ...]:
    return tuple(job for job in Version.first().jobs if job != "sink")


def _environment(settings: Settings, servers: Servers) -> dict[str, str]:
    return {
        "NEWNORMAL_STATE_DIR": str(settings.state),
        "NEWNORMAL_KAFKA__BOOTSTRAP": f"127.0.0.1:{servers.relay_port}",
        "NEWNORMAL_ELASTICSEARCH__URL": servers.url,
        "NEWNORMAL_CONSOLE__PORT": "0",
        "NEWNORMAL_WINDOW__ALLOWED_LATENESS": settings.window.allowed_lateness,
        "NEWNORMAL_ENGINE__MAX_MESSAGES": str(_FEW_MESSAGES),
    }
