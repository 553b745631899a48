"""When a replay has caught up."""

from __future__ import annotations

from typing import Any, cast

from engine.kafka.offsets import Offsets, behind
from pipelines.contracts.settings import load
from pipelines.runtime.status import StatusCollector
from pipelines.versions.program import VersionProgram
from pipelines.versions.progress import ReplayProgress
from pipelines.versions.version import Version

Read = dict[str, dict[str, dict[str, int]]]


class Jobs:
    """What `ReplayProgress` sees of a driver: what jobs have read, and where topics ended when Kafka was last asked."""

    def __init__(self, ends: Offsets, read: Read) -> None:
        self.settings, self.ends, self.read = load(), ends, read
        self.status = StatusCollector(list(read), 0, 0)

    def lags(self, without: object) -> dict[str, int | None]:
        return {name: behind(self.ends, read) for name, read in self.read.items()}


def test_a_replay_has_not_caught_up_while_what_a_job_has_just_written_is_not_counted() -> None:
    """The ends of topics are asked for once a second; the detector writes all its verdicts in one micro-batch."""
    windows, verdicts = ("features", 0), ("novelties-v2", 0)
    version = Version(name="v2", base="v1", jobs=("detector", "sink"), sources={"features": "v1"})
    read: Read = {"detector": {"features": {"0": 0}}, "sink": {"novelties-v2": {"0": 0}}}
    jobs = Jobs({windows: 500, verdicts: 0}, read)
    progress = ReplayProgress(cast("Any", jobs), VersionProgram(version), None)
    assert progress.look() and not progress.caught_up
    read["detector"] = {"features": {"0": 500}}
    for _ in range(3):
        assert progress.look(), "Kafka was not asked again since the detector has written"
    jobs.ends = {windows: 500, verdicts: 50_000}
    assert progress.look() and progress.look()
    read["sink"] = {"novelties-v2": {"0": 50_000}}
    assert progress.look()
    jobs.ends = dict(jobs.ends)
    assert progress.look() is None
    assert progress.caught_up
