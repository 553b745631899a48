"""Versions of the chain: what each writes, reads and shares; what cannot be one; what a retirement frees."""

from __future__ import annotations

import itertools
import uuid
from pathlib import Path
from typing import Any, Self

import pytest
import structlog
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.records import Novelty
from pipelines.contracts.settings import Settings, load
from pipelines.contracts.version_names import VersionNames
from pipelines.jobs.links import LINKS
from pipelines.jobs.sink.document import SinkDocument
from pipelines.jobs.sink.read_alias import ReadAlias
from pipelines.jobs.sink.sink import Sink, SinkConfig
from pipelines.versions import retirement
from pipelines.versions.overview import view
from pipelines.versions.plan import differing, planned, same
from pipelines.versions.program import VersionProgram
from pipelines.versions.promotion import promote
from pipelines.versions.registry import Registry
from pipelines.versions.version import Version, from_job
from tests.dashboards.console_documents import NOVELTIES

NOW = 1_800_000_000_000
V1 = Version.first()


def made(name: str, job: str, base: Version = V1, **more: Any) -> Version:
    """A version that begins with a job."""
    return planned(name, base, job, more.get("start"), more.get("end"), more.get("settings", {}), NOW)


def test_two_versions_write_no_topic_index_or_folder_of_each_other(tmp_path: Path) -> None:
    plain, dotted = load(state_dir=tmp_path), load(state_dir=tmp_path, namespace="v2.")
    everyone = [s.of(VersionNames(name)) for s in (plain, dotted) for name in ("v1", "v2", "novelties")]
    for one, other in itertools.combinations(everyone, 2):
        written = [
            {s.writes(name) for name in topics.NAMES if name not in topics.OF_ALL_VERSIONS} for s in (one, other)
        ]
        assert written[0].isdisjoint(written[1])
        assert one.index != other.index
        assert one.owner != other.owner
        for inner, outer in itertools.permutations((one.folder("checkpoints"), other.folder("checkpoints")), 2):
            assert inner != outer
            assert inner not in outer.parents


def test_topics_of_agents_and_operators_belong_to_all_versions() -> None:
    second = load().of(VersionNames("v2"))
    for name in (*topics.FROM_AGENTS, *topics.FROM_OPERATORS, topics.GROUNDTRUTH, topics.LEDGER):
        assert second.reads(name) == second.writes(name) == name


@pytest.mark.parametrize("name", ["", "V2", "2", "v-2", "v2.", "a" * 31, "v2\n", "v2@"])
def test_a_name_that_could_be_taken_for_something_else_is_refused(name: str) -> None:
    with pytest.raises(NewnormalError, match="VERSION_INVALID"):
        made(name, "extractor")


@pytest.mark.parametrize(
    ("job", "jobs"),
    [
        ("normalizer", "normalizer log_normalizer extractor templates detector log_detector incidents sink"),
        ("log_normalizer", "normalizer log_normalizer extractor templates detector log_detector incidents sink"),
        ("templates", "extractor templates detector log_detector incidents sink"),
        ("detector", "detector log_detector incidents sink"),
        ("sink", "sink"),
    ],
)
def test_a_version_has_all_jobs_from_its_first_one_on_for_metrics_and_logs(job: str, jobs: str) -> None:
    assert from_job(job) == tuple(jobs.split())


def test_a_version_reads_what_its_base_writes_and_a_base_what_its_own_base_writes() -> None:
    second = made("v2", "extractor")
    third = made("v3", "detector", second)
    settings = load(namespace="site.").of(third.names)
    reads = {name: LINKS[name].reads(settings) for name in third.jobs}
    assert reads["detector"] == ("site.features-v2", "site.rules", "site.labels", "site.changes")
    assert reads["sink"] == ("site.novelties-v3", "site.incidents-v3", "site.changes")
    assert settings.reads("telemetry") == "site.telemetry"
    assert made("v4", "extractor", third).sources["telemetry"] == "v1"


