"""Pushes the scores of a view by remote write: one sample a series and window, at the end of the window.

All that a window's scores follow from lies in the database of the view, so nothing else is kept but how far it was
pushed. A process that was killed pushes the last windows again, with the same times. A receiver that does not answer is
asked again; then all windows follow that the view still has.
"""

from __future__ import annotations

import threading
from pathlib import Path

import structlog

from engine.clock import now_ms
from engine.spec.duration import NEVER
from pipelines.contracts.settings import Settings
from pipelines.contracts.web_answers import origin
from pipelines.query.view.answers import Answers
from pipelines.query.view.scores.columns import Chosen, scores
from pipelines.query.view.scores.endpoint import AgainError, Endpoint
from pipelines.query.view.scores.judged import Settled
from pipelines.query.view.scores.requests import STALE, Encoded, Told, requests, values
from pipelines.query.view.scores.sent import Sent, sent
from pipelines.query.view.windows import Ring

_LOOK = 1.0
"""Seconds between two looks for windows that were judged."""

_SHORTEST, _LONGEST = 0.5, 60.0
"""Bounds of the time until a receiver that does not answer is asked again, seconds; it doubles each time."""
log = structlog.get_logger()


def chosen(settings: Settings) -> Chosen:
    """The series that the settings name."""
    wanted = settings.scores
    return Chosen(tuple(wanted.series.split(",")) if wanted.series else (), wanted.novel, wanted.most)


class Sender:
    """Pushes what a view knows.

    Args:
        view: The view, whose database others write.
        folder: The folder of the view's part, where it is noted how far it was pushed.
        endpoint: The receiver.

    Attributes:
        sent: How far it was pushed.
    """

    def __init__(self, view: Answers, folder: Path, endpoint: Endpoint) -> None:
        self._view, self._folder, self._endpoint = view, folder, endpoint
        self._ring, self._wanted = Ring(view.settings), chosen(view.settings)
        self._settled, self._last = Settled(), dict[Told, float]()
        self.sent = sent(self._folder) or Sent()
        self.sent.receiver = origin(view.settings.scores.remote_write_url or "")

    def run(self, stopped: threading.Event) -> None:
        """Pushes until an event is set."""
        self.sent.write(self._folder)
        while not stopped.wait(_LOOK):
            self.step(stopped)

    def step(self, stopped: threading.Event) -> None:
        """Pushes the windows that were judged since the last time; returns early if the event is set."""
        self._view.database.catch_up()
        until = self._settled.until(self._view.progress(), len(self._view.own_partitions()))
        if until == NEVER:
            return
        every = self._ring.every
        end = until // every * every
        while (following := self._following(end)) <= end and not stopped.is_set():
            if not self._push(following, stopped):
                return
            self.sent.until = following
            self.sent.write(self._folder)

    def _following(self, end: int) -> int:
        """End of the next window to push; those that the view has forgotten are left out, and counted."""
        every = self._ring.every
        if self.sent.until is None:
            return end
        following = self.sent.until + every
        oldest = end - (self._ring.places - 1) * every
        if following < oldest:
            left_out = (oldest - following) // every
            self.sent.skipped += left_out
            log.warning("windows are not pushed: the view has forgotten them (view.windows)", windows=left_out)
            return oldest
        return following

    def _push(self, end: int, stopped: threading.Event) -> bool:
        """Pushes the scores of one window; returns whether that is done."""
        rows = scores(self._view.database, self._ring, self._wanted, end, before=True).rows
        told = values(rows)
        ended = dict.fromkeys(self._last.keys() - told.keys(), STALE)
        for request in requests(told | ended, self._view.settings.version, end):
            if not self._post(request, stopped):
                return False
        self._last = dict.fromkeys(told, 0.0)
        return True

    def _post(self, request: Encoded, stopped: threading.Event) -> bool:
        """Posts a request until it is taken, or refused for good; false: the event was set before."""
        wait = _SHORTEST
        while not stopped.is_set():
            try:
                refused = self._endpoint.post(request.body)
            except AgainError as error:
                self._failing(error.reason)
                stopped.wait(max(wait, error.after or 0.0))
                wait = min(2 * wait, _LONGEST)
                continue
            if self.sent.failing_since is not None:
                log.info("scores are pushed again", receiver=self.sent.receiver)
            self.sent.failing_since = None
            if refused:
                self._refused(refused, request.samples)
            else:
                self.sent.samples += request.samples
            return True
        return False

    def _failing(self, reason: str) -> None:
        if self.sent.failing_since is None:
            log.warning("scores are not pushed; it is tried again", receiver=self.sent.receiver, reason=reason)
            self.sent.failing_since = now_ms()
        self.sent.reason = reason
        self.sent.write(self._folder)

    def _refused(self, reason: str, samples: int) -> None:
        if reason != self.sent.reason or self.sent.refused_at is None:
            log.warning("scores are refused, and not sent again", receiver=self.sent.receiver, reason=reason)
        self.sent.refused += samples
        self.sent.refused_at, self.sent.reason = now_ms(), reason
