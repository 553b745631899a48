"""Replays the log into another version of the chain, which then goes on live or ends at an event time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import structlog
from confluent_kafka import KafkaException

from engine.kafka.content import between
from engine.kafka.message_size import mean_sizes, messages_in
from engine.kafka.offsets import KafkaOffsets, Offsets
from engine.spark.checkpoint_offsets import committed_offsets
from engine.spec.decoder import Messages
from engine.spec.duration import duration_ms, iso
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from engine.spec.source import Source
from pipelines.contracts.settings import Settings
from pipelines.contracts.topics import ABOUT_THE_SITE
from pipelines.jobs.links import LINKS
from pipelines.runtime.archived_input import archive_begin, begin_before
from pipelines.runtime.bounded import BoundedRun
from pipelines.runtime.driver import Driver
from pipelines.runtime.watch import watching
from pipelines.versions.plan import same
from pipelines.versions.program import VersionProgram
from pipelines.versions.progress import ReplayProgress
from pipelines.versions.registry import Registry
from pipelines.versions.used import note
from pipelines.versions.version import Version

_MOST = 50
"""Messages of a partition that are looked at."""


def first_time(bootstrap: str, job: Job, begin: Offsets) -> int | None:
    """The earliest event time in the first message with records of each partition that a job reads.

    Args:
        bootstrap: ``host:port`` of a broker.
        job: The job; its broadcast inputs do not count.
        begin: Where it begins to read, by topic and partition; partitions that are left out begin with their first
            message.

    Returns:
        Epoch milliseconds; ``None`` if there are no records, if it begins before what Kafka has, or if Kafka does not
        tell in time.
    """
    sources = {topic: source for source in job.inputs if not source.broadcast for topic in source.formats}
    offsets, times = KafkaOffsets(bootstrap, sorted(sources)), dict[tuple[str | None, int | None], int]()
    try:
        ends, starts = offsets.ends(), offsets.starts()
        if any(at < starts.get(place, at) for place, at in begin.items()):
            return None
        first = {**starts, **begin}
        spans = {place: (at, min(ends[place], at + _MOST)) for place, at in first.items() if place in ends}
        for message in between(bootstrap, spans):
            topic, place = message.topic() or "", (message.topic(), message.partition())
            if place not in times and (time := _first_of(sources[topic], topic, message.value())) is not None:
                times[place] = time
    except (KafkaException, TimeoutError, NewnormalError):
        return None
    return min(times.values(), default=None)


def _first_of(source: Source, topic: str, value: bytes | None) -> int | None:
    """The earliest event time in a message; ``None`` if it has no records."""
    none = np.zeros(1, np.int64)
    message = Messages(topic, 0, pa.array([value or b""], pa.binary()), none, none)
    records = source.formats[topic].decode(message).records
    if not records.num_rows or source.time not in records.column_names:
        return None
    return int(pc.min(records.column(source.time)).as_py())


_BATCH_BYTES = 64 << 20
"""Aimed size of a micro-batch of a replay: large, so that its fixed cost does not matter, and safe for the memory."""

_MOST_MESSAGES = 50_000
_SECOND = 1.0
log = structlog.get_logger()


def registered(registry: Registry, asked: Version, free: bool) -> Version:
    """The version of this name if it exists and is the same; otherwise the one that is asked for, which is stored.

    Args:
        registry: The versions.
        asked: The version that is asked for.
        free: True if only its name was given: whatever exists by this name is meant.

    Raises:
        NewnormalError: ``VERSION_EXISTS`` if the one that exists was made otherwise.
    """
    kept = registry.all().get(asked.name)
    if kept is None:
        registry.put(asked)
        return asked
    if not free and not same(asked, kept):
        what = f"{kept.name} was made otherwise: {described(kept)}"
        accepted = (
            f"another name; or `newnormal retire {kept.name}` first; or no option but --as, which goes on with it"
        )
        raise NewnormalError("VERSION_EXISTS", what, "--as", accepted, "nothing was started")
    log.info("the version exists, its replay goes on where it stopped", version=kept.name)
    return kept


def described(version: Version) -> str:
    """What a version is, in words.

    >>> described(Version(name="v2", base="v1", jobs=("detector", "sink"), settings={"detector.threshold": 60.0}))
    'from v1, jobs detector, sink, detector.threshold = 60.0'
    """
    parts = [f"from {version.base}"] if version.base else []
    parts += [f"jobs {', '.join(version.jobs)}"]
    parts += [f"event times from {iso(version.start)}"] if version.start is not None else []
    parts += [f"until {iso(version.end)}"] if version.end is not None else []
    return ", ".join([*parts, *(f"{name} = {value}" for name, value in version.settings.items())])


def replay(
    version: Version,
    registry: Registry,
    filled: Callable[[Settings], Settings],
    overrides: dict[str, Any],
    take_over: bool = False,
) -> None:
    """Runs a version: over the log as fast as it goes, then live until Ctrl-C, or up to the version's end.

    The live part is the same query with the same checkpoint, so that nothing is left out or read twice in between. A
    replay that was interrupted goes on where it stopped.

    Args:
        version: The version.
        registry: Where its end is stored.
        filled: Fills the servers' addresses into settings.
        overrides: Settings of the command line, by dotted name.
        take_over: See `Driver`.

    Raises:
        NewnormalError: See `Driver`.
    """
    program = VersionProgram(version)
    settings = filled(version.load(**overrides))
    settings = _for_the_log(settings, program, version.settings)
    begin = {name: _begin(name, settings, version.start) for name in program.first} if version.start else {}
    ends = version.end is not None
    driver = Driver(settings, take_over=take_over, program=program, begin=begin, at_once=True, steady=ends)
    progress = ReplayProgress(driver, program, _first(settings, program, begin))
    bounded = BoundedRun(driver, partial(_past, driver, settings, version.end)) if version.end is not None else None
    live = False

    def done() -> bool:
        nonlocal live
        if bounded:
            return bounded.done()
        if not live and progress.caught_up:
            live = True
            log.info("the replay has caught up, the version is live", version=version.name, **progress.summary())
        return False

    with watching(driver, progress.look) as watch:
        note(registry, driver.settings, driver.names, driver.status.started)
        watch.until(done)
    log.info("the replay is complete", version=version.name, **progress.summary())
    registry.put(registry.get(version.name).model_copy(update={"ended": True}))


def recompute(version: Version, settings: Settings, begin: Mapping[str, Offsets]) -> None:
    """Runs a version up to its end as `replay` does, and nothing beside its jobs: no console, no view, no note.

    Args:
        version: The version, which has an end.
        settings: Its settings, with the address of Kafka filled in.
        begin: Where jobs without a checkpoint begin to read, by job; see `Driver`.

    Raises:
        NewnormalError: See `Driver`.
    """
    assert version.end is not None
    program = VersionProgram(version)
    driver = Driver(_for_the_log(settings, program, {}), program=program, begin=begin, at_once=True, steady=True)
    progress = ReplayProgress(driver, program, None)
    bounded = BoundedRun(driver, partial(_past, driver, settings, version.end))
    with driver.interrupts, ExitStack() as stack:
        stack.callback(driver.stop)
        driver.claim()
        driver.start()
        while not bounded.done():
            driver.check()
            progress.look()
            driver.interrupts.wait(_SECOND)
    log.info("computed again", **progress.summary())


def _begin(name: str, settings: Settings, start: int) -> Offsets:
    """The offsets from which on a job finds all records of an event time and later ones.

    A record's event time lies at most ``watermark.max_ahead`` after its arrival at Kafka. Where Kafka has deleted the
    messages of that time, the offsets are those of the archive.
    """
    topics = [settings.reads(topic) for topic in LINKS[name].inputs if topic not in ABOUT_THE_SITE]
    offsets, arrived = (
        KafkaOffsets(settings.kafka.bootstrap or "", topics),
        max(0, start - duration_ms(settings.watermark.max_ahead)),
    )
    places = {**offsets.ends(), **offsets.since(arrived)}
    return begin_before(places, offsets.starts(), archive_begin(settings, topics, arrived))


def _first(settings: Settings, program: VersionProgram, begin: Mapping[str, Offsets]) -> int | None:
    """The event time at which a new version begins, as far as it is known; ``None`` if the version goes on."""
    if any(committed_offsets(settings.folder("checkpoints") / name) for name in program.first):
        return None
    jobs = [(name, job) for name in program.first if (job := program.job(name, settings))]
    found = [first_time(settings.kafka.bootstrap or "", job, begin.get(name, {})) for name, job in jobs]
    return min((time for time in found if time is not None), default=program.version.start)


def _past(driver: Driver, settings: Settings, end: int, job: str) -> bool:
    """Whether a job's watermark says that no record before the end can still change a result."""
    watermark = driver.status.tallies[job].watermark
    return watermark is not None and watermark >= end + settings.window.open_for_ms


def _for_the_log(settings: Settings, program: VersionProgram, chosen: Collection[str]) -> Settings:
    """The settings that suit the log: as many messages in a micro-batch as their size allows, and no optimizing JVM.

    The latter only for a log that fits into one micro-batch: its replay would be over before optimizing pays.

    Args:
        settings: The settings.
        program: The jobs.
        chosen: The settings in which the version differs, by dotted name; they stay.
    """
    bootstrap = settings.kafka.bootstrap or ""
    inputs = sorted({settings.reads(topic) for name in program.first for topic in LINKS[name].inputs})
    size = max(mean_sizes(bootstrap, inputs).values(), default=0.0)
    engine, suited = settings.engine, dict[str, object]()
    most = min(_MOST_MESSAGES, round(_BATCH_BYTES / size)) if size else _MOST_MESSAGES
    if "engine.max_records" not in chosen:
        suited["max_records"] = max(engine.max_records, most)
    if "jvm_optimizes" not in engine.model_fields_set and messages_in(bootstrap, inputs) <= most:
        suited["jvm_optimizes"] = "never"
    return settings.model_copy(update={"engine": engine.model_copy(update=suited)})
