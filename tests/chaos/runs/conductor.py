"""Conducts a chaos run: servers, load, pipeline and faults; then a run without faults, and the verification."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from elasticsearch import ApiError, TransportError

from deploy.embedded import login
from deploy.embedded.endpoints import Endpoints
from engine.clock import now_ms
from engine.kafka.admin import ensure_topics
from engine.spec.duration import duration_ms, iso
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import FIRST
from tests.chaos.runs.comparison import REFERENCE, make_reference, site
from tests.chaos.runs.driver import DriverProcess
from tests.chaos.runs.faults import FAULTS, Planned, Scene, outage, planned, watermarks
from tests.chaos.runs.footprint import Footprint
from tests.chaos.runs.load import Load
from tests.chaos.runs.operations import SECOND, Operation, operations, saved_until
from tests.chaos.runs.report import Disturbance, append
from tests.chaos.runs.scenario import Scenario
from tests.chaos.runs.servers import Servers
from tests.chaos.runs.verifier.finding import Tally
from tests.chaos.runs.verifier.lives import Restored
from tests.chaos.runs.verifier.verify import verify

_TIMEOUT_SECONDS = 3.0


@dataclass
class Results:
    """Counts the documents of the index, again and again.

    Args:
        url: URL of Elasticsearch.
        index: The alias or the pattern of the indices.
        began: Time 0 of the course, seconds of the monotonic clock.

    Attributes:
        course: The count at each look: seconds since the beginning, and the number of documents.
        last: The last count; it stays while Elasticsearch does not answer.
    """

    url: str
    index: str
    began: float = field(default_factory=time.monotonic)
    course: list[tuple[float, int]] = field(default_factory=list)
    last: int = 0

    def __post_init__(self) -> None:
        self._client = elasticsearch_client(self.url, request_timeout=_TIMEOUT_SECONDS, max_retries=0)

    def look(self) -> int:
        """The number of documents now, or the last known one while Elasticsearch does not answer."""
        try:
            answer = self._client.count(index=self.index, ignore_unavailable=True, allow_no_indices=True)
        except (ApiError, TransportError):
            return self.last
        self.last = int(answer["count"])
        self.course.append((time.monotonic() - self.began, self.last))
        return self.last

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()


_FIRST_SECONDS, _PATIENCE_SECONDS, _END_SECONDS = 1_200.0, 180.0, 1_200.0
_LOOK_SECONDS = 0.25
_PAUSE_SECONDS = 10.0
"""From an attempt at an operation to the next one: a version may have to read a while before it can be promoted."""
_AGO_MS = 8 * 3_600_000
"""How long ago the event time of the load begins, so that it stays behind the clock although it runs faster."""
_CALM_SECONDS = 60.0
"""For how long the pipeline runs on after an outage."""
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
        replay: Whether a second version is replayed, runs beside the first one, and is promoted.
        restore: Whether the replay begins in the archive, and the first version goes back to a savepoint meanwhile.
        outage: Minutes for which Elasticsearch is away, as the only fault; ``None``: random faults.
        say: Is told what happens now.
        done: Is given each fault that is over.
    """

    settings: Settings
    out: Path
    seed: int
    minutes: float
    speed: float
    replay: bool
    restore: bool
    outage: float | None
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
            settings = Endpoints(servers.bootstrap, servers.url).settings(self.settings)
            _prepare(settings)
            state, environment = self.settings.state, _environment(self.settings, servers)
            window = duration_ms(self.settings.window.size)
            begin = (now_ms() - _AGO_MS) // window * window
            driver = DriverProcess(state, environment, state / "driver.log", "run")
            since = begin - window if self.restore else None  # the first samples are up to two seconds out of order
            of_archive = ("--job", "extractor", "--from", iso(since)) if since is not None else ()
            second = DriverProcess(state, environment, state / "second.log", "replay", "--as", SECOND, *of_archive)
            lives = list[int]() if self.restore else None
            agenda = list(operations(driver, second, settings, lives)) if self.replay else []
            results = Results(servers.url, f"{self.settings.alias}-2*")
            stack.callback(results.close)
            scene = Scene(servers, driver, second, random.Random(self.seed))
            with _stopped(driver, second), Load(servers.bootstrap, Scenario(self.seed, begin), self.speed) as load:
                driver.start()
                self._disturb(scene, results, agenda)
                self.say("ending the load")
                for server in servers.both:
                    server.wait()
                until = load.finish(window)
                self._process_all(driver, second)
            self.say("counting")
            done = any(each.operation for each in self.disturbances)
            restored = Restored(saved_until(settings), lives) if lives else None
            versions = {FIRST: None} | ({SECOND: since} if done else {})
            tally = verify(site(settings, until, versions, restored))
            return Course(self.disturbances, results.course, tally)

    def _process_all(self, driver: DriverProcess, second: DriverProcess) -> None:
        """Lets the versions process what is left, and a fresh one all of it."""
        replayed = second.runs
        driver.stop()
        second.stop()
        self.say("processing what is left")
        driver.run_to_end("run", "--until", "now", seconds=_END_SECONDS)
        if replayed:
            second.run_to_end("run", "--as", SECOND, "--until", "now", seconds=_END_SECONDS)
        self.say("processing all again without faults, as the reference")
        driver.run_to_end("run", "--as", REFERENCE, "--until", "now", seconds=_END_SECONDS)

    def _disturb(self, scene: Scene, results: Results, agenda: list[Operation]) -> None:
        self.say("waiting for the first result")
        began = time.monotonic()
        if not self._until(scene, lambda: results.look() > 0, _FIRST_SECONDS):
            raise NewnormalError("CHAOS_RUN_FAILED", "no first result came", str(scene.driver.log))
        results.began, results.course = time.monotonic(), []
        self._patience = max(_PATIENCE_SECONDS, results.began - began)
        if self.outage is not None:
            self._fault(scene, results, Planned(outage(self.outage), 60 * self.outage, _CALM_SECONDS, at_once=False))
            self._until(scene, lambda: results.look() < 0, _CALM_SECONDS)
            return
        for plan in planned(FAULTS, self.seed):
            self._until(scene, lambda: results.look() < 0, plan.calm)
            passed = time.monotonic() - results.began
            if agenda and passed > self.minutes * 60 * agenda[0].due and self._operate(scene, results, agenda[0]):
                agenda.pop(0)
            if passed > self.minutes * 60:
                self._complete(scene, results, agenda)
                return
            if plan.fault.second and not scene.second.runs:
                continue
            self._fault(scene, results, plan)

    def _complete(self, scene: Scene, results: Results, agenda: list[Operation]) -> None:
        """Does what is left of the operations without faults: a count says nothing of what was never done.

        Raises:
            NewnormalError: ``CHAOS_RUN_FAILED`` if one does not succeed in time.
        """
        for operation in agenda:
            deadline = time.monotonic() + _END_SECONDS
            while not self._operate(scene, results, operation):
                if time.monotonic() > deadline:
                    what = f"{operation.name} did not succeed within {_END_SECONDS:g} s without faults"
                    raise NewnormalError("CHAOS_RUN_FAILED", what, str(scene.second.log))
                self._until(scene, lambda: results.look() < 0, _PAUSE_SECONDS)

    def _operate(self, scene: Scene, results: Results, operation: Operation) -> bool:
        """Does an operation; ``False`` if it did not succeed."""
        self.say(operation.name)
        at, since = datetime.now(UTC), time.monotonic() - results.began
        if not operation.act():
            self.say("   did not succeed, will be tried again")
            return False
        self._recover(scene, results, Disturbance(0, _iso(at), since, operation.name, (), 0.0, None, True, 0, True))
        return True

    def _fault(self, scene: Scene, results: Results, plan: Planned) -> None:
        self.say(plan.fault.name)
        at, since = datetime.now(UTC), time.monotonic() - results.began
        targets, undo = plan.fault.act(scene)
        footprint = Footprint(self.out / "footprint.jsonl", scene.driver)

        def never() -> bool:
            results.look()
            footprint.look()
            return False

        try:
            self._until(scene, never, plan.lasts, mending=not plan.fault.in_order)
        finally:
            undo()
        pids = tuple(each.pid for each in targets)
        what = Disturbance(0, _iso(at), since, plan.fault.name, pids, 0.0, None, not plan.at_once, 0)
        self._recover(scene, results, what)

    def _recover(self, scene: Scene, results: Results, what: Disturbance) -> None:
        """Waits for the first new result after a fault that is over now, and completes and reports what happened."""
        over, before, restarts = time.monotonic(), results.look(), self._restarts
        recovered = self._until(scene, lambda: results.look() > before, self._patience if what.waited else 0.0)
        disturbance = replace(
            what,
            number=len(self.disturbances) + 1,
            since=round(what.since, 2),
            lasted=round(over - results.began - what.since, 2),
            recovery=round(time.monotonic() - over, 2) if recovered else None,
            restarts=self._restarts - restarts,
        )
        self.disturbances.append(disturbance)
        append(self.out / "faults.jsonl", disturbance)
        self.done(disturbance)
        if disturbance.stalled:
            self.say("no result: the pipeline is stopped and started again, as an operator would")
            scene.driver.stop()
            scene.driver.start()

    _restarts: int = 0
    _patience: float = _PATIENCE_SECONDS
    """How long a result may take, seconds: where a start takes longer than that by itself, as long as the first one."""

    def _until(self, scene: Scene, done: Callable[[], bool], seconds: float, mending: bool = True) -> bool:
        """Waits for a condition, and meanwhile starts again what has ended; ``False`` if it does not come in time."""
        deadline = time.monotonic() + seconds
        while not done():
            if mending:
                mended = [each.mend() for each in (*scene.servers.both, scene.driver, scene.second)]
                self._restarts += sum(mended)
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_SECONDS)
        return True


