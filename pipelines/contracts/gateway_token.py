"""The token of the gateway, from the settings or from the file that they name."""

from __future__ import annotations

from engine.spec.errors import NewnormalError
from pipelines.contracts.console_token import console_token
from pipelines.contracts.gateway_settings import GatewaySettings
from pipelines.contracts.settings import ConsoleSettings


def gateway_token(gateway: GatewaySettings) -> str:
    """The token that agents must know; empty if there is none. It is read as that of the console is.

    Args:
        gateway: The settings of the gateway.

    Raises:
        NewnormalError: ``GATEWAY_TOKEN`` if the file cannot be read, or holds no token. The message does not show it.
    """
    try:
        return console_token(ConsoleSettings(token=gateway.token, token_file=gateway.token_file))
    except NewnormalError as error:
        where = f"gateway.token_file: {gateway.token_file}"
        raise NewnormalError("GATEWAY_TOKEN", error.what, where, error.accepted, "nothing was started") from None
