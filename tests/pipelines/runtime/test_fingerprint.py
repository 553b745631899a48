"""A start whose settings do not fit the stored state is refused; settings that may change are accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.kafka.admin import ensure_topics
from engine.spec.errors import NewnormalError
from pipelines.contracts.setting_errors import leaves
from pipelines.contracts.settings import Settings, load
from pipelines.jobs.chain import JOBS
from pipelines.runtime.fingerprint import check, check_partitions

OTHER: dict[str, object] = {
    "namespace": "b.", "state_dir": "elsewhere", "kafka.bootstrap": "b:1", "kafka.partitions": 8,
    "kafka.replication": 2, "elasticsearch.url": "http://b:1", "elasticsearch.index": "b",
    "elasticsearch.refresh": "1s", "embedded.kafka_heap": "1g", "embedded.elasticsearch_heap": "1g",
    "embedded.address": "0.0.0.0", "embedded.elasticsearch_login": False,
    "embedded.elasticsearch_password_file": "word",
    "embedded.kafka_published": "10.0.0.1:9094",
    "engine.shards": 4, "engine.cores": 1, "engine.trigger": "1s", "engine.max_records": 1, "engine.max_messages": 1,
    "engine.max_bytes": 1_000_000,
    "engine.driver_memory": "1g", "engine.on_missing_offsets": "earliest", "engine.output": "shards",
    "engine.jvm_optimizes": "never",
    "engine.memory": "small",
    "watermark.out_of_orderness": "1h", "watermark.idle_after": "1h",
    "watermark.max_ahead": "1h", "watermark.earliest": "2020-01-01", "window.size": "30s", "window.every": "5s",
    "window.allowed_lateness": "1h", "detector.threshold": 10.0, "detector.false_alarms": 0.5, "detector.emit": "novel",
    "detector.context_before": 6, "detector.context_after": 3, "detector.context_always": "a/*",
    "detector.forget": "30d",
    "detector.timezone": "Asia/Kolkata", "detector.family": {"a*": "count"},
    "detector.peers_by": "tier",
    "detector.bounds": {"a*": "0..5"}, "detector.full_within": "2d", "console.host": "::1", "console.port": 1,
    "gateway.host": "127.0.0.2", "gateway.port": 1, "gateway.published": "127.0.0.1",
    "gateway.token": "another-token-of-24-chars", "gateway.token_file": "elsewhere", "gateway.max_body": 1000,
    "gateway.max_decompressed": 1000, "gateway.max_in_flight": 10**9, "gateway.rate": 1, "gateway.timeout": "1s",
    "gateway.statsd_port": 8125, "gateway.statsd_interval": "30s", "gateway.statsd_series": 7,
    "gateway.syslog_port": 5514, "gateway.syslog_tls_port": 6514, "gateway.gelf_port": 12201,
    "gateway.tls_certificate": "/c", "gateway.tls_key": "/k", "gateway.tls_clients": "/a",
    "console.published": "127.0.0.1", "console.hosts": "a", "console.user_header": "X-User", "console.proxies": "::1",
    "console.token": "another-token-of-24-chars", "console.token_file": "elsewhere",
    "view.embedded": False, "view.host": "::1", "view.port": 1, "view.hosts": "a", "view.windows": 1,
    "view.published": "127.0.0.1", "view.token": "another-token-of-24-chars", "view.token_file": "elsewhere",
    "scores.series": "a/*", "scores.novel": True, "scores.most": 7, "scores.remote_write_url": "http://b:1/write",
    "log.level": "debug", "log.format": "json", "buffer.size": "1g", "buffer.age": "2d",
    "kafka.retention": "1d", "archive.path": "elsewhere", "archive.every": "5m", "retention.indices": "1d",
    "retention.archive": "1d", "retention.late": "1d", "retention.every": "5m", "elasticsearch.incidents": "b",
    "elasticsearch.changes": "c",
    "incidents.false_pages": 9.0,
    "incidents.score": 10.0, "incidents.series": 2, "incidents.together": "2m", "incidents.related": "5m",
    "notify.host": "::1", "notify.port": 1, "notify.published": "127.0.0.1",
    "notify.token": "another-token-of-24-chars", "notify.token_file": "elsewhere", "notify.rate": 1, "notify.per": "1m",
    "notify.channels": {"a": {"kind": "webhook", "url": "http://b:1"}}, "notify.quiet": "22:00-07:00",
    "notify.timezone": "Asia/Kolkata", "notify.breakthrough": "major", "notify.console": "http://b:1",
    "notify.routes": [{"channels": []}], "notify.matching": "all", "notify.dashboard": "http://b:1",
    "notify.runbooks": [{"url": "http://b:1"}],
    "notify.heartbeat_url": "http://b:1", "notify.heartbeat_url_file": "/f", "notify.heartbeat_every": "2m",
    "input.machine": "host", "input.pods": False, "input.left_out": "dc", "input.folded": "id",
    "input.text_left_out": "a.*", "input.counters": "a.*", "input.collectd_rates": False, "input.statsd_changes": False,
    "input.csv_time": "when", "input.csv_machine": "node",
    "input.csv_metric": "what", "input.csv_labels": "disk", "input.csv_separator": "tab", "input.csv_decimal": "comma",
    "input.csv_dates": "day-first",
    "input.max_parts": 1000, "input.timezone": "Asia/Kolkata", "input.default_machine": "a",
    "input.max_series": 1000, "input.max_series_per_machine": 1000,
    "spark.master": "spark://b:7077", "spark.driver_host": "b", "spark.checkpoints": "elsewhere",
    "incidents.quiet": "7m", "incidents.reopen": "2h", "incidents.longest": "2d",
    "incidents.silence": "7m", "topology.infer": False,
}  # fmt: skip
"""Another value of each setting."""

KAFKA, HTTPS = {"kafka.bootstrap": "b:1"}, {"elasticsearch.url": "https://b:1"}
SCRAM = {
    **KAFKA, "kafka.security_protocol": "SASL_SSL", "kafka.sasl_username": "me", "kafka.sasl_password": "word of mine"
}  # fmt: skip
OAUTH = {
    **KAFKA, "kafka.security_protocol": "SASL_SSL", "kafka.sasl_mechanism": "OAUTHBEARER", "kafka.oauth_scope": "all",
    "kafka.oauth_token_url": "http://b:1", "kafka.oauth_client_id": "me", "kafka.oauth_client_secret": "word of mine",
}  # fmt: skip
TLS = {**KAFKA, "kafka.security_protocol": "SSL"}
MUTUAL = {**TLS, "kafka.ssl_certificate_file": "ca.pem", "kafka.ssl_key_file": "key.pem"}
USER = {**HTTPS, "elasticsearch.user": "me", "elasticsearch.password": "word of mine"}
KEY = {**HTTPS, "elasticsearch.api_key": "word of mine"}
PUSHED = {"scores.remote_write_url": "http://b:1/write"}
CLUSTER = {"spark.master": "spark://a:7077"}
TOGETHER: dict[str, dict[str, object]] = {
    "spark.packages": {**CLUSTER, "spark.packages": "elsewhere.tar"},
    "spark.python": {**CLUSTER, "spark.python": "python3"},
    "spark.options": {**CLUSTER, "spark.options": {"spark.cores.max": "2"}},
    "kafka.security_protocol": TLS, "kafka.sasl_mechanism": {**SCRAM, "kafka.sasl_mechanism": "PLAIN"},
    "kafka.sasl_username": SCRAM, "kafka.sasl_password": SCRAM,
    "kafka.sasl_password_file": {**SCRAM, "kafka.sasl_password": None, "kafka.sasl_password_file": "word"},
    "kafka.ssl_ca_file": {**TLS, "kafka.ssl_ca_file": "ca.pem"},
    "kafka.ssl_certificate_file": MUTUAL, "kafka.ssl_key_file": MUTUAL,
    "kafka.ssl_key_password": {**MUTUAL, "kafka.ssl_key_password": "word of mine"},
    "kafka.ssl_key_password_file": {**MUTUAL, "kafka.ssl_key_password_file": "word"},
    "kafka.oauth_token_url": OAUTH, "kafka.oauth_client_id": OAUTH, "kafka.oauth_client_secret": OAUTH,
    "kafka.oauth_client_secret_file": {
        **OAUTH, "kafka.oauth_client_secret": None, "kafka.oauth_client_secret_file": "word"
    }, "kafka.oauth_scope": OAUTH,
    "scores.remote_write_authorization_file": {**PUSHED, "scores.remote_write_authorization_file": "word"},
    "scores.remote_write_tenant": {**PUSHED, "scores.remote_write_tenant": "mine"},
    "elasticsearch.user": USER, "elasticsearch.password": USER,
    "elasticsearch.password_file": {**USER, "elasticsearch.password": None, "elasticsearch.password_file": "word"},
    "elasticsearch.api_key": KEY, "elasticsearch.api_key_file": {**HTTPS, "elasticsearch.api_key_file": "word"},
    "elasticsearch.ca_file": {**HTTPS, "elasticsearch.ca_file": "ca.pem"},
    "elasticsearch.certificate_file": {
        **HTTPS, "elasticsearch.certificate_file": "ca.pem", "elasticsearch.key_file": "key.pem"
    },
    "elasticsearch.key_file": {
        **HTTPS, "elasticsearch.certificate_file": "ca.pem", "elasticsearch.key_file": "key.pem"
    },
}  # fmt: skip
"""Settings that are refused without others, each with those."""
FILES = {
    "word": "word of mine\n", "ca.pem": "-----BEGIN CERTIFICATE-----\n", "key.pem": "-----BEGIN PRIVATE KEY-----\n"
}  # fmt: skip


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that settings of logins name, in the working directory."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


FIXED = {
    "window.size": {"extractor", "templates", "detector", "log_detector"},
    "window.every": {"extractor", "detector"},
    "window.allowed_lateness": {"extractor"},
    "detector.timezone": {"detector"},
}
"""What state depends on: the length and slide of the slices in it, how long it keeps them, the hours it learned."""


def begun(checkpoints: Path, settings: Settings) -> None:
    """Checkpoints as Spark leaves them, of all jobs."""
    check(settings, checkpoints, JOBS)
    for job in JOBS:
        (checkpoints / job).mkdir(parents=True, exist_ok=True)
        (checkpoints / job / "metadata").write_text('{"id": "x"}')


@pytest.mark.parametrize("name", dict(leaves(Settings)))
@pytest.mark.parametrize("job", JOBS)
@pytest.mark.usefixtures("files")
def test_a_changed_setting_is_refused_exactly_where_state_depends_on_it(tmp_path: Path, name: str, job: str) -> None:
    begun(tmp_path, load())
    settings = load(**TOGETHER.get(name) or {name: OTHER[name]})
    if job not in FIXED.get(name, ()):
        check(settings, tmp_path, [job])
        return
    with pytest.raises(NewnormalError) as caught:
        check(settings, tmp_path, [job])
    error = caught.value
    assert error.code == "SETTINGS_FIXED"
    assert f"{name} = {OTHER[name]}, but the state of {job} was made with " in error.what
    assert error.now == "nothing was started"


def test_the_message_has_old_and_new_value_and_what_to_do(tmp_path: Path) -> None:
    begun(tmp_path, load(**{"window.size": "10s"}))
    with pytest.raises(NewnormalError) as caught:
        check(load(**{"window.size": "30s", "window.every": "10s"}), tmp_path, ["extractor", "detector"])
    assert caught.value.what == "window.size = 30s, but the state of extractor, detector was made with 10s"
    replay = "`newnormal replay --as v2`, which computes a version with the new values"
    assert caught.value.accepted == f"window.size = 10s; or {replay}"


def test_a_refused_start_changes_nothing_and_the_old_value_still_starts(tmp_path: Path) -> None:
    begun(tmp_path, load())
    for _ in range(2):
        with pytest.raises(NewnormalError):
            check(load(**{"window.size": "30s"}), tmp_path, JOBS)
    check(load(), tmp_path, JOBS)


def test_a_damaged_file_of_settings_stops_the_start_and_is_not_taken_for_none(tmp_path: Path) -> None:
    begun(tmp_path, load())
    file = tmp_path / "extractor" / "settings.json"
    file.write_text(file.read_text()[:20])
    with pytest.raises(NewnormalError, match="CHECKPOINT_UNREADABLE") as caught:
        check(load(**{"window.size": "30s"}), tmp_path, JOBS)
    assert caught.value.where == str(file)


@pytest.mark.parametrize(
    "same", [{"window.size": "10000ms"}, {"window.every": "10s"}, {"window.allowed_lateness": "600s"}]
)
def test_another_spelling_of_the_same_value_is_no_change(tmp_path: Path, same: dict[str, Any]) -> None:
    begun(tmp_path, load())
    check(load(**same), tmp_path, JOBS)


def test_a_job_that_was_never_started_takes_any_value(tmp_path: Path) -> None:
    check(load(), tmp_path, ["extractor"])
    check(load(**{"window.size": "30s"}), tmp_path, ["extractor"])


def test_a_checkpoint_that_was_deleted_takes_any_value_but_not_that_of_the_next_job(tmp_path: Path) -> None:
    begun(tmp_path, load())
    for file in (tmp_path / "extractor").iterdir():
        file.unlink()
    (tmp_path / "extractor").rmdir()
    settings = load(**{"window.size": "30s"})
    check(settings, tmp_path, ["extractor"])
    with pytest.raises(NewnormalError, match="state of detector was made with 10s"):
        check(settings, tmp_path, ["extractor", "detector"])


def test_a_shorter_lateness_is_taken_and_the_longer_one_then_refused(tmp_path: Path) -> None:
    """Windows that a shorter lateness gave up are no longer in the state."""
    begun(tmp_path, load())
    check(load(**{"window.allowed_lateness": "1m"}), tmp_path, JOBS)
    with pytest.raises(NewnormalError, match=r"window\.allowed_lateness = 10m, .* made with 1m"):
        check(load(), tmp_path, JOBS)


def test_a_checkpoint_of_an_older_version_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "extractor").mkdir()
    (tmp_path / "extractor" / "metadata").write_text("{}")
    check(load(), tmp_path, JOBS)
    with pytest.raises(NewnormalError, match="SETTINGS_FIXED"):
        check(load(**{"window.size": "30s"}), tmp_path, JOBS)


@pytest.mark.servers
def test_topics_with_another_number_of_partitions_stop_the_start(endpoints: Any) -> None:
    settings = endpoints.settings(load(**{"namespace": "fingerprint.", "kafka.partitions": 2}))
    ensure_topics(settings.kafka.bootstrap, {t: {} for make in JOBS.values() for t in make(settings).topics}, 2)
    check_partitions(settings, JOBS)
    other = endpoints.settings(load(**{"namespace": "fingerprint.", "kafka.partitions": 6}))
    with pytest.raises(
        NewnormalError, match=r"kafka\.partitions = 6, but .*fingerprint\.telemetry has 2 partitions"
    ) as caught:
        check_partitions(other, ["extractor"])
    assert caught.value.code == "PARTITIONS_FIXED"
    assert caught.value.accepted.startswith("2; or another namespace")
