"""Ends a run when its jobs have read what there was: for batch use, and for a replay that ends at an event time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaException

from engine.kafka.heartbeat_sender import HEARTBEAT_SECONDS
from engine.kafka.offsets import KafkaOffsets, Offsets
from engine.spec.duration import duration_ms
from pipelines.runtime.driver import Driver

Read = Mapping[str, Mapping[str, int]]
"""The next offset of each partition, by topic and partition, in the form of Spark."""


class BoundedRun:
    """Follows a driver's jobs to the end of their input, in the order in which data flow.

    The end of a job's input is where its topics end when the jobs that write them have ended. Topics that no job of the
    driver writes end where they end when the run begins; but the watermark waits for a topic without records until
    enough heartbeats have come to call it idle, so jobs that watch for these read on for so long. Each job is ended
    when it has read so far and its results are committed, so that the next start goes on there.

    A job whose watermark does not wait for what another one writes starts when that one has ended: else it would depend
    on the pace of the two what it still finds. The job of incidents forgets what is over, and would leave out the logs.

    Args:
        driver: The driver; its jobs may not have started yet.
        enough: Is asked whether a job needs to read no further, although its topics hold more; ``None``: never.
    """

    def __init__(self, driver: Driver, enough: Callable[[str], bool] | None = None) -> None:
        self._driver, self._enough = driver, enough
        self._idle_from: float | None = None
        self._ended: set[str] = set()
        self._targets: dict[str, Offsets] = {}
        self._topics = {name: driver.program.reads(name, driver.settings) for name in driver.names}
        written = {name: set(driver.program.writes(name, driver.settings)) for name in driver.names}
        self._upstream = {
            name: {other for other in driver.names if other != name and written[other] & set(self._topics[name])}
            for name in driver.names
        }
        for name, others in self._upstream.items():
            job = driver.program.job(name, driver.settings) if others else None
            free = {topic for source in job.inputs if not source.holds for topic in source.formats} if job else set()
            if any(free & written[other] for other in others):
                driver.later.held.add(name)
        for name in driver.names:
            if not self._upstream[name] and not driver.program.waits_for_idle(name, driver.settings):
                self._aim(name)

    def done(self) -> bool:
        """Looks at the jobs, ends those that are through, and says whether all have ended; to be called repeatedly."""
        if self._driver.servers.is_away("kafka"):
            return False
        if self._idle_from is None:
            idle = duration_ms(self._driver.settings.watermark.idle_after) / 1000 + 2 * HEARTBEAT_SECONDS
            self._idle_from = time.monotonic() + idle
        for name in self._driver.names:
            if name in self._ended or not self._upstream[name] <= self._ended:
                continue
            self._driver.later.release(name)
            if name not in self._targets and self._settled(name):
                self._aim(name)
            if self._through(name):
                self._driver.finish(name)
                self._ended.add(name)
        return len(self._ended) == len(self._driver.names)

    def _settled(self, name: str) -> bool:
        """Whether the heartbeats of idle topics have come that the job's watermark waits for."""
        assert self._idle_from is not None
        waits = self._driver.program.waits_for_idle(name, self._driver.settings)
        return not waits or time.monotonic() >= self._idle_from

    def _aim(self, name: str) -> None:
        """Fixes the end of a job's input: the partitions that have messages, and where they end now."""
        offsets = KafkaOffsets(self._driver.runtime.bootstrap, self._topics[name])
        try:
            first, ends = offsets.starts(), offsets.written()
        except (KafkaException, TimeoutError):
            return  # the broker is away: asked again at the next look
        self._targets[name] = {place: end for place, end in ends.items() if end > first[place]}

    def _through(self, name: str) -> bool:
        read = self._driver.runs[name].read
        if name not in self._targets or read is None:
            return False
        if self._enough and self._enough(name):
            return True
        return all(read.get(topic, {}).get(str(p), 0) >= end for (topic, p), end in self._targets[name].items())