@pytest.mark.parametrize(
    ("job", "settings", "accepted"),
    [
        ("extractor", {"kafka.partitions": 8}, "watermark, window, detector, incidents, engine"),
        ("extractor", {"namespace": "x."}, "watermark, window, detector, incidents, engine"),
        ("detector", {"window.size": "1m"}, "--job extractor"),
        ("extractor", {"watermark.out_of_orderness": "1m"}, "--job normalizer"),
        ("sink", {"detector.threshold": 30.0}, "--job detector"),
        ("incidents", {"detector.threshold": 30.0}, "--job detector"),
        ("sink", {"incidents.score": 10.0}, "--job incidents"),
    ],
)
def test_a_setting_that_the_version_cannot_change_is_refused_with_the_way_to_change_it(
    job: str, settings: dict[str, Any], accepted: str
) -> None:
    with pytest.raises(NewnormalError, match="VERSION_SETTINGS") as caught:
        made("v2", job, settings=settings)
    assert accepted in caught.value.accepted


def test_bounds_that_count_from_the_present_are_the_same_in_the_same_command_a_minute_later() -> None:
    """`--from -6h --until now`: a replay that was interrupted goes on; with other bounds it is another version."""
    hour = 3_600_000
    first = planned("whatif", V1, "extractor", NOW - 6 * hour, NOW, {}, NOW)
    for later in (NOW, NOW + 60_000):
        assert same(planned("whatif", V1, "extractor", later - 6 * hour, later, {}, later), first)
        assert same(planned("whatif", V1, "extractor", NOW - 6 * hour, NOW, {}, later), first), (
            "instants are themselves"
        )
        assert not same(planned("whatif", V1, "extractor", later - 5 * hour, later, {}, later), first)
        assert not same(planned("whatif", V1, "extractor", later - 6 * hour, None, {}, later), first)
        assert not same(planned("whatif", V1, "extractor", None, later, {}, later), first)


def test_the_first_job_takes_the_windows_within_the_bounds_whichever_it_is() -> None:
    """From 12:00 to 13:00, the window 12:59:50 to 13:00:00 lies within, and 11:59:50 to 12:00:00 does not."""
    for job, ends in (("extractor", "time >= 5 AND time < 9"), ("detector", "window_end > 5 AND window_end <= 9")):
        version = made("v2", job, start=5, end=9)
        found = VersionProgram(version).job(job, load().of(version.names, version.end))
        assert found is not None
        assert [s.steps[0].condition for s in found.inputs if not s.broadcast] == [ends]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("job", "bounds"), [("extractor", {"start": 5, "end": 5}), ("sink", {"start": 5}), ("sink", {"end": 5})]
)
def test_bounds_that_give_nothing_are_refused(job: str, bounds: dict[str, int]) -> None:
    with pytest.raises(NewnormalError, match="REPLAY_BOUNDS"):
        made("v2", job, **bounds)


def test_a_version_inherits_the_settings_of_its_base_and_overrides_what_the_user_has(tmp_path: Path) -> None:
    config = tmp_path / "new.toml"
    config.write_text('[detector]\nthreshold = 60.0\n[detector.family]\n"cpu.*" = "mixture"\n')
    second = made("v2", "extractor", settings=differing(config))
    third = made("v3", "detector", second, settings={"detector.emit": "novel"})
    settings = third.load(**{"detector.threshold": 40.0, "namespace": "site."})
    assert (settings.detector.threshold, settings.detector.emit) == (60.0, "novel")
    assert settings.detector.family == {"cpu.*": "mixture"}
    assert (settings.version, settings.namespace) == ("v3", "site.")


def test_a_version_of_another_release_runs_without_the_settings_that_this_one_does_not_know(tmp_path: Path) -> None:
    family = {"cpu.*": "mixture"}
    stored = {
        "detector.threshold": 60.0,
        "detector.gone": 1,
        "gone.section": True,
        "detector.family": family,
    }
    later = {"name": "v2", "base": "v1", "jobs": ["sink"], "settings": stored, "ran": {"window.gone": "1s"}, "more": 1}
    with structlog.testing.capture_logs() as told:
        settings = Version(**later).load(state_dir=tmp_path)  # type: ignore[arg-type]
    assert (settings.detector.threshold, settings.detector.family) == (60.0, family)
    assert [each["settings"] for each in told] == ["window.gone", "detector.gone, gone.section"]


