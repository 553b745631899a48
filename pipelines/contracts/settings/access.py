"""Who may ask a web server of ours."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, SecretStr

from pipelines.contracts.setting_types import FilePath, ListenHost, OptionalHost, Token, is_loopback
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
