"""The login at Kafka: options of librdkafka, and the same for the Java client that Spark uses."""

from __future__ import annotations

from engine.address import Address
from pipelines.contracts.settings.logins.secret_file import pem, secret
from pipelines.contracts.settings.servers import KafkaSettings

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_OAUTH_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_CERTIFICATE = ("CERTIFICATE",)
_KEYS = ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY")
_KEY_WANTED = "a key in PKCS#8; `openssl pkcs8 -topk8 -nocrypt -in OLD -out NEW` makes one of an older form"


def contradictions(kafka: KafkaSettings) -> dict[str, tuple[str, str]]:
    """The settings of the login that do not go together: by name, what is wrong and what is accepted."""
    wrong: dict[str, tuple[str, str]] = {}
    protocol, mechanism, named = kafka.security_protocol, kafka.sasl_mechanism, kafka.model_fields_set
    logs_in, encrypted = protocol.startswith("SASL"), protocol.endswith("SSL")
    oauth = mechanism == "OAUTHBEARER"
    stated = f"kafka.security_protocol = {protocol!r}"

    def needs(name: str, present: bool, why: str) -> None:
        if not present:
            wrong[f"kafka.{name}"] = (f"kafka.{name} is empty, but {why}", "a value")

    def unused(names: tuple[str, ...], why: str, accepted: str) -> None:
        for name in names:
            if name in named and _has_value(getattr(kafka, name)):
                wrong[f"kafka.{name}"] = (f"kafka.{name} is given, but {why}", accepted)

    if protocol != "PLAINTEXT" and not kafka.bootstrap:
        what = f"{stated}, but no kafka.bootstrap: the embedded broker has no login"
        wrong["kafka.security_protocol"] = (what, "PLAINTEXT; or kafka.bootstrap beside it")
    files = ("ssl_ca_file", "ssl_certificate_file", "ssl_key_file", "ssl_key_password", "ssl_key_password_file")
    if not encrypted:
        unused(files, stated, "nothing; or kafka.security_protocol SSL or SASL_SSL")
    users = ("sasl_username", "sasl_password", "sasl_password_file")
    clients = ("oauth_token_url", "oauth_client_id", "oauth_client_secret", "oauth_client_secret_file", "oauth_scope")
    if not logs_in:
        unused((*users, *clients, "sasl_mechanism"), stated, "nothing; or kafka.security_protocol SASL_SSL")
        return wrong | _pairs(kafka)
    why = f"kafka.sasl_mechanism = {mechanism!r}"
    if oauth:
        needs("oauth_token_url", bool(kafka.oauth_token_url), why)
        needs("oauth_client_id", bool(kafka.oauth_client_id), why)
        needs("oauth_client_secret_file", _either(kafka, "oauth_client_secret"), why)
        unused(users, why, "nothing; or kafka.sasl_mechanism PLAIN or SCRAM-SHA-512")
    else:
        needs("sasl_username", bool(kafka.sasl_username), why)
        needs("sasl_password_file", _either(kafka, "sasl_password"), why)
        unused(clients, why, "nothing; or kafka.sasl_mechanism OAUTHBEARER")
    return wrong | _pairs(kafka)


def _pairs(kafka: KafkaSettings) -> dict[str, tuple[str, str]]:
    """Settings that are given twice, or one without the other."""
    wrong = {}
    for name in ("sasl_password", "oauth_client_secret", "ssl_key_password"):
        if _has_value(getattr(kafka, name)) and getattr(kafka, f"{name}_file"):
            wrong[f"kafka.{name}_file"] = (f"kafka.{name} and kafka.{name}_file are given", "one of them")
    if bool(kafka.ssl_certificate_file) != bool(kafka.ssl_key_file):
        lacks = "ssl_key_file" if kafka.ssl_certificate_file else "ssl_certificate_file"
        wrong[f"kafka.{lacks}"] = (f"kafka.{lacks} is empty", "a certificate and its key, or neither")
    return wrong


def _has_value(value: object) -> bool:
    return bool(value.get_secret_value() if hasattr(value, "get_secret_value") else value)


def _either(kafka: KafkaSettings, name: str) -> bool:
    return _has_value(getattr(kafka, name)) or bool(getattr(kafka, f"{name}_file"))


def kafka_address(kafka: KafkaSettings) -> Address:
    """The brokers with the options with which all clients are let in.

    Raises:
        NewnormalError: ``LOGIN_FILE`` if a file that the settings name cannot be used.
    """
    client: dict[str, str] = {"security.protocol": kafka.security_protocol}
    spark = dict(client)
    if kafka.security_protocol.endswith("SSL"):
        _tls(kafka, client, spark)
    if kafka.security_protocol.startswith("SASL"):
        _sasl(kafka, client, spark)
    return Address(kafka.bootstrap or "", client, spark)


def _tls(kafka: KafkaSettings, client: dict[str, str], spark: dict[str, str]) -> None:
    authorities = pem("kafka.ssl_ca_file", kafka.ssl_ca_file, _CERTIFICATE, "a file of certificates in PEM form")
    if authorities:
        client["ssl.ca.pem"] = authorities
        spark |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
    if not kafka.ssl_certificate_file:
        return
    mine = pem("kafka.ssl_certificate_file", kafka.ssl_certificate_file, _CERTIFICATE, "a certificate in PEM form")
    key = pem("kafka.ssl_key_file", kafka.ssl_key_file, _KEYS, _KEY_WANTED)
    client |= {"ssl.certificate.pem": mine, "ssl.key.pem": key}
    spark |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": mine, "ssl.keystore.key": key}
    if password := secret("kafka.ssl_key_password", kafka.ssl_key_password, kafka.ssl_key_password_file):
        client["ssl.key.password"] = spark["ssl.key.password"] = password


def _sasl(kafka: KafkaSettings, client: dict[str, str], spark: dict[str, str]) -> None:
    mechanism = kafka.sasl_mechanism
    client["sasl.mechanism"] = spark["sasl.mechanism"] = mechanism
    module = _MODULES[mechanism.partition("-")[0]]
    if mechanism != "OAUTHBEARER":
        password = secret("kafka.sasl_password", kafka.sasl_password, kafka.sasl_password_file)
        client |= {"sasl.username": kafka.sasl_username, "sasl.password": password}
        spark["sasl.jaas.config"] = _jaas(module, username=kafka.sasl_username, password=password)
        return
    word = secret("kafka.oauth_client_secret", kafka.oauth_client_secret, kafka.oauth_client_secret_file)
    url, scope = kafka.oauth_token_url or "", {"scope": kafka.oauth_scope} if kafka.oauth_scope else {}
    client |= {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.client.id": kafka.oauth_client_id,
        "sasl.oauthbearer.client.secret": word,
        **{f"sasl.oauthbearer.{name}": value for name, value in scope.items()},
    }
    spark |= {
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.login.callback.handler.class": _OAUTH_HANDLER,
        "sasl.jaas.config": _jaas(module, clientId=kafka.oauth_client_id, clientSecret=word, **scope),
    }


def _jaas(module: str, **values: str) -> str:
    r"""The entry of a Java login module.

    >>> print(_jaas("Module", password='a"b\\c'))
    Module required password="a\"b\\c";
    """
    quoted = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in values.items()}
    return " ".join([module, "required", *(f'{name}="{value}"' for name, value in quoted.items())]) + ";"
