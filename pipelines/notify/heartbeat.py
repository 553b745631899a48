"""A regular sign of life to a dead man's switch: a service elsewhere that raises the alarm when it stays away.

Nobody else could tell that this process, or the machine it runs on, is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import httpx
import structlog

from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.setting_types import is_web_address
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.notify.channels.sending import TIMEOUT
from pipelines.notify.secrets import secret

log = structlog.get_logger()


def heartbeat_url(settings: NotifySettings) -> str | None:
    """Where the sign of life goes; ``None`` if nowhere.

    Raises:
        NewnormalError: ``NOTIFY_SECRET`` if the file with the URL cannot be read, or holds none.
    """
    if settings.heartbeat_url is not None:
        return settings.heartbeat_url.get_secret_value()
    where = "notify.heartbeat_url"
    url = secret(where, settings.heartbeat_url_file or None, None)
    if url is not None and not is_web_address(url):
        raise NewnormalError("NOTIFY_SECRET", "what is there is no URL", where, "http://host or https://host/path")
    return url


class Heartbeat(threading.Thread):
    """Asks for a URL at regular times, as long as all is well.

    Args:
        settings: The settings of notifications, with a URL.
        trouble: Says why no sign of life is sent now; empty: all is well.
    """

    def __init__(self, settings: NotifySettings, trouble: Callable[[], str]) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self._settings, self._trouble, self._ended = settings, trouble, threading.Event()
        self._logged = ""

    def run(self) -> None:
        """Sends signs of life until `stop`."""
        while not self._ended.is_set():
            trouble = self._trouble()
            self._tell(f"no sign of life is sent: {trouble}" if trouble else self._sent())
            self._ended.wait(duration_ms(self._settings.heartbeat_every) / 1000)

    def stop(self) -> None:
        """Ends the thread."""
        self._ended.set()

    def _sent(self) -> str:
        """Sends a sign of life; returns why it was not taken, without the URL, which is a secret."""
        try:
            url = heartbeat_url(self._settings) or ""
            with httpx.stream("GET", url, headers={"User-Agent": "newnormal"}, timeout=TIMEOUT) as answer:
                pass  # what it says beside its status is not read
        except NewnormalError as error:
            return f"a sign of life could not be sent: {error.what}"
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return f"a sign of life was not taken: {type(error).__name__}"
        return "" if answer.is_success else f"a sign of life was not taken: status {answer.status_code}"

    def _tell(self, trouble: str) -> None:
        if trouble and trouble != self._logged:
            log.warning(trouble)
        elif self._logged and not trouble:
            log.info("signs of life are sent again")
        self._logged = trouble
