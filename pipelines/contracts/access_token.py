"""The tokens of console, state view, gateway and notify, from the settings or from the files that they name."""

from __future__ import annotations

from engine.spec.errors import NewnormalError
from pipelines.contracts.setting_types import is_token
from pipelines.contracts.settings import AccessSettings, ConsoleSettings, GatewaySettings, NotifySettings, ViewSettings
from pipelines.contracts.settings.logins.secret_file import line_of

_ACCEPTED = "a readable file of one line: 16 to 200 visible ASCII characters without a space"


def console_token(console: ConsoleSettings) -> str:
    """The token that users of the console must know; empty if there is none.

    Args:
        console: The settings of the console.

    Raises:
        NewnormalError: ``CONSOLE_TOKEN`` if the file cannot be read, or holds no token. The message does not show it.
    """
    return _token(console, "console", code="CONSOLE_TOKEN", now="the console was not opened")


def view_token(view: ViewSettings) -> str:
    """The token that users of the state view must know; empty if there is none.

    Args:
        view: The settings of the state view.

    Raises:
        NewnormalError: ``VIEW_TOKEN``, as `console_token`.
    """
    return _token(view, "view", code="VIEW_TOKEN", now="the state view was neither started nor asked")


def gateway_token(gateway: GatewaySettings) -> str:
    """The token that agents must know; empty if there is none.

    Args:
        gateway: The settings of the gateway.

    Raises:
        NewnormalError: ``GATEWAY_TOKEN``, as `console_token`.
    """
    return _token(gateway, "gateway", code="GATEWAY_TOKEN", now="nothing was started")


def notify_token(notify: NotifySettings) -> str:
    """The token with which Prometheus asks for the metrics of notifications; empty if there is none.

    Args:
        notify: The settings of notifications.

    Raises:
        NewnormalError: ``NOTIFY_TOKEN``, as `console_token`.
    """
    return _token(notify, "notify", code="NOTIFY_TOKEN", now="nobody is told of anything")


def console_headers(console: ConsoleSettings) -> dict[str, str]:
    """The headers with which a program of this machine asks the console.

    Args:
        console: The settings of the console.

    Raises:
        NewnormalError: ``CONSOLE_TOKEN``, as `console_token`.
    """
    if token := console_token(console):
        return bearer(token)
    return {console.user_header: "newnormal"} if console.user_header else {}


def bearer(token: str) -> dict[str, str]:
    """The header with which a program shows a token; none without a token."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def _token(settings: AccessSettings, section: str, code: str, now: str) -> str:
    if not settings.token_file:
        return settings.token.get_secret_value()
    found, what = line_of(settings.token_file)
    if found and is_token(found):
        return found
    where = f"{section}.token_file: {settings.token_file}"
    raise NewnormalError(code, "the file holds no token" if found else what, where, _ACCEPTED, now)