def test_a_section_without_settings_differs_in_nothing_and_one_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[engine]\n# max_records = 4\n[detector]\nthreshold = 30.0\n")
    assert differing(config) == {"detector.threshold": 30.0}
    config.write_text("[gone]\n")
    with pytest.raises(NewnormalError, match="SETTING_INVALID: gone is no setting"):
        differing(config)


def test_what_a_new_version_is_given_must_be_settings_all_the_same(tmp_path: Path) -> None:
    config = tmp_path / "new.toml"
    config.write_text("[detector]\nthreshold = 60.0\ntreshold = 50.0\n")
    with pytest.raises(NewnormalError, match=r"SETTING_INVALID: detector\.treshold is no setting"):
        differing(config)


def test_only_the_first_jobs_are_held_to_the_event_times_and_rules_of_all_times_count() -> None:
    program = VersionProgram(made("v2", "detector", start=1_000, end=2_000))
    settings = load().of(program.version.names)
    assert program.first == ("detector", "log_detector")
    job = program.job("detector", settings)
    assert job is not None
    steps = {source.broadcast: source.steps for source in job.inputs}
    assert len(steps[False]) == 1
    assert steps[True] == ()
    assert program.version.load().end == 2_000, "so that no machine is absent because the version ends"
    later = VersionProgram(made("v2", "extractor", start=1_000)).job("detector", settings)
    assert later is not None
    assert all(not source.steps for source in later.inputs)


def test_a_retirement_keeps_what_other_versions_read_and_frees_the_rest() -> None:
    second, third = made("v2", "detector"), made("v3", "sink")
    settings = load()
    plan = retirement.planned(V1, [V1, second], settings)
    assert plan.kept == ("normalizer", "log_normalizer", "extractor", "templates", "calls", "places", "archive")
    assert plan.freed == ("detector", "log_detector", "incidents", "sink")
    assert plan.topics == (
        "detector.state",
        "features.logs.late",
        "incidents",
        "novelties",
        "novelties.late",
        "novelties.news",
        "novelties.news.logs",
    )
    assert plan.indices == ("novelties-1*", "novelties-2*", "incidents-1*", "incidents-2*")
    alone = retirement.planned(second, [V1, second, third], settings)
    assert alone.kept == ()
    assert "deadletter-v2" in alone.topics
    assert all(topic.endswith("-v2") for topic in alone.topics)
    assert retirement.planned(V1, [V1, third], settings).freed == ("sink",)


def test_a_version_whose_every_job_is_read_cannot_be_retired() -> None:
    second = made("v2", "detector")
    left = V1.model_copy(update={"jobs": ("normalizer", "log_normalizer", "extractor", "templates")})
    with pytest.raises(NewnormalError, match=r"VERSION_NEEDED.*v2"):
        retirement.planned(left, [left, second], load())


NO_VERSIONS = [
    b'{"name":"x"}',
    b"no json",
    b"[1]",
    b'"text"',
    b"\xff\xfe",
    b"newnormal:record-too-large:950000000",
    b'{"name":"v2","jobs":["sink"]}',
    b'{"name":"x","jobs":["nobody"]}',
    b'{"name":"x","jobs":["sink"],"sources":{"novelties":"../../etc"}}',
    b'{"name":"x","jobs":["sink"],"settings":{"kafka.bootstrap":"elsewhere:9092"}}',
    b'{"name":"x","jobs":["sink"],"created":"long ago"}',
]


