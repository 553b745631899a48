"""The settings of the section `gateway`: where agents push over HTTP, who may, and how much."""

from __future__ import annotations

from pydantic import Field, SecretStr

from pipelines.contracts.setting_types import FilePath, Length, ListenHost, Token, Whole
from pipelines.contracts.settings.web_servers import AccessSettings

_LARGEST = 15_000_000
"""Less than the largest message that our topics take, bytes."""


class GatewaySettings(AccessSettings):
    """Where agents push over HTTP, who may, and how much."""

    host: ListenHost = Field("127.0.0.1", description="address on which the gateway listens")
    port: Whole = Field(8895, ge=0, le=65535, description="port of the gateway; if taken, the next free one is used")
    token: Token = Field(
        SecretStr(""),
        description="what agents send as `Authorization: Bearer TOKEN`, or `Token TOKEN` as Influx' clients do; empty: "
        "none, or that in `gateway.token_file`",
    )
    max_body: Whole = Field(
        4_000_000, ge=1_000, le=_LARGEST, description="largest body of a request as it is sent, bytes"
    )
    max_decompressed: Whole = Field(
        8_000_000, ge=1_000, le=_LARGEST, description="the same after decompression: largest message for Kafka, bytes"
    )
    max_in_flight: Whole = Field(
        40_000_000,
        ge=2 * _LARGEST,
        le=10**12,
        description="bytes of all requests that Kafka has not acknowledged; beyond it agents are told to come later",
    )
    rate: Whole = Field(
        0, ge=0, le=10**12, description="bytes per second, as they are sent, from each sender's address; 0: no limit"
    )
    statsd_port: Whole = Field(
        0, ge=0, le=65535, description="port for StatsD and DogStatsD, UDP and TCP, at `gateway.host`; 0: none"
    )
    statsd_interval: Length = Field(
        "10s", description="StatsD: the length of the intervals over which lines are aggregated"
    )
    statsd_series: Whole = Field(
        100_000, ge=1, le=10_000_000, description="StatsD: the most series that are held; further ones are left out"
    )
    syslog_port: Whole = Field(
        0,
        ge=0,
        le=65535,
        description="port for syslog over UDP and TCP (RFC 5426, 6587), at `gateway.host`; 0: none",
    )
    syslog_tls_port: Whole = Field(
        0, ge=0, le=65535, description="port for syslog over TLS (RFC 5425, usually 6514), at `gateway.host`; 0: none"
    )
    gelf_port: Whole = Field(
        0, ge=0, le=65535, description="port for GELF over UDP and TCP (usually 12201), at `gateway.host`; 0: none"
    )
    tls_certificate: FilePath = Field(
        "", description="file (PEM) with the certificate of `gateway.syslog_tls_port`, and those that signed it"
    )
    tls_key: FilePath = Field("", description="file (PEM) with its key; nothing: it is in the same file")
    tls_clients: FilePath = Field(
        "",
        description="file (PEM) with authorities: clients of that port need a certificate of one; nothing: none",
    )
    timeout: Length = Field(
        "4s",
        description="how long a request waits for Kafka; shorter than agents wait, since one that gives up first "
        "sends the same again although Kafka may take it",
    )
