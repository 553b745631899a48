"""The settings of Kafka and Elasticsearch, and of those that are embedded."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from pipelines.contracts.setting_types import (
    Broker,
    Brokers,
    Duration,
    FilePath,
    Heap,
    Index,
    Length,
    ListenAddress,
    OneLine,
    Secret,
    Url,
    WebAddress,
    Whole,
)
from pipelines.contracts.settings.section import Section


class KafkaSettings(Section):
    bootstrap: Brokers = Field(None, description="host:port of a Kafka broker; empty: the embedded one")
    partitions: Whole = Field(
        4, ge=1, le=1024, description="partitions of each topic that Newnormal creates; a multiple of engine.shards"
    )
    replication: Whole = Field(1, ge=1, le=7, description="replicas of each topic that Newnormal creates")
    retention: Length = Field(
        "7d",
        description="how long Kafka keeps messages; rules, labels and versions are kept for ever. A start changes "
        "existing topics to a value that was given, but not to the default",
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT",
        description="how clients talk to Kafka: `SSL` is TLS, `SASL` a login. See security.md",
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = Field(
        "SCRAM-SHA-512", description="how clients log in, with `SASL_SSL` or `SASL_PLAINTEXT`"
    )
    sasl_username: OneLine = Field("", description="user for `PLAIN` and `SCRAM`")
    sasl_password: Secret = Field(SecretStr(""), description="password of `kafka.sasl_username`; a file is better")
    sasl_password_file: FilePath = Field("", description="file with that password in one line; read at each start")
    ssl_ca_file: FilePath = Field(
        "",
        description="file (PEM) of the authorities whose certificates brokers may have; empty: those of the system",
    )
    ssl_certificate_file: FilePath = Field(
        "", description="file (PEM) with the certificate by which brokers know Newnormal, for mutual TLS"
    )
    ssl_key_file: FilePath = Field("", description="file (PEM, PKCS#8) with the key of that certificate")
    ssl_key_password: Secret = Field(SecretStr(""), description="password of that key, if it is encrypted")
    ssl_key_password_file: FilePath = Field("", description="file with that password in one line")
    oauth_token_url: WebAddress = Field(
        None, description="with `OAUTHBEARER`: where tokens are fetched (OAuth 2.0, client credentials)"
    )
    oauth_client_id: OneLine = Field("", description="with `OAUTHBEARER`: the client's id")
    oauth_client_secret: Secret = Field(SecretStr(""), description="with `OAUTHBEARER`: its secret; a file is better")
    oauth_client_secret_file: FilePath = Field("", description="file with that secret in one line")
    oauth_scope: OneLine = Field("", description="with `OAUTHBEARER`: the scope that is asked for; empty: none")


class ElasticsearchSettings(Section):
    url: Url = Field(None, description="http://host:port of Elasticsearch; empty: the embedded one")
    index: Index = Field(
        "novelties",
        description="alias through which documents are read, and first part of the names of their indices; the "
        "namespace is put before it, e.g. `nab.novelties`",
    )
    incidents: Index = Field(
        "incidents", description="the same for incidents: alias and first part of the names of their indices"
    )
    changes: Index = Field("changes", description="the same for changes of the site, which all versions share")
    refresh: Duration = Field("500ms", description="time until a new document can be found by a search")
    user: OneLine = Field("", description="user of Elasticsearch, with a password. See security.md")
    password: Secret = Field(SecretStr(""), description="password of `elasticsearch.user`; a file is better")
    password_file: FilePath = Field("", description="file with that password in one line; read at each start")
    api_key: Secret = Field(SecretStr(""), description="API key (its `encoded` form) instead of user and password")
    api_key_file: FilePath = Field("", description="file with that API key in one line; read at each start")
    ca_file: FilePath = Field(
        "",
        description="file (PEM) of the authorities whose certificates Elasticsearch may have; empty: those of the "
        "system",
    )
    certificate_file: FilePath = Field(
        "", description="file (PEM) with the certificate by which Elasticsearch knows Newnormal, for mutual TLS"
    )
    key_file: FilePath = Field("", description="file (PEM) with the key of that certificate")


class EmbeddedSettings(Section):
    address: ListenAddress = Field(
        "127.0.0.1",
        description="address on which the embedded servers listen; they have no TLS and Kafka has no login, so name "
        "another one only where a firewall or a container's network lets nobody else in",
    )
    kafka_published: Broker = Field(
        None,
        description="host:port at which clients elsewhere find Kafka, if its port 29092 is opened to them there, as a "
        "container's port is; empty: there is no such port",
    )
    kafka_heap: Heap = Field("512m", description="heap of the embedded Kafka broker")
    elasticsearch_heap: Heap = Field("768m", description="heap of the embedded Elasticsearch node")
    elasticsearch_login: bool = Field(
        True,
        description="whether the embedded Elasticsearch wants a password, which all commands with the same state "
        "directory know by themselves; without one, web pages may change its indices",
    )
    elasticsearch_password_file: FilePath = Field(
        "",
        description="file with that password in one line; empty: one is generated in `elasticsearch.password` of the "
        "state directory",
    )