@pytest.mark.servers
def test_a_message_that_is_no_version_hides_no_other_one_and_a_newer_one_or_a_tombstone_heals_it(
    endpoints: Endpoints,
) -> None:
    bootstrap = endpoints.bootstrap
    settings = endpoints.settings(load(namespace=f"t{uuid.uuid4().hex[:8]}."))
    registry, topic = Registry(settings), settings.topic(topics.VERSIONS)
    registry.put(made("v2", "detector"))

    def write(key: bytes, value: bytes | None) -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(topic, value, key=key)
        assert not producer.flush(30)

    for value in NO_VERSIONS:
        write(b"x", value)
        assert set(registry.all()) == {"v1", "v2"}, value
    for key in (b"", b"\xff", b"../x", b"V3"):
        write(key, b'{"name":"%b","jobs":["sink"]}' % key.replace(b"\xff", b"?"))
        assert set(registry.all()) == {"v1", "v2"}, key
    registry.put(made("x", "sink"))
    assert set(registry.all()) == {"v1", "v2", "x"}
    write(b"x", b"{}")
    write(b"x", None)
    assert set(registry.all()) == {"v1", "v2"}


@pytest.mark.servers
def test_the_registry_keeps_the_newest_entry_of_each_version(endpoints: Endpoints) -> None:
    settings: Settings = load(namespace=f"r{uuid.uuid4().hex[:8]}.", **{"kafka.bootstrap": endpoints.bootstrap})
    registry = Registry(settings)
    assert list(registry.all()) == ["v1"]
    second = made("v2", "detector", settings={"detector.threshold": 60.0})
    registry.put(second)
    registry.put(second.model_copy(update={"ended": True}))
    assert registry.get("v2").ended
    assert Registry(settings).get("v2").settings == {"detector.threshold": 60.0}
    registry.remove("v2")
    registry.remove("v1")
    assert registry.all() == {}
    with pytest.raises(NewnormalError, match="VERSION_UNKNOWN"):
        registry.get("v2")


@pytest.mark.servers
def test_a_version_whose_jobs_have_not_started_yet_is_looked_at_like_any_other(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    """A fork of a savepoint has no topics before its first start."""
    addresses: dict[str, Any] = {
        "kafka.bootstrap": endpoints.bootstrap,
        "elasticsearch.url": endpoints.elasticsearch_url,
    }
    settings = load(namespace=f"r{uuid.uuid4().hex[:8]}.", state_dir=tmp_path, **addresses)
    seen = view(made("v2", "detector"), settings)
    assert (seen.shown, seen.documents, seen.lag, seen.pids) == (False, 0, 0, [])


@pytest.mark.servers
def test_a_version_that_is_promoted_while_it_is_retired_stays_and_is_shown(
    endpoints: Endpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers would see nothing, as the alias showed indices that are deleted."""
    url = endpoints.elasticsearch_url
    addresses: dict[str, Any] = {"kafka.bootstrap": endpoints.bootstrap, "elasticsearch.url": url}
    settings, v2 = load(namespace=f"c{uuid.uuid4().hex[:8]}.", state_dir=tmp_path, **addresses), made("v2", "detector")
    for version in (V1, v2):
        sink = Sink(SinkConfig(url, index=settings.of(version.names).index, alias=settings.alias), Novelty)
        assert sink.write([SinkDocument(NOVELTIES[0].to_json())]).indexed == 1
        sink.close()
    promote(V1, [v2], settings, NOW)

    class Meanwhile(retirement.Ownership):
        def __enter__(self) -> Self:
            promote(v2, [V1], settings, NOW)
            return super().__enter__()

    monkeypatch.setattr(retirement, "Ownership", Meanwhile)
    with pytest.raises(NewnormalError) as refused:
        retirement.retire(retirement.planned(v2, [V1], settings), Registry(settings), settings)
    assert refused.value.code == "VERSION_SHOWN"
    with elasticsearch_client(url, request_timeout=30, max_retries=0) as client:
        assert ReadAlias(client, settings.alias).shows(settings.of(v2.names).index)
        assert client.count(index=settings.alias)["count"] == 1
        for name in list(client.indices.get(index=f"{settings.namespace}*")):
            client.indices.delete(index=name)
