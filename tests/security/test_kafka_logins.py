"""Every way to log in at a real Kafka works, and a refusal says what is wrong and shows no secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from engine.address import kafka_options
from engine.kafka.admin import ensure_topics
from engine.kafka.content import values
from engine.kafka.diagnosis import problem
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from tests.security.broker import PASSWORD, USER, SecureKafka
from tests.security.certificates import Authority
from tests.security.tokens import Provider, Signer, token_server

LATEST = 30.0


@pytest.fixture
def login(secure: SecureKafka, tmp_path: Path) -> dict[str, Any]:
    """The settings of a login that is right."""
    word = tmp_path / "password"
    word.write_text(f"{PASSWORD}\n")
    return {
        "kafka.bootstrap": secure.sasl,
        "kafka.security_protocol": "SASL_SSL",
        "kafka.sasl_username": USER,
        "kafka.sasl_password_file": str(word),
        "kafka.ssl_ca_file": str(secure.authority.file),
    }


def brokers(**given: Any) -> str:
    """The address of the brokers, from settings."""
    return load(**given).kafka.bootstrap or ""


def refusal(**given: Any) -> NewnormalError:
    """Why these settings are not let in."""
    found = problem(brokers(**given), LATEST)
    assert found is not None
    assert PASSWORD not in str(found)
    assert found.now == "nothing was started"
    return found


@pytest.mark.servers
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_user_and_password_are_let_in_and_may_do_what_the_acls_say(
    secure: SecureKafka, login: dict[str, Any], mechanism: str
) -> None:
    name = f"written-{mechanism}"
    secure.allow(USER, [("topic", name, False, each) for each in ("create", "read", "write")])
    address = brokers(**login | {"kafka.sasl_mechanism": mechanism})
    assert ensure_topics(address, {name: {}}, partitions=1) == [name]
    producer = Producer(kafka_options(address))
    producer.produce(name, b"hello")
    assert producer.flush(LATEST) == 0
    with pytest.raises(NewnormalError, match="KAFKA_NOT_ALLOWED"):
        values(address, name)
    secure.allow(USER, [("group", "newnormal.content", False, "read")])
    assert values(address, name) == [b"hello"]
    secure.forbid(USER, ("group", "newnormal.content", False, "read"))


@pytest.mark.servers
def test_a_client_s_certificate_is_its_login_with_mutual_tls(secure: SecureKafka) -> None:
    mine = secure.authority.issue("collector")
    secure.allow("collector", [("topic", "of-collector", False, each) for each in ("create", "describe")])
    given = {
        "kafka.bootstrap": secure.mutual,
        "kafka.security_protocol": "SSL",
        "kafka.ssl_ca_file": str(secure.authority.file),
        "kafka.ssl_certificate_file": str(mine.certificate),
        "kafka.ssl_key_file": str(mine.key),
    }
    assert ensure_topics(brokers(**given), {"of-collector": {}}, partitions=1) == ["of-collector"]
    old = secure.authority.issue("old-collector", expired=True)
    expired = {"kafka.ssl_certificate_file": str(old.certificate), "kafka.ssl_key_file": str(old.key)}
    for wrong in (given | expired, dict(list(given.items())[:3])):
        error = refusal(**wrong)
        assert (error.code, "alert" in error.what) == ("KAFKA_TLS_FAILED", True)
        assert "kafka.ssl_certificate_file" in error.accepted


@pytest.mark.servers
def test_a_token_is_a_login_if_the_provider_knows_the_client_and_the_broker_the_provider(
    secure: SecureKafka, tmp_path: Path
) -> None:
    word = tmp_path / "secret"
    word.write_text("hush-oauth-word\n")
    secure.allow("robot", [("topic", "of-robot", False, each) for each in ("create", "describe")])
    with token_server(Provider(secure.signer, "robot", "hush-oauth-word")) as provider:
        given = {
            "kafka.bootstrap": secure.sasl,
            "kafka.security_protocol": "SASL_SSL",
            "kafka.ssl_ca_file": str(secure.authority.file),
            "kafka.sasl_mechanism": "OAUTHBEARER",
            "kafka.oauth_token_url": provider.url,
            "kafka.oauth_client_id": "robot",
            "kafka.oauth_client_secret_file": str(word),
            "kafka.oauth_scope": "kafka",
        }
        assert ensure_topics(brokers(**given), {"of-robot": {}}, partitions=1) == ["of-robot"]
        assert set(provider.scopes) == {"kafka"}
        wrong = {"kafka.oauth_client_secret_file": None, "kafka.oauth_client_secret": "hush-wrong"}
        error = refusal(**given | wrong)
        assert (error.code, "unknown client or wrong secret" in error.what) == ("KAFKA_LOGIN_REFUSED", True)
        assert "hush-wrong" not in str(error) and "kafka.oauth_" in error.accepted
        provider.signer = Signer(tmp_path / "keys.json")  # of a provider that the broker does not know
        error = refusal(**given)
        assert error.code == "KAFKA_LOGIN_REFUSED" and "kafka.oauth_token_url" in error.accepted


@pytest.mark.servers
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused_soon_and_is_not_shown(login: dict[str, Any], mechanism: str) -> None:
    wrong = {"kafka.sasl_password_file": None, "kafka.sasl_password": "hush-wrong", "kafka.sasl_mechanism": mechanism}
    error = refusal(**login | wrong)
    assert error.code == "KAFKA_LOGIN_REFUSED"
    assert "hush-wrong" not in str(error)
    assert "kafka.sasl_" in error.accepted


@pytest.mark.servers
def test_a_certificate_that_has_expired_is_named_as_the_reason(secure: SecureKafka, login: dict[str, Any]) -> None:
    error = refusal(**login | {"kafka.bootstrap": secure.expired})
    assert error.code == "KAFKA_TLS_FAILED"
    assert error.what == f"the certificate of {secure.expired} is not accepted: certificate has expired"


@pytest.mark.servers
def test_an_authority_that_nobody_knows_is_named_as_the_reason(login: dict[str, Any], tmp_path: Path) -> None:
    other = Authority(tmp_path / "other")
    error = refusal(**login | {"kafka.ssl_ca_file": str(other.file)})
    assert error.code == "KAFKA_TLS_FAILED"
    assert "unable to get local issuer certificate" in error.what
    assert "kafka.ssl_ca_file" in error.accepted


@pytest.mark.servers
def test_each_authority_of_a_file_is_trusted(secure: SecureKafka, login: dict[str, Any], tmp_path: Path) -> None:
    several = tmp_path / "several.pem"
    several.write_text(Authority(tmp_path / "other").file.read_text() + secure.authority.file.read_text())
    assert problem(brokers(**login | {"kafka.ssl_ca_file": str(several)}), LATEST) is None


@pytest.mark.servers
def test_tls_on_one_side_only_is_told_apart_from_a_broker_that_is_away(
    secure: SecureKafka, login: dict[str, Any]
) -> None:
    assert refusal(**login | {"kafka.bootstrap": secure.internal}).code == "KAFKA_TLS_FAILED"
    found = problem(brokers(**{"kafka.bootstrap": secure.sasl}), 3.0)
    assert found is not None
    assert (found.code, found.where) == ("KAFKA_TLS_FAILED", "kafka.security_protocol")


@pytest.mark.servers
def test_a_missing_acl_says_what_is_not_allowed_and_where_to_read_what_is_needed(login: dict[str, Any]) -> None:
    with pytest.raises(NewnormalError) as caught:
        ensure_topics(brokers(**login), {"not-for-you": {}}, partitions=1)
    error = caught.value
    assert error.code == "KAFKA_NOT_ALLOWED"
    assert "to create the topic not-for-you" in error.what
    assert "newnormal acls" in error.accepted
