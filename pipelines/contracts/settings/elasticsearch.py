"""The settings of Elasticsearch."""

from __future__ import annotations

from pydantic import Field, SecretStr

from pipelines.contracts.setting_types import Duration, FilePath, Index, OneLine, Secret, Url
from pipelines.contracts.settings.section import Section


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
