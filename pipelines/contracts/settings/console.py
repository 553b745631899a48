"""The settings of the console."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, SecretStr

from pipelines.contracts.setting_types import (
    HeaderName,
    ListenHost,
    Names,
    Networks,
    OptionalHost,
    Token,
    Whole,
)
from pipelines.contracts.settings.access import AccessSettings


class ConsoleSettings(AccessSettings):
    guards: ClassVar[tuple[str, ...]] = ("token_file", "user_header")

    host: ListenHost = Field("127.0.0.1", description="address on which the web console listens")
    port: Whole = Field(
        8880, ge=0, le=65535, description="port of the web console; if taken, the next free one is used"
    )
    published: OptionalHost = Field(
        "",
        description="address at which others open the port, if the console runs in a container; with 127.0.0.1 it is "
        "treated as one that only this machine reaches. Empty: `console.host`",
    )
    hosts: Names = Field(
        "", description="further host names under which browsers reach the console, separated by commas; `*`: any"
    )
    user_header: HeaderName = Field(
        "",
        description="header in which a proxy names the operator who has logged in; requests with it are answered, and "
        "take labels and the like, if they come from an address of `console.proxies`",
    )
    proxies: Networks = Field(
        "127.0.0.1,::1", description="addresses and networks of the proxies whose `console.user_header` is believed"
    )
    token: Token = Field(
        SecretStr(""),
        description="what users of the console must know: browsers ask for it once, programs send it as "
        "`Authorization: Bearer TOKEN`; empty: none, or that in `console.token_file`",
    )
