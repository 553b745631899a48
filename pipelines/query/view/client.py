"""Asks the processes of a state view, which each know a part of the machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import httpx

from engine.spec.errors import NewnormalError
from pipelines.contracts.access_token import access_token, bearer
from pipelines.contracts.settings import ViewSettings

MOST = 10_000
"""The most states or windows that one request asks for."""

_SECONDS = 10.0
_PAGE = 1_000
"""States of one request; while they are written, nobody else is answered."""


class ViewClient:
    """Asks a view over HTTP.

    Args:
        urls: The URL of each part.
        token: What the view wants to be told; empty: nothing.
    """

    def __init__(self, urls: Sequence[str], token: str = "") -> None:
        self._urls, self._headers = [url.rstrip("/") for url in urls], bearer(token)

    @classmethod
    def of(cls, settings: ViewSettings, urls: Sequence[str] | None) -> ViewClient:
        """A client of some URLs, or else of the view that the settings describe.

        Raises:
            NewnormalError: ``VIEW_TOKEN`` if the file of its token cannot be read.
        """
        if urls:
            return cls(urls, access_token(settings))
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
        return cls([f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"], access_token(settings))

    def states(self) -> Iterator[dict[str, Any]]:
        """The last states of all series of all parts.

        Raises:
            NewnormalError: ``VIEW_UNREACHABLE``, or the error that the view answers with.
        """
        for url in self._urls:
            after: str | None = ""
            while after is not None:
                page = _accepted(self._asked(url + "/states", {"limit": _PAGE, "after": after}))
                yield from page["states"]
                after = page["next"]

    def one(self, path: str, **query: Any) -> dict[str, Any]:
        """The answer of the part that has a machine.

        Raises:
            NewnormalError: ``VIEW_UNREACHABLE``, or the error that the view answers with.
        """
        answers = [self._asked(url + path, query) for url in self._urls[:1]]
        for url in self._urls[1:]:
            if answers[-1].status_code != httpx.codes.MISDIRECTED_REQUEST:
                break
            answers.append(self._asked(url + path, query))
        return _accepted(answers[-1])

    def every(self, path: str, **query: Any) -> dict[str, Any]:
        """The answers of all parts in one: lists are put together, counts are added, the oldest age applies."""
        answers = [_accepted(self._asked(url + path, query)) for url in self._urls]
        whole = min(answers, key=lambda each: each["age"].get("event_time", ""))
        for other in answers:
            if other is whole:
                continue
            ages = whole["age"], other["age"]
            whole["age"]["messages_behind"] = sum(age["messages_behind"] for age in ages)
            whole["age"]["seconds_behind"] = max(age["seconds_behind"] for age in ages)
            if "states" in whole:
                whole["states"] += other["states"]
            if "counts" in whole:
                names = [*whole["counts"], *(name for name in other["counts"] if name not in whole["counts"])]
                whole["counts"] = {n: whole["counts"].get(n, 0) + other["counts"].get(n, 0) for n in names}
        return whole

    def _asked(self, url: str, query: dict[str, Any]) -> httpx.Response:
        options: dict[str, Any] = {"headers": self._headers, "timeout": _SECONDS, "trust_env": False}
        try:
            answer = httpx.get(url, params=query, **options)
            if answer.next_request:  # another part has the machine; httpx itself would not tell it the token
                answer = httpx.get(answer.next_request.url, **options)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            accepted = "the URL of a running view: `newnormal view` starts one"
            raise NewnormalError("VIEW_UNREACHABLE", str(error) or type(error).__name__, url, accepted) from None
        return answer


def _accepted(answer: httpx.Response) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        body = {}
    if answer.is_success and "age" in body:
        return dict(body)
    code, detail = body.get("code"), body.get("detail")
    if code and detail:
        raise NewnormalError(code, detail, str(answer.url))
    what = f"an answer with status {answer.status_code}: {str(detail or answer.text)[:200]}"
    raise NewnormalError("VIEW_UNREACHABLE", what, str(answer.url), "the URL of a state view")
