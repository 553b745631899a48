"""The settings of the section `gateway`: where agents push over HTTP, who may, and how much."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from pipelines.contracts.setting_types import FilePath, Length, ListenHost, OptionalHost, Token, Whole, is_loopback

_LARGEST = 15_000_000
"""Less than the largest message that our topics take, bytes."""


class GatewaySettings(BaseModel):
    """Where agents push over HTTP, who may, and how much."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: ListenHost = Field("127.0.0.1", description="address on which the gateway listens")
    port: Whole = Field(8895, ge=0, le=65535, description="port of the gateway; if taken, the next free one is used")
    published: OptionalHost = Field(
        "",
        description="address at which others open the port, if the gateway runs in a container; with 127.0.0.1 it is "
        "treated as one that only this machine reaches. Empty: `gateway.host`",
    )
    token: Token = Field(
        SecretStr(""),
        description="what agents send as `Authorization: Bearer TOKEN`, or `Token TOKEN` as Influx' clients do; empty: "
        "none, or that in `gateway.token_file`",
    )
    token_file: FilePath = Field("", description="file with that token in one line; it is read at each start")
    max_body: Whole = Field(
        4_000_000, ge=1_000, le=_LARGEST, description="largest body of a request as it is sent, bytes"
    )
    max_decompressed: Whole = Field(
        12_000_000, ge=1_000, le=_LARGEST, description="the same after decompression: largest message for Kafka, bytes"
    )
    max_in_flight: Whole = Field(
        64_000_000,
        ge=2 * _LARGEST,
        le=10**12,
        description="bytes of all requests that Kafka has not acknowledged; beyond it agents are told to come later",
    )
    rate: Whole = Field(
        0, ge=0, le=10**12, description="bytes a second, as they are sent, from each sender's address; 0: no limit"
    )
    timeout: Length = Field(
        "4s",
        description="how long a request waits for Kafka; shorter than agents wait, since one that gives up first "
        "sends the same again although Kafka may take it",
    )

    @property
    def reached(self) -> str:
        """The address that decides who reaches the gateway."""
        return self.published or self.host


def contradictions(gateway: GatewaySettings) -> dict[str, tuple[str, str]]:
    """What contradicts another setting of the section: for each setting what is wrong, and what is accepted."""
    wrong: dict[str, tuple[str, str]] = {}
    token = bool(gateway.token.get_secret_value())
    if not (is_loopback(gateway.reached) or token or gateway.token_file):
        where = "gateway.published" if gateway.published else "gateway.host"
        what = f"{where} = {gateway.reached!r}, where others than this machine reach the gateway"
        wrong[where] = (what, "127.0.0.1; or gateway.token_file beside it")
    if token and gateway.token_file:
        wrong["gateway.token_file"] = ("gateway.token and gateway.token_file are given", "one of them")
    return wrong
