"""Changes of a site in Elasticsearch, as the sink's job writes the messages of their topic."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from structlog.testing import capture_logs

from engine.formats.heartbeat import HEARTBEAT
from pipelines.contracts import topics
from pipelines.contracts.records import Change
from pipelines.contracts.settings import load
from pipelines.doctor.context import Context
from pipelines.doctor.elasticsearch.indices import aliases, indices
from pipelines.jobs.sink.fast_reading import fast_reader
from pipelines.jobs.sink.job import SinkJob, SinkReport
from pipelines.retention.retention import Retention
from pipelines.runtime.status import StatusCollector
from pipelines.versions.registry import Registry
from tests.pipelines.sink.conftest import NOW, novelty
from tests.security.certificates import Authority
from tests.security.elasticsearch_proxy import Guard, guarded_elasticsearch

MONTH = 31 * 86_400_000


def test_changes_are_read_by_pydantic_whose_records_know_which_of_two_counts() -> None:
    assert fast_reader(Change) is None


@pytest.mark.servers
def test_of_each_change_the_latest_is_stored_once_and_what_is_none_is_left_to_another_job(
    endpoints: Any, tmp_path: Path
) -> None:
    name = f"t{uuid.uuid4().hex[:8]}."
    settings = load(**{"namespace": name, "state_dir": tmp_path, "elasticsearch.url": endpoints.elasticsearch_url})
    reports: list[SinkReport] = []
    job = SinkJob(settings, None, reports.append)  # type: ignore[arg-type]
    first = Change(id="ci/1", time=NOW, message="cart 1.4", machines=["web-*"], kind="deployment")
    ended = first.model_copy(update={"end": NOW + 60_000})
    later = Change(id="ci/2", time=NOW, message="flag on")
    earlier = later.model_copy(update={"time": NOW - 5_000, "message": "flag off"})
    values = [first.to_json(), ended.to_json(), later.to_json(), earlier.to_json(), HEARTBEAT, None, b"{}", b"no"]
    topic = settings.reads(topics.CHANGES)
    messages = [(topic, value) for value in values] + [(settings.reads(topics.NOVELTIES), novelty("a").raw)]
    rows = pa.table({
        "topic": [name for name, _ in messages], "value": [value for _, value in messages],
        "partition": [0] * len(messages), "offset": list(range(len(messages))), "arrived": [NOW] * len(messages),
    })  # fmt: skip
    job.write(rows.slice(0, 0), 0)  # as after heartbeats alone
    with Elasticsearch(endpoints.elasticsearch_url) as client:
        made = client.indices.get_index_template(name=f"newnormal-{name}*")["index_templates"]
        assert len(made) == 3, "what can be prepared before there is a document, delays none"
    for batch in range(1, 3):
        job.write(rows, batch)
    job.close()
    with Elasticsearch(endpoints.elasticsearch_url) as client:
        client.indices.refresh(index=f"{name}*")
        hits = client.search(index=settings.change_alias, size=10)["hits"]["hits"]
        assert {hit["_id"]: Change.model_validate(hit["_source"]) for hit in hits} == {"ci/1": ended, "ci/2": later}
        (index,) = {hit["_index"] for hit in hits}
        assert index.removeprefix(f"{settings.change_alias}-").count(".") == 1, "an index for each month"
        assert client.count(index=settings.alias)["count"] == 1
        for base in client.indices.get(index=f"{name}*"):
            client.indices.delete(index=base)
        client.indices.delete_index_template(name=f"newnormal-{name}*")
    assert [report.outcome.rejected for report in reports] == [(), ()]
    assert [report.outcome.superseded for report in reports] == [2, 2], "what was sent again, and what was earlier"
    assert [report.records_in for report in reports] == [5, 5], "a heartbeat is no message"


@pytest.mark.servers
def test_with_all_privileges_for_changes_but_to_write_them_the_rest_is_stored(endpoints: Any, tmp_path: Path) -> None:
    """Templates are a privilege on the cluster, so an account of a release that stored no changes may make theirs."""
    name, authority = f"t{uuid.uuid4().hex[:8]}.", Authority(tmp_path / "authority")
    guard = Guard("nn", "hush", "", forbidden=f"{name}changes", manages=True)
    with guarded_elasticsearch(endpoints.elasticsearch_url, authority.issue("elasticsearch"), guard):
        login = {"url": guard.url, "user": "nn", "password": "hush", "ca_file": str(authority.file)}
        settings = load(**{
            "namespace": name, "state_dir": tmp_path, "kafka.bootstrap": endpoints.bootstrap,
            **{f"elasticsearch.{key}": value for key, value in login.items()},
        })  # fmt: skip
        reports: list[SinkReport] = []
        job = SinkJob(settings, None, reports.append)  # type: ignore[arg-type]
        values = {topics.CHANGES: Change(id="ci/1", time=NOW, message="cart 1.4").to_json(),
                  topics.NOVELTIES: novelty("a").raw}  # fmt: skip
        rows = pa.table({
            "topic": [settings.reads(topic) for topic in values], "value": list(values.values()),
            "partition": [0, 0], "offset": [0, 1], "arrived": [NOW, NOW],
        })  # fmt: skip
        with capture_logs() as said:
            job.write(rows, 0)
        job.close()
        (told,) = [each for each in said if each["event"] == "changes are not stored; verdicts and incidents are"]
        assert told["lacking"] == f"{name}changes*" and "unauthorized for user [nn]" in told["reason"]
        assert reports[0].outcome.indexed == 1
        client = Context(settings, ()).elasticsearch
        client.indices.refresh(index=settings.alias)
        assert client.count(index=settings.alias)["count"] == 1
        for index in client.indices.get(index=f"{name}*"):
            client.indices.delete(index=index)
        client.indices.delete_index_template(name=f"newnormal-{name}*")


@pytest.mark.servers
def test_without_privileges_for_changes_the_rest_is_stored_and_it_is_said_what_is_missing(
    endpoints: Any, tmp_path: Path
) -> None:
    """The account is of a release that stored no changes. What is refused is refused as Elasticsearch does it."""
    name, authority = f"t{uuid.uuid4().hex[:8]}.", Authority(tmp_path / "authority")
    guard = Guard("nn", "hush", "", forbidden=f"{name}changes")
    with guarded_elasticsearch(endpoints.elasticsearch_url, authority.issue("elasticsearch"), guard):
        login = {"url": guard.url, "user": "nn", "password": "hush", "ca_file": str(authority.file)}
        settings = load(**{
            "namespace": name, "state_dir": tmp_path, "retention.indices": "1d", "kafka.bootstrap": endpoints.bootstrap,
            **{f"elasticsearch.{key}": value for key, value in login.items()},
        })  # fmt: skip
        reports: list[SinkReport] = []
        job = SinkJob(settings, None, reports.append)  # type: ignore[arg-type]
        change = Change(id="ci/1", time=NOW, message="cart 1.4")
        values = {topics.CHANGES: change.to_json(), topics.NOVELTIES: novelty("a").raw}
        rows = pa.table({
            "topic": [settings.reads(topic) for topic in values], "value": list(values.values()),
            "partition": [0, 0], "offset": [0, 1], "arrived": [NOW, NOW],
        })  # fmt: skip
        with capture_logs() as said:
            for batch in range(3):
                job.write(rows, batch)
        assert [each["event"] for each in said] == ["changes are not stored; verdicts and incidents are"]
        assert said[0]["lacking"] == f"{name}changes*" and "unauthorized for user [nn]" in said[0]["reason"]
        assert reports[-1].missing.startswith(
            f"changes are not stored, as the account lacks privileges for {name}changes*"
        )
        status = StatusCollector(["sink"], 0, 0)
        status.sink(reports[-1])
        assert status.tallies["sink"].last_error == reports[-1].missing
        context = Context(settings, ())
        (finding,) = indices(context)
        assert (finding.code, finding.where) == ("CHANGES_NOT_STORED", f"{name}changes*")
        assert "unauthorized" in finding.what and aliases(context) == []
        old = context.elasticsearch.indices.create(index=f"{settings.index}-2020.01.01")["index"]
        assert [each.name for each in Retention(settings, Registry(settings)).find(NOW)] == [old]
        guard.forbidden = ""
        job.write(rows, 3)
        job.close()
        assert reports[-1].missing == "" and context.elasticsearch.count(index=settings.change_alias)["count"] == 1
        client = context.elasticsearch
        for index in client.indices.get(index=f"{name}*"):
            client.indices.delete(index=index)
        client.indices.delete_index_template(name=f"newnormal-{name}*")
        context.close()