def _prepare(settings: Settings) -> None:
    """Makes the topics, and the version that will be run without faults."""
    names = {settings.topic(name): config for name, config in topics.configs().items()}
    ensure_topics(settings.kafka.bootstrap or "", names, settings.kafka.partitions)
    make_reference(settings)


@contextmanager
def _stopped(*drivers: DriverProcess) -> Iterator[None]:
    try:
        yield
    finally:
        for driver in drivers:
            driver.stop()


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")


def _environment(settings: Settings, servers: Servers) -> dict[str, str]:
    """The settings of the pipelines; the verifier wants a verdict on each window."""
    word = servers.elasticsearch.config.password_file
    return {
        "NEWNORMAL_DETECTOR__EMIT": "all",
        "NEWNORMAL_STATE_DIR": str(settings.state),
        "NEWNORMAL_KAFKA__BOOTSTRAP": f"127.0.0.1:{servers.relay_port}",
        "NEWNORMAL_ELASTICSEARCH__URL": str(servers.url),
        "NEWNORMAL_ELASTICSEARCH__USER": login.USER if word else "",
        "NEWNORMAL_ELASTICSEARCH__PASSWORD_FILE": word,
        "NEWNORMAL_CONSOLE__PORT": "0",
        **({"NEWNORMAL_ARCHIVE__PATH": str(settings.archive.path)} if settings.archive.path else {}),
        "NEWNORMAL_ARCHIVE__EVERY": "5s",
        "NEWNORMAL_WINDOW__ALLOWED_LATENESS": settings.window.allowed_lateness,
        "NEWNORMAL_ENGINE__MAX_MESSAGES": str(_FEW_MESSAGES),
    }
