"""The tokens of the console and of the state view, from the settings or from the files that they name."""

from __future__ import annotations

from engine.spec.errors import NewnormalError
from pipelines.contracts.setting_types import is_token
from pipelines.contracts.settings import AccessSettings, ConsoleSettings, ViewSettings
from pipelines.contracts.settings.logins.secret_file import line_of

_ACCEPTED = "a readable file of one line: 16 to 200 visible ASCII characters without a space"


def console_token(console: ConsoleSettings) -> str:
    """The token that users of the console must know; empty if there is none.

    Args:
        console: The settings of the console.

    Raises:
        NewnormalError: ``CONSOLE_TOKEN`` if the file cannot be read, or holds no token. The message does not show it.
    """
    found, what = _token(console)
    if what:
        where = f"console.token_file: {console.token_file}"
        raise NewnormalError("CONSOLE_TOKEN", what, where, _ACCEPTED, "the console was not opened")
    return found


def view_token(view: ViewSettings) -> str:
    """The token that users of the state view must know; empty if there is none.

    Args:
        view: The settings of the state view.

    Raises:
        NewnormalError: ``VIEW_TOKEN``, as `console_token`.
    """
    found, what = _token(view)
    if what:
        where, now = f"view.token_file: {view.token_file}", "the state view was neither started nor asked"
        raise NewnormalError("VIEW_TOKEN", what, where, _ACCEPTED, now)
    return found


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


def _token(settings: AccessSettings) -> tuple[str, str]:
    """The token, and what is wrong with its file; the latter is empty if all is well."""
    if not settings.token_file:
        return settings.token.get_secret_value(), ""
    found, what = line_of(settings.token_file)
    return (found, what) if not found or is_token(found) else ("", "the file holds no token")
