"""Asks an HTTP API for JSON: with a login, over TLS, again after failures that pass, and no more than fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson

from engine.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.contracts.retry_after import retry_after
from pipelines.contracts.setting_types import is_web_address
from pipelines.contracts.web_answers import quoted
from pipelines.history.intake import StoppedError, TooMuchError
from pipelines.history.login import Login, option

MOST_BYTES = 64 << 20
"""The bytes of an answer, decompressed; what is more is refused while it comes."""

_TRIES, _FIRST_WAIT, _LONGEST_WAIT = 7, 1.0, 60.0
_TIMEOUT = httpx.Timeout(120.0, connect=15.0)
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_LONGEST_URL = 3_000
_SHOWN = 300
_NOW = "what was imported stays, and the same command goes on there"


class HttpApi:
    """A server that answers with JSON.

    Args:
        url: Its address, with a path before those of the API if there is one.
        login: How it lets in.
        stop: When set, it is not tried again.
        say: Is called with a sentence when it is tried again.

    Raises:
        NewnormalError: ``IMPORT_OPTION`` or ``LOGIN_FILE``.
    """

    def __init__(self, url: str, login: Login, stop: Event, say: Callable[[str], None]) -> None:
        self.url, self._stop, self._say = _plain(checked_url(url)).rstrip("/"), stop, say
        basic, headers = login.basic(url), login.header_values()
        self._secrets = (*headers.values(), *(basic or ()))
        self._client = httpx.Client(
            headers={"User-Agent": "newnormal", **headers}, auth=basic, verify=login.tls(), timeout=_TIMEOUT,
            trust_env=False,
        )  # fmt: skip

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def ask(self, path: str, parameters: list[tuple[str, str]]) -> tuple[int, Any]:
        """The status of an answer, and what it holds, as JSON.

        A status that passes is asked for again, for some minutes; the last answer counts.

        Raises:
            TooMuchError: If the answer is longer than `MOST_BYTES`.
            NewnormalError: ``IMPORT_UNREACHABLE``, ``IMPORT_LOGIN`` or ``IMPORT_ANSWER``.
            StoppedError: If the import was stopped.
        """
        wait = _FIRST_WAIT
        for tried in range(1, _TRIES + 1):
            try:
                status, body, after = self._once(path, parameters)
                why = f"HTTP {status}"
            except httpx.HTTPError as error:
                status, body, after = 0, b"", None
                why = self._shown(str(error) or type(error).__name__)
            if status in (401, 403):
                accepted = "an account that may query: --token-file, --user with --password-file, or --header"
                what = f"HTTP {status}: {self._shown(body.decode('utf-8', 'replace'))}"
                raise NewnormalError("IMPORT_LOGIN", what, self.url, accepted, _NOW)
            parsed = _json(body) if status else None
            if status and (status not in _PASSING or tells(parsed) or tried == _TRIES):
                return status, self._checked(status, parsed, body)
            if tried < _TRIES:
                pause = max(min(wait, _LONGEST_WAIT), after or 0.0)
                self._say(f"{self.url}: {why}; it is asked again in {pause:g} s")
                if self._stop.wait(pause):
                    raise StoppedError
                wait *= 2
        accepted = "a server that answers: see its address, certificate and log"
        raise NewnormalError("IMPORT_UNREACHABLE", why, self.url, accepted, _NOW)

    def _once(self, path: str, parameters: list[tuple[str, str]]) -> tuple[int, bytes, float | None]:
        long = sum(len(name) + len(value) for name, value in parameters) > _LONGEST_URL
        how: dict[str, Any] = {"data": _form(parameters)} if long else {"params": parameters}
        with self._client.stream("POST" if long else "GET", self.url + path, **how) as answer:
            parts, size = [], 0
            for part in answer.iter_bytes():
                size += len(part)
                if size > MOST_BYTES:
                    raise TooMuchError(f"an answer of more than {MOST_BYTES >> 20} MB")
                parts.append(part)
            after = retry_after(answer.headers.get("Retry-After", ""), _LONGEST_WAIT)
            return answer.status_code, b"".join(parts), after

    def _checked(self, status: int, parsed: Any, body: bytes) -> Any:
        if isinstance(parsed, dict):
            return parsed
        what = f"HTTP {status}, and no JSON of the API: {self._shown(body.decode('utf-8', 'replace'))!r}"
        accepted = "the address before /api/v1, e.g. http://mimir:8080/prometheus"
        raise NewnormalError("IMPORT_ANSWER", what, self.url, accepted, _NOW)

    def _shown(self, text: str) -> str:
        return quoted(text, self._secrets, _SHOWN).strip()


def checked_url(url: str) -> str:
    """The address of a server.

    Raises:
        NewnormalError: ``IMPORT_OPTION``.
    """
    if not is_web_address(url) or "?" in url:
        accepted = "http://host:port or https://host, with a path if needed"
        raise option("URL", f"{visible(url.rpartition('@')[2])[:200]!r} is no address", accepted)
    return url


def tells(parsed: Any) -> bool:
    """Whether an answer says by itself why a query failed, so that asking again does not help."""
    return isinstance(parsed, dict) and parsed.get("errorType") in ("timeout", "execution", "bad_data", "canceled")


def _form(parameters: list[tuple[str, str]]) -> Mapping[str, list[str]]:
    form: dict[str, list[str]] = {}
    for name, value in parameters:
        form.setdefault(name, []).append(value)
    return form


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _plain(url: str) -> str:
    """A URL without user and password.

    >>> _plain("https://me:word@prom.example.org/a")
    'https://prom.example.org/a'
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
