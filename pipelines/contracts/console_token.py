"""The token of the console, from the settings or from the file that they name."""

from __future__ import annotations

from engine.spec.errors import NewnormalError
from pipelines.contracts.setting_types import is_token
from pipelines.contracts.settings import ConsoleSettings
from pipelines.contracts.settings.logins.secret_file import line_of


def console_token(console: ConsoleSettings) -> str:
    """The token that users of the console must know; empty if there is none.

    Args:
        console: The settings of the console.

    Raises:
        NewnormalError: ``CONSOLE_TOKEN`` if the file cannot be read, or holds no token. The message does not show it.
    """
    if not console.token_file:
        return console.token.get_secret_value()
    found, what = line_of(console.token_file)
    if found and is_token(found):
        return found
    what = "the file holds no token" if found else what
    accepted = "a readable file of one line: 16 to 200 visible ASCII characters without a space"
    where = f"console.token_file: {console.token_file}"
    raise NewnormalError("CONSOLE_TOKEN", what, where, accepted, "the console was not opened")


def console_headers(console: ConsoleSettings) -> dict[str, str]:
    """The headers with which a program of this machine asks the console.

    Args:
        console: The settings of the console.

    Raises:
        NewnormalError: ``CONSOLE_TOKEN``, as `console_token`.
    """
    if token := console_token(console):
        return {"Authorization": f"Bearer {token}"}
    return {console.user_header: "newnormal"} if console.user_header else {}
