"""With which settings a version computes, and in which it differs from the one that it was made from."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from deploy.embedded.endpoints import Endpoints
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from pipelines.jobs.links import CHAIN
from pipelines.versions.plan import planned, same
from pipelines.versions.registry import Registry
from pipelines.versions.used import differing, note, used
from pipelines.versions.version import Version

NOW = 1_800_000_000_000
DEMO = {"detector.emit": "all", "watermark.idle_after": "2s"}
"""What the demo sets by itself."""


def ran(**settings: Any) -> Version:
    """The first version after its jobs ran with some settings, as dotted names."""
    first = Version.first()
    return first.model_copy(update={"ran": used(load(**settings), first.jobs)})


def replayed(base: Version, name: str = "v2", job: str = "detector", **config: Any) -> Version:
    """A version that is made from another one with a file of settings."""
    return planned(name, base, job, None, None, config, NOW)


def test_a_replay_of_the_demo_with_one_setting_differs_in_exactly_that_one() -> None:
    first = ran(**DEMO)
    second = replayed(first, **{"detector.threshold": 30.0})
    settings = second.load()
    assert (settings.detector.threshold, settings.detector.emit, settings.watermark.idle_after) == (30.0, "all", "2s")
    known = {"v1": first, "v2": second}
    assert differing(second, known) == {"detector.threshold": 30.0}
    assert differing(first, known) == DEMO


def test_a_replay_takes_its_bases_settings_and_not_those_that_the_user_has_by_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = replayed(ran(**{"incidents.series": 7, "detector.threshold": 60.0}))
    monkeypatch.setenv("NEWNORMAL_DETECTOR__THRESHOLD", "40")
    assert (second.load().detector.threshold, second.load().incidents.series) == (60.0, 7)
    assert replayed(second, "v3").load(**{"detector.threshold": 45.0}).detector.threshold == 60.0


def test_the_first_version_runs_as_the_user_says_and_is_compared_as_it_ran() -> None:
    first = ran(**DEMO)
    assert first.load().detector.emit == "context"
    assert first.load_as_run().detector.emit == "all"


def test_how_a_job_runs_is_not_inherited_as_a_replay_has_batches_of_its_own() -> None:
    assert not [name for name in ran(**{"engine.max_records": 5}).ran if name.startswith("engine.")]


def test_a_setting_that_is_given_the_value_of_the_base_does_not_differ() -> None:
    first = ran(**DEMO)
    second = replayed(first, **{"detector.emit": "all"})
    assert differing(second, {"v1": first, "v2": second}) == {}


def test_a_version_whose_base_is_retired_says_what_it_was_told() -> None:
    second = replayed(ran(**DEMO), **{"detector.threshold": 30.0})
    assert differing(second, {"v2": second}) == {"detector.threshold": 30.0}


def test_a_version_of_a_release_that_kept_no_settings_says_what_it_was_told() -> None:
    """The registry's entries before this: no ``ran``."""
    first = Version.first()
    second = Version(name="v2", base="v1", jobs=("sink",), settings={"detector.threshold": 30.0})
    assert differing(second, {"v1": first, "v2": second}) == {"detector.threshold": 30.0}
    assert differing(first, {"v1": first}) == {}


def test_a_replay_goes_on_although_its_base_has_run_with_other_settings_since() -> None:
    kept = replayed(ran(**DEMO), **{"detector.threshold": 30.0})
    assert same(replayed(ran(), **{"detector.threshold": 30.0}), kept)
    assert not same(replayed(ran(), **{"detector.threshold": 31.0}), kept)


def test_jobs_that_start_apart_each_keep_the_settings_that_they_follow() -> None:
    sections = {name.partition(".")[0] for name in used(load(), ["extractor", "incidents", "sink"])}
    assert sections == {"window", "incidents"}


@pytest.mark.servers
def test_a_start_of_the_first_version_is_noted_and_its_jobs_are_those_of_each_release(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    place: dict[str, Any] = {"namespace": f"u{uuid.uuid4().hex[:8]}.", "state_dir": tmp_path}
    settings = load(**place, **{"kafka.bootstrap": endpoints.bootstrap}, **DEMO)
    registry = Registry(settings)
    plain = load(**place, **{"kafka.bootstrap": endpoints.bootstrap})
    for began, of, jobs in ((1_000, settings, "detector"), (2_000, settings, "detector"), (3_000, plain, "normalizer")):
        note(registry, of, [jobs], began)
    first = Registry(settings).get("v1")
    assert [run.since for run in first.runs] == [1_000, 3_000], "a start with the same settings is the same run"
    assert [run.settings.get("watermark.idle_after") for run in first.runs] == [None, plain.watermark.idle_after]
    assert first.runs[1].settings == first.ran
    assert first.jobs == tuple(link.name for link in CHAIN)
    assert (first.ran["detector.emit"], first.ran["watermark.idle_after"]) == ("all", load().watermark.idle_after)
    assert "window.size" not in first.ran
    registry.put(first.model_copy(update={"jobs": ("normalizer",)}))
    assert Registry(settings).get("v1").jobs == ("normalizer",)


@pytest.mark.servers
def test_another_version_keeps_the_settings_of_its_base_and_notes_with_what_it_ran(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    settings = load(
        namespace=f"u{uuid.uuid4().hex[:8]}.", state_dir=tmp_path, **{"kafka.bootstrap": endpoints.bootstrap}
    )
    registry, second = Registry(settings), replayed(ran(**DEMO), **{"detector.threshold": 30.0})
    registry.put(second)
    note(registry, settings.of(second.names), second.jobs, 1_000)
    kept = registry.get("v2")
    assert kept.ran == second.ran
    assert [(run.since, run.settings) for run in kept.runs] == [(1_000, second.ran | second.settings)]
    assert same(second, kept)


def test_jobs_run_although_kafka_does_not_take_the_note(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(load(**{"kafka.bootstrap": "127.0.0.1:1"}))

    def refuse() -> dict[str, Version]:
        raise NewnormalError("VERSION_NOT_WRITTEN", "no permission")

    monkeypatch.setattr(registry, "all", refuse)
    note(registry, load(), ["detector"], NOW)
