"""A rule or label about a machine that nobody has seen is taken, with a warning."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator

import pytest
from elasticsearch import Elasticsearch

from deploy.embedded.endpoints import Endpoints
from pipelines.contracts.settings import load
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument
from tests.pipelines.cli.conftest import Run

pytestmark = pytest.mark.servers


@pytest.fixture
def site(endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A namespace in which there are verdicts of cpu and the whole of db-1."""
    namespace = f"seen{uuid.uuid4().hex[:8]}."
    monkeypatch.setenv("NEWNORMAL_KAFKA__BOOTSTRAP", endpoints.bootstrap)
    monkeypatch.setenv("NEWNORMAL_ELASTICSEARCH__URL", endpoints.elasticsearch_url)
    monkeypatch.setenv("NEWNORMAL_NAMESPACE", namespace)
    now = int(time.time() * 1000)
    tree = {"host.name": "db-1", "window_start": now - 1, "@timestamp": now, "kind": "normal", "probability": 1.0}
    metrics = [tree | {"metric": metric, "record_score": 0.0} for metric in ("cpu", "_machine")]
    sink = Sink(SinkConfig.of(load(), endpoints.elasticsearch_url))
    assert sink.write([SinkDocument(json.dumps(each).encode()) for each in metrics]).indexed == 2
    sink.close()
    yield
    with Elasticsearch(endpoints.elasticsearch_url) as client:
        client.indices.delete(index=[*client.indices.get_alias(name=f"{namespace}novelties")])
        client.indices.delete_index_template(name=f"newnormal-{namespace}novelties")


def test_what_nobody_has_seen_is_warned_of_and_taken_all_the_same(
    site: None, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = [
        ["rule", "add", "r", "--skip-result"],
        ["rule", "add", "r", "--skip-result", "--entity", "db-?"],
        ["rule", "add", "r", "--skip-result", "--entity", "db-1", "--metric", "c*"],
        ["label", "add", "true", "db-1", "cpu"],
        ["label", "add", "true", "db-1"],
    ]
    for arguments in quiet:
        code, _, err = run(*arguments)
        assert (code, err) == (0, "")
    warned = {
        "did you mean db-1?": ["rule", "add", "r", "--skip-result", "--entity", "bd-1"],
        "there is no verdict on a machine web-*": ["rule", "add", "r", "--skip-result", "--entity", "web-*"],
        "a metric mem of db-1": ["rule", "add", "r", "--skip-result", "--entity", "db-1", "--metric", "mem"],
        "has no effect, also not later": ["label", "add", "true", "web-1", "cpu"],
    }
    for telling, arguments in warned.items():
        code, out, err = run(*arguments)
        assert code == 0
        assert out
        assert err.startswith("warning: ")
        assert telling in err
    monkeypatch.setenv("NEWNORMAL_ELASTICSEARCH__URL", "http://127.0.0.1:9")
    code, out, err = run("rule", "add", "last", "--skip-result", "--entity", "web-1")
    assert (code, bool(out)) == (0, True)
    assert "could not be checked" in err
    assert "web-1" in run("rule", "list")[1]
