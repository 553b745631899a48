"""The settings of the state view."""

from __future__ import annotations

from pydantic import Field, SecretStr

from pipelines.contracts.setting_types import ListenHost, Names, Token, Whole
from pipelines.contracts.settings.access import AccessSettings


class ViewSettings(AccessSettings):
    embedded: bool = Field(
        True,
        description="whether `newnormal run`, `newnormal demo` and `newnormal console` themselves follow what the "
        "detector believes, in a folder of the state directory; false: their consoles ask the state view at "
        "`view.host`:`view.port`, which `newnormal view` starts",
    )
    host: ListenHost = Field("127.0.0.1", description="address on which the state view listens")
    port: Whole = Field(8890, ge=0, le=65535, description="port of the state view; if taken, the next free one is used")
    hosts: Names = Field(
        "", description="further host names under which the state view is reached, separated by commas; `*`: any"
    )
    token: Token = Field(
        SecretStr(""),
        description="what users of the state view must know, which is needed where others than this machine reach it; "
        "programs send it as `Authorization: Bearer TOKEN`, our own ones by themselves; empty: none, or that in "
        "`view.token_file`",
    )
    windows: Whole = Field(
        240, ge=1, le=100_000, description="how many of the last windows of each series the state view keeps"
    )
