"""Posts requests of remote write, and says what the receiver's answer means."""

from __future__ import annotations

from http import HTTPStatus
from typing import Self

import httpx

from pipelines.contracts.retry_after import retry_after
from pipelines.contracts.settings import ScoresSettings
from pipelines.contracts.settings.logins.secret_file import line_of, refusal
from pipelines.contracts.web_answers import AS_IT_IS, LOOKED_AT, beginning, quoted
from pipelines.query.view.scores.requests import HEADERS

_SECONDS = 30.0
_MOST_WAIT = 300.0


class AgainError(Exception):
    """The receiver has not taken a request now.

    Args:
        reason: Why, in words, without secrets.
        after: When it wants to be asked again, seconds; ``None``: it does not say.
    """

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.after = reason, after


class Endpoint:
    """The receiver; a context manager.

    Args:
        settings: The settings, with its URL.

    Raises:
        NewnormalError: ``LOGIN_FILE`` if the file with the header cannot be used.
    """

    def __init__(self, settings: ScoresSettings) -> None:
        self._url = settings.remote_write_url or ""
        self._key = authorization(settings)
        headers = {**HEADERS, **AS_IT_IS, "User-Agent": "newnormal"}
        headers |= {"Authorization": self._key} if self._key else {}
        headers |= {"X-Scope-OrgID": settings.remote_write_tenant} if settings.remote_write_tenant else {}
        self._client = httpx.Client(headers=headers, timeout=_SECONDS)

    def post(self, body: bytes) -> str:
        """Posts a request; returns why the receiver will never take it, empty: it has taken it.

        Raises:
            AgainError: It is to be sent again: the receiver does not answer, or is busy. All else is not to be, as the
            specification of remote write says.
        """
        try:
            with self._client.stream("POST", self._url, content=body) as answer:
                text = beginning(answer, LOOKED_AT, _SECONDS).decode(errors="replace")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise AgainError(self._without(str(error) or type(error).__name__)) from None
        if answer.is_success:
            return ""
        reason = f"it answered {answer.status_code} {self._without(text)}".strip()
        if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            raise AgainError(reason, retry_after(answer.headers.get("Retry-After", ""), _MOST_WAIT))
        return reason

    def __enter__(self) -> Self:
        """Nothing is asked yet."""
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def _without(self, text: str) -> str:
        return quoted(text, (self._key,))


def authorization(settings: ScoresSettings) -> str | None:
    """The value of the header ``Authorization``; ``None``: none is sent.

    Raises:
        NewnormalError: ``LOGIN_FILE``.
    """
    file = settings.remote_write_authorization_file
    if not file:
        return None
    line, what = line_of(file)
    if not line or not line.isascii():
        where = f"scores.remote_write_authorization_file: {file}"
        raise refusal(where, what or "the line is not ASCII", "a readable file of one line, e.g. Bearer TOKEN")
    return line
