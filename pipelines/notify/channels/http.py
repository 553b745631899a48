"""Sends JSON over HTTP, and says what a receiver's answer means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import httpx
import orjson

from engine.spec.errors import NewnormalError
from pipelines.contracts.retry_after import retry_after
from pipelines.contracts.setting_types import is_web_address
from pipelines.contracts.settings.channels import HttpChannel, OpsgenieChannel, PagerDutyChannel
from pipelines.contracts.web_answers import AS_IT_IS, LOOKED_AT, beginning, origin, quoted
from pipelines.notify.channels.sending import TIMEOUT, SendError
from pipelines.notify.secrets import secret

_OF_THE_MESSAGE = (400, 413, 422)
"""Statuses that say that this message is wrong, not the account, the address or the server."""

_MOST_SECONDS = 86_400.0
"""A receiver is asked again after a day at the latest, whatever it says."""


def post(name: str, channel: HttpChannel, body: object, headers: Mapping[str, str], path: str = "") -> str:
    """Posts JSON to the URL of a channel; returns the receiver and its answer, without secrets.

    Args:
        name: Name of the channel.
        channel: Its settings.
        body: What is written as JSON.
        headers: Further headers.
        path: Added to the channel's URL.

    Raises:
        SendError: If it was not taken.
        NewnormalError: ``NOTIFY_SECRET``.
    """
    url, key = target(name, channel)
    sent = {**headers, **({"Authorization": key} if key else {})}
    return ask("POST", name, url.rstrip("/") + path if path else url, body, sent, (url, key))


def ask(
    method: str, name: str, url: str, body: object, headers: Mapping[str, str], secrets: Sequence[str | None]
) -> str:
    """Sends JSON; returns the receiver and its answer, without secrets.

    Args:
        method: The method of HTTP.
        name: Name of the channel.
        url: Where it goes.
        body: What is written as JSON.
        headers: Further headers.
        secrets: What is not shown of an answer.

    Raises:
        SendError: If it was not taken.
    """
    sent = {"Content-Type": "application/json", "User-Agent": "newnormal", **AS_IT_IS, **headers}
    where = f"channel {name}, {origin(url)}"
    try:
        with httpx.stream(method, url, content=orjson.dumps(body), headers=sent, timeout=TIMEOUT) as answer:
            text = beginning(answer, LOOKED_AT, TIMEOUT).decode(errors="replace")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, UnicodeError) as error:
        raise SendError("NOTIFY_UNREACHABLE", quoted(str(error) or type(error).__name__, secrets), where) from None
    reply = f"{answer.status_code} {quoted(text, secrets)}".strip()
    if answer.is_success:
        return f"{where} answered {reply}"
    busy = answer.status_code in (408, 425, 429) or answer.status_code >= 500
    code, after = "NOTIFY_UNREACHABLE" if busy else "NOTIFY_REFUSED", answer.headers.get("Retry-After", "")
    raise SendError(
        code, f"it answered {reply}", where,
        hopeless=answer.status_code in _OF_THE_MESSAGE, after=retry_after(after, _MOST_SECONDS),
    )  # fmt: skip


def target(name: str, channel: HttpChannel) -> tuple[str, str | None]:
    """The URL of a channel, and the value of the header ``Authorization`` if there is one.

    Raises:
        NewnormalError: ``NOTIFY_SECRET``.
    """
    key = secret(f"notify.channels.{name}.authorization", channel.authorization_file, channel.authorization_variable)
    return _url(name, channel), key


def key_of(name: str, channel: PagerDutyChannel | OpsgenieChannel) -> str:
    """The key of a channel that has one.

    Raises:
        NewnormalError: ``NOTIFY_SECRET``.
    """
    return secret(f"notify.channels.{name}.key", channel.key_file, channel.key_variable) or ""


def _url(name: str, channel: HttpChannel) -> str:
    if channel.url is not None:
        return channel.url.get_secret_value()
    where = f"notify.channels.{name}.url"
    url = secret(where, channel.url_file, channel.url_variable) or ""
    if not is_web_address(url):
        accepted = "http://host or https://host, with a path"
        raise NewnormalError("NOTIFY_SECRET", "what is there is no URL", where, accepted)
    return url
