"""The settings of our web servers: who may ask one, the console, the state view."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, SecretStr

from pipelines.contracts.setting_types import (
    FilePath,
    HeaderName,
    ListenHost,
    Names,
    Networks,
    OptionalHost,
    Token,
    Whole,
    is_loopback,
)
from pipelines.contracts.settings.section import Section


class AccessSettings(Section):
    """Who may ask a web server of ours; the settings of each server have these fields, too.

    Attributes:
        guards: The settings, beside the token itself, one of which keeps strangers out.
    """

    guards: ClassVar[tuple[str, ...]] = ("token_file",)

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


def contradictions(section: str, server: str, settings: AccessSettings) -> dict[str, tuple[str, str]]:
    """What contradicts another setting of a section: for each setting what is wrong, and what is accepted.

    Args:
        section: Name of the section.
        server: The server in words.
        settings: The section.
    """
    wrong: dict[str, tuple[str, str]] = {}
    token = settings.token.get_secret_value()
    if not (is_loopback(settings.reached) or token or any(getattr(settings, name) for name in settings.guards)):
        where = f"{section}.published" if settings.published else f"{section}.host"
        what = f"{where} = {settings.reached!r}, where others than this machine reach {server}"
        guards = " or ".join(f"{section}.{name}" for name in settings.guards)
        wrong[where] = (what, f"127.0.0.1; or {guards} beside it")
    if token and settings.token_file:
        wrong[f"{section}.token_file"] = (f"{section}.token and {section}.token_file are given", "one of them")
    return wrong


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
