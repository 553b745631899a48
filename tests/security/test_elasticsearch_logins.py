"""API key, user and authority of Elasticsearch, against a real one behind TLS; refusals say what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.embedded.endpoints import Endpoints
from deploy.embedded.external import check_elasticsearch
from engine.spec.errors import NewnormalError
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.settings import load
from tests.security.certificates import Authority
from tests.security.elasticsearch_proxy import Guard, guarded_elasticsearch

USER, PASSWORD, KEY = "newnormal", "hush-Elastic:/@ word", "aHVzaC1FbGFzdGljOmtleQ=="


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def guarded(endpoints: Endpoints, authority: Authority) -> Iterator[Guard]:
    """A real Elasticsearch behind TLS and a login."""
    mine = authority.issue("elasticsearch")
    with guarded_elasticsearch(endpoints.elasticsearch_url, mine, Guard(USER, PASSWORD, KEY)) as guard:
        yield guard


def address(**given: Any) -> str:
    return load(**{f"elasticsearch.{name}": value for name, value in given.items()}).elasticsearch.url or ""


def refusal(url: str) -> NewnormalError:
    with pytest.raises(NewnormalError) as caught:
        check_elasticsearch(url)
    assert "hush" not in str(caught.value) and KEY not in str(caught.value)
    assert (caught.value.where, caught.value.now) == ("elasticsearch.url", "nothing was started")
    return caught.value


@pytest.mark.servers
def test_user_key_and_user_in_the_url_are_let_in(guarded: Guard, authority: Authority, tmp_path: Path) -> None:
    word, key = tmp_path / "word", tmp_path / "key"
    word.write_text(f"{PASSWORD}\n")
    key.write_text(f"{KEY}\n")
    in_url = guarded.url.replace("//", "//newnormal:hush-Elastic%3A%2F%40%20word@")
    ways: list[dict[str, str]] = [
        {"user": USER, "password": PASSWORD},
        {"user": USER, "password_file": str(word)},
        {"api_key": KEY},
        {"api_key_file": str(key)},
        {"url": in_url},
    ]
    for way in ways:
        url = address(**{"url": guarded.url, "ca_file": str(authority.file)} | way)
        assert url == guarded.url, "the address shows no user"
        check_elasticsearch(url)
        with elasticsearch_client(url) as client:
            assert client.cluster.health()["number_of_nodes"] == 1
    assert guarded.refused == 0


@pytest.mark.servers
def test_a_wrong_account_is_refused_with_the_server_s_reason(guarded: Guard, authority: Authority) -> None:
    some = {"url": guarded.url, "ca_file": str(authority.file)}
    ways: list[dict[str, str]] = [{}, {"user": USER, "password": "hush-wrong"}, {"api_key": "hush-wrong"}]
    for way in ways:
        error = refusal(address(**some | way))
        assert error.code == "ELASTICSEARCH_REFUSED"
        assert "HTTP 401" in error.what and "unable to authenticate" in error.what
        assert "elasticsearch.user" in error.accepted


@pytest.mark.servers
def test_expired_and_unknown_certificates_are_told_apart(
    endpoints: Endpoints, guarded: Guard, authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other")
    error = refusal(address(url=guarded.url, ca_file=str(other.file), api_key=KEY))
    assert error.code == "ELASTICSEARCH_TLS_FAILED" and "local issuer" in error.what
    old = authority.issue("old", expired=True)
    with guarded_elasticsearch(endpoints.elasticsearch_url, old, Guard(USER, PASSWORD, KEY)) as late:
        error = refusal(address(url=late.url, ca_file=str(authority.file), api_key=KEY))
    assert error.code == "ELASTICSEARCH_TLS_FAILED" and "expired" in error.what
    assert "elasticsearch.ca_file" in error.accepted
    plain = endpoints.elasticsearch_url.replace("http:", "https:")
    assert refusal(address(url=plain, ca_file=str(authority.file))).code == "ELASTICSEARCH_TLS_FAILED"
