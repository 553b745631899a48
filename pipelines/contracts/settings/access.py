"""Who may ask a web server of ours."""

from __future__ import annotations

from pydantic import Field, SecretStr

from pipelines.contracts.setting_types import FilePath, ListenHost, OptionalHost, Token
from pipelines.contracts.settings.section import Section


class AccessSettings(Section):
    """Who may ask a web server of ours; the settings of each server have these fields, too."""

    host: ListenHost = Field("127.0.0.1", description="address on which it listens")
    published: OptionalHost = Field(
        "",
        description="address at which others open the port, if it runs in a container; with 127.0.0.1 it is treated as "
        "one that only this machine reaches. Empty: the address on which it listens",
    )
    token: Token = Field(SecretStr(""), description="what users must know; empty: none, or that in `token_file`")
    token_file: FilePath = Field("", description="file with that token in one line; it is read at each start")

    @property
    def reached(self) -> str:
        """The address that decides who reaches it."""
        return self.published or self.host
