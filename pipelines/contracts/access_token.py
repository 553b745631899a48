"""The tokens of console, state view, gateway and notify, from the settings or from the files that they name."""

from __future__ import annotations

from engine.spec.errors import NewnormalError
from pipelines.contracts.setting_types import is_token
from pipelines.contracts.settings import AccessSettings, ConsoleSettings, GatewaySettings, ViewSettings
from pipelines.contracts.settings.logins.secret_file import line_of

_ACCEPTED = "a readable file of one line: 16 to 200 visible ASCII characters without a space"


def access_token(settings: AccessSettings) -> str:
    """The token that those must know who ask a server of ours; empty if there is none.

    Args:
        settings: The settings of the console, the state view, the gateway, or notifications.

    Raises:
        NewnormalError: ``CONSOLE_TOKEN``, ``VIEW_TOKEN``, ``GATEWAY_TOKEN`` or ``NOTIFY_TOKEN`` if the file cannot be
            read, or holds no token. The message does not show it.
    """
    match settings:
        case ConsoleSettings():
            return _token(settings, "console", code="CONSOLE_TOKEN", now="the console was not opened")
        case ViewSettings():
            return _token(settings, "view", code="VIEW_TOKEN", now="the state view was neither started nor asked")
        case GatewaySettings():
            return _token(settings, "gateway", code="GATEWAY_TOKEN", now="nothing was started")
    return _token(settings, "notify", code="NOTIFY_TOKEN", now="nobody is told of anything")


def console_headers(console: ConsoleSettings) -> dict[str, str]:
    """The headers with which a program of this machine asks the console.

    Args:
        console: The settings of the console.

    Raises:
        NewnormalError: ``CONSOLE_TOKEN``, as `access_token`.
    """
    if token := access_token(console):
        return bearer(token)
    return {console.user_header: "newnormal"} if console.user_header else {}


def bearer(token: str) -> dict[str, str]:
    """The header with which a program shows a token; none without a token."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def _token(settings: AccessSettings, section: str, code: str, now: str) -> str:
    if not settings.token_file:
        return settings.token.get_secret_value()
    line, what = line_of(settings.token_file)
    if line and is_token(line):
        return line
    where = f"{section}.token_file: {settings.token_file}"
    raise NewnormalError(code, "the file holds no token" if line else what, where, _ACCEPTED, now)
