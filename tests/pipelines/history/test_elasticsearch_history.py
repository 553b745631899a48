"""Documents of Metricbeat in a real Elasticsearch become the samples that they would have become live."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from threading import Event
from typing import Any

import orjson
import pytest
from elasticsearch import helpers

from deploy.embedded.endpoints import Endpoints
from engine.address import Address
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.settings import Settings
from pipelines.contracts.settings.logins.elasticsearch import elasticsearch_address
from pipelines.contracts.settings.servers import ElasticsearchSettings
from pipelines.history import elasticsearch
from pipelines.history.elasticsearch import ElasticsearchHistory, index_name
from pipelines.history.intake import Intake, TooMuchError
from tests.pipelines.history.samples import MINUTE, START, rows

pytestmark = pytest.mark.servers

INDEX = "metricbeat-history-test"
END = START + 120 * MINUTE


def document(at: int, machine: str, n: int) -> dict[str, Any]:
    return {
        "@timestamp": iso(at), "host": {"name": machine}, "metricset": {"name": "network", "period": 10_000},
        "event": {"module": "system", "dataset": "system.network"},
        "system": {"network": {"name": f"eth{n % 2}", "in": {"bytes": n * 10}}, "load": {"1": n / 7}},
    }  # fmt: skip


_RNG = random.Random(3)
DOCUMENTS = [document(START + n // 2 * 20_000, f"web-{n % 2}", n) for n in range(720)]
DOCUMENTS += [{"@timestamp": iso(START + 5), "message": "a line", "log": {"level": "info"}}]
_RNG.shuffle(DOCUMENTS)


@pytest.fixture(scope="module")
def address(endpoints: Endpoints) -> Iterator[Address]:
    found = elasticsearch_address(ElasticsearchSettings(url=endpoints.elasticsearch_url))
    client = elasticsearch_client(found, request_timeout=120.0)
    helpers.bulk(client, ({"_index": INDEX, "_source": each} for each in DOCUMENTS), refresh=True)
    yield found
    client.indices.delete(index=INDEX)
    client.close()


@pytest.mark.parametrize("page", [7, 1_000])
def test_documents_become_the_samples_that_they_become_live_whatever_the_slices_and_pages(
    address: Address, settings: Settings, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(elasticsearch, "_PAGE", page)
    intake, normal = Intake(settings), Intake(settings)
    cuts = [START, START + 20_000, START + 50 * MINUTE + 1, END]
    with closing(ElasticsearchHistory(address, INDEX, "", Event())) as source:
        found = sorted(row for a, b in pairwise(cuts) for row in rows(source.read(a, b, intake)))
    assert found == rows(normal.records(map(orjson.dumps, DOCUMENTS), END))
    assert len(found) == 2 * 720
    assert {kind for *_, kind in found} == {"gauge", "counter"}
    assert intake.refused == normal.refused == {"FORMAT_UNKNOWN": 1}


def test_a_query_leaves_documents_out(address: Address, settings: Settings) -> None:
    with closing(ElasticsearchHistory(address, INDEX, "host.name.keyword:web-1", Event())) as source:
        found = rows(source.read(START, END, Intake(settings)))
    assert {machine for _, machine, *_ in found} == {"web-1"}


def test_a_slice_of_too_many_documents_is_divided(
    address: Address, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elasticsearch, "MOST_DOCUMENTS", 100)
    with closing(ElasticsearchHistory(address, INDEX, "", Event())) as source, pytest.raises(TooMuchError):
        source.read(START, END, Intake(settings))


def test_an_index_that_is_not_there_is_refused(address: Address, settings: Settings) -> None:
    with (
        closing(ElasticsearchHistory(address, "nothing-here", "", Event())) as source,
        pytest.raises(NewnormalError, match="IMPORT_REFUSED"),
    ):
        source.read(START, END, Intake(settings))


def test_a_wrong_password_is_refused_and_not_shown(endpoints: Endpoints, settings: Settings) -> None:
    host = endpoints.elasticsearch_url.rpartition("@")[2]
    wrong = elasticsearch_address(ElasticsearchSettings(url=f"http://me:s3cret@{host}"))
    with (
        closing(ElasticsearchHistory(wrong, INDEX, "", Event())) as source,
        pytest.raises(NewnormalError, match="IMPORT_LOGIN") as caught,
    ):
        source.read(START, END, Intake(settings))
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a?x"])
def test_a_wrong_name_of_an_index_is_refused(name: str) -> None:
    with pytest.raises(NewnormalError, match="IMPORT_OPTION"):
        index_name(name)
