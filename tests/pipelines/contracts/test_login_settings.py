"""Settings of logins: bad combinations stop the start with the setting's name, and no message shows a secret."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from engine.address import Address, client_options, kafka_options, spark_options
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from pipelines.jobs.chain import JOBS

HUSH = "hush-word-of-mine"
B: dict[str, Any] = {"kafka.bootstrap": "b:9093"}
SCRAM = {**B, "kafka.security_protocol": "SASL_SSL", "kafka.sasl_username": "me", "kafka.sasl_password": HUSH}
OAUTH = {
    **B, "kafka.security_protocol": "SASL_SSL", "kafka.sasl_mechanism": "OAUTHBEARER",
    "kafka.oauth_token_url": "https://id.example.org/token", "kafka.oauth_client_id": "me",
    "kafka.oauth_client_secret": HUSH, "kafka.oauth_scope": "kafka",
}  # fmt: skip
TLS = {**B, "kafka.security_protocol": "SSL"}
E = {"elasticsearch.url": "https://e:9200"}
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("kafka.security_protocol", {"kafka.security_protocol": "SSL"}),
    ("kafka.sasl_username", {**SCRAM, "kafka.sasl_username": ""}),
    ("kafka.sasl_password_file", {**SCRAM, "kafka.sasl_password": ""}),
    ("kafka.sasl_password_file", {**SCRAM, "kafka.sasl_password_file": "word"}),
    ("kafka.sasl_password", {**B, "kafka.sasl_password": HUSH}),
    ("kafka.sasl_mechanism", {**TLS, "kafka.sasl_mechanism": "PLAIN"}),
    ("kafka.ssl_ca_file", {**B, "kafka.ssl_ca_file": "ca.pem"}),
    ("kafka.ssl_key_file", {**TLS, "kafka.ssl_certificate_file": "ca.pem"}),
    ("kafka.ssl_certificate_file", {**TLS, "kafka.ssl_key_file": "key.pem"}),
    ("kafka.oauth_token_url", {**OAUTH, "kafka.oauth_token_url": ""}),
    ("kafka.oauth_client_secret_file", {**OAUTH, "kafka.oauth_client_secret": ""}),
    ("kafka.sasl_password", {**OAUTH, "kafka.sasl_password": HUSH}),
    ("kafka.oauth_client_id", {**SCRAM, "kafka.oauth_client_id": "me"}),
    ("elasticsearch.api_key", {"elasticsearch.api_key": HUSH}),
    ("elasticsearch.user", {**E, "elasticsearch.password": HUSH}),
    ("elasticsearch.password_file", {**E, "elasticsearch.user": "me"}),
    ("elasticsearch.api_key", {**E, "elasticsearch.api_key": HUSH, "elasticsearch.user": "me",
                                    "elasticsearch.password": HUSH}),
    ("elasticsearch.user", {"elasticsearch.url": f"https://me:{HUSH}@e:9200", "elasticsearch.user": "me",
                            "elasticsearch.password": HUSH}),
    ("elasticsearch.ca_file", {"elasticsearch.url": "http://e:9200", "elasticsearch.ca_file": "ca.pem"}),
    ("elasticsearch.key_file", {**E, "elasticsearch.certificate_file": "ca.pem"}),
]  # fmt: skip


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("name", "given"), WRONG)
def test_settings_that_do_not_go_together_stop_the_start_with_their_name(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(NewnormalError) as caught:
        load(**given)
    error = caught.value
    assert (error.code, error.now) == ("SETTING_INVALID", "nothing was started")
    assert name in f"{error.what} {error.accepted}" and error.accepted
    assert HUSH not in str(error)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kafka.sasl_password_file", None),
        ("kafka.sasl_password_file", ""),
        ("kafka.sasl_password_file", f"{HUSH}\n{HUSH}\n"),
        ("kafka.ssl_ca_file", None),
        ("kafka.ssl_ca_file", HUSH),
        ("kafka.ssl_key_file", f"-----BEGIN RSA PRIVATE KEY-----\n{HUSH}\n"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_but_what_it_holds_is_not_shown(
    elsewhere: Path, name: str, text: str | None
) -> None:
    (elsewhere / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    if text is not None:
        (elsewhere / "given").write_text(text)
    given = SCRAM | {"kafka.sasl_password": "", name: "given"} if "sasl" in name else TLS | {name: "given"}
    if "key" in name:
        given |= {"kafka.ssl_certificate_file": "ca.pem"}
    with pytest.raises(NewnormalError) as caught:
        load(**given)
    assert (caught.value.code, caught.value.where) == ("LOGIN_FILE", f"{name}: given")
    assert HUSH not in str(caught.value)


def test_both_clients_get_the_same_login(elsewhere: Path) -> None:
    (elsewhere / "word").write_text(f"{HUSH}\n")
    address = load(**SCRAM | {"kafka.sasl_password": "", "kafka.sasl_password_file": "word"}).kafka.bootstrap or ""
    assert kafka_options(address) == {
        "bootstrap.servers": "b:9093", "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me", "sasl.password": HUSH,
    }  # fmt: skip
    assert spark_options(address) == {
        "kafka.bootstrap.servers": "b:9093", "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="me" password="{HUSH}";',
    }  # fmt: skip


def test_a_token_is_fetched_by_both_clients_with_the_client_s_secret() -> None:
    address = load(**OAUTH).kafka.bootstrap or ""
    python, java = kafka_options(address), spark_options(address)
    url = "https://id.example.org/token"
    assert python["sasl.oauthbearer.method"] == "oidc"
    assert python["sasl.oauthbearer.token.endpoint.url"] == java["kafka.sasl.oauthbearer.token.endpoint.url"] == url
    assert (
        python["sasl.oauthbearer.client.secret"] == HUSH and f'clientSecret="{HUSH}"' in java["kafka.sasl.jaas.config"]
    )
    assert python["sasl.oauthbearer.scope"] == "kafka" and 'scope="kafka"' in java["kafka.sasl.jaas.config"]


def test_settings_and_addresses_show_no_secret_in_any_form() -> None:
    kafka = load(**SCRAM, **{"elasticsearch.url": f"https://me:{HUSH}@e:9200"})
    key = load(**OAUTH, **E, **{"elasticsearch.api_key": HUSH})
    for settings in (kafka, key):
        shown = f"{settings!r} {settings} {settings.model_dump_json()} {json.dumps(settings.kafka.bootstrap)}"
        shown += f"{settings.elasticsearch.url} {settings.elasticsearch.url!r} {settings.kafka.bootstrap!r}"
        assert HUSH not in shown
    assert client_options(kafka.elasticsearch.url or "") | {"ca_certs": ""} == {
        "basic_auth": ("me", HUSH), "ca_certs": ""
    }  # fmt: skip


@pytest.mark.parametrize("job", JOBS)
def test_a_job_that_is_sent_to_workers_and_kept_in_plans_holds_no_secret(job: str) -> None:
    assert HUSH.encode() not in pickle.dumps(JOBS[job](load(**SCRAM)))


def test_an_address_keeps_its_login_when_it_is_sent_to_another_process() -> None:
    address = load(**SCRAM).kafka.bootstrap
    sent = pickle.loads(pickle.dumps(address))
    assert isinstance(sent, Address) and sent == "b:9093"
    assert kafka_options(sent) == kafka_options(address or "")


def test_addresses_of_other_settings_keep_their_login_as_overrides() -> None:
    first = load(**SCRAM, **{"elasticsearch.url": f"https://me:{HUSH}@e:9200"})
    again = load(**{"kafka.bootstrap": first.kafka.bootstrap, "elasticsearch.url": first.elasticsearch.url})
    assert kafka_options(again.kafka.bootstrap or "")["sasl.password"] == HUSH
    assert client_options(again.elasticsearch.url or "")["basic_auth"] == ("me", HUSH)


def test_a_plain_broker_gets_no_options_of_a_login() -> None:
    assert kafka_options(load(**B).kafka.bootstrap or "") == {
        "bootstrap.servers": "b:9093", "security.protocol": "PLAINTEXT"
    }  # fmt: skip
    assert kafka_options("b:9092") == {"bootstrap.servers": "b:9092"}
