"""Tells one channel what it has to be told, in a thread of its own, and again until the channel takes it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import structlog

from engine.clock import now_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Incident
from pipelines.contracts.settings import Settings
from pipelines.notify.channels.senders import sender
from pipelines.notify.channels.sending import SendError
from pipelines.notify.figures import ChannelFigures, Tally
from pipelines.notify.memory import Memory
from pipelines.notify.message import Message, single, summary
from pipelines.notify.news import News
from pipelines.notify.planning import all_due, plan
from pipelines.query.told import SentMessage

_LOOK = 0.5
"""Seconds between two looks for what is new."""

_FIRST, _LONGEST = 1.0, 60.0
"""The first pause after a failure, and the longest, seconds. Each is up to twice as long as the one before."""

_TRIES = 5
"""How often a message is sent that the receiver says is wrong in itself."""

_REPEAT = 300.0
"""Seconds after which a receiver that forgets is told again of what lasts."""

log = structlog.get_logger()


class Teller(threading.Thread):
    """Tells one channel.

    A message is stored as tried, sent, then stored as said: if the process is killed in between, the message is sent
    again with the same deduplication id; or, if the incident is over by then, the channel is told of that.

    Args:
        name: Name of the channel.
        settings: The settings of all versions.
        memory: What is known.
        topic: Returns the topic and version that are shown; ``None``: not known yet, or not read to its end.
    """

    def __init__(
        self, name: str, settings: Settings, memory: Memory, topic: Callable[[], tuple[str, str] | None]
    ) -> None:
        super().__init__(name=f"notify {name}", daemon=True)
        self._channel, self._settings, self._memory, self._topic = name, settings.notify, memory, topic
        self._sender = sender(name, settings.notify)
        self._tally = Tally(name)
        self._held: frozenset[str] = frozenset()
        self._failures, self._wrong, self._repeated = 0, dict[str, int](), float("-inf")
        self._left = memory.left(name)
        self._asked, self._refusals = float("-inf"), 0
        self._ended = threading.Event()

    def run(self) -> None:
        """Tells the channel until `stop`."""
        pause = 0.0
        while not self._ended.wait(pause):
            pause = _LOOK
            shown = self._topic()
            if shown is None:
                continue
            try:
                self._tell(*shown)
                if self._failures:
                    log.info("the channel takes messages again", channel=self._channel)
                self._failures = 0
                if not self._left.recipients:
                    self._tally.works()
            except NewnormalError as error:
                pause = self._pause(error)
            except Exception as error:
                log.exception("a channel could not be told", channel=self._channel)
                self._tally.failed(type(error).__name__, now_ms())
                pause = _LONGEST

    def figures(self) -> ChannelFigures:
        """What was sent, what failed, and what waits."""
        return self._tally.figures()

    def stop(self) -> None:
        """Ends the thread when the message that is sent now was answered."""
        self._ended.set()

    def _tell(self, topic: str, version: str) -> None:
        self._send_again()
        reports, tried = self._memory.last_reports(self._channel), self._memory.tried(self._channel)
        there, elsewhere = self._memory.incidents(topic)
        now = now_ms()
        known = reports.keys() | tried.keys()
        gone = [replace(it, incident=_gone(it.incident, version, now)) for it in elsewhere if it.incident.id in known]
        both = ((each.incident, each.taken) for each in (*there, *gone))
        due = all_due(self._channel, both, self._memory.routing, now, reports, tried)
        sent = self._memory.sent(self._channel)
        todo = plan(due, self._settings, now, sent, self._held, self._sender.limited)
        self._tally.due([new.incident.id for new in (*todo.single, *todo.together)], todo.held, now)
        channel, escape = self._settings.channels[self._channel], self._sender.escape
        for new in todo.single:
            self._send(single(new, channel, self._settings, version, escape))
        if todo.together:
            self._send(summary(todo.together, self._settings, escape))
        self._held = todo.held
        if self._sender.repeats and time.monotonic() > self._repeated + _REPEAT:
            reports = self._memory.last_reports(self._channel)
            known = {name for name, each in reports.items() if each.state not in ("resolved", "silent")}
            lasting = [it.incident for it in there if it.incident.id in known]
            self._sender.repeat([News(it, "opened", reports[it.id]) for it in lasting])
            self._repeated = time.monotonic()

    def _send_again(self) -> None:
        """Sends single recipients what they have not taken yet, after pauses like those of a channel that fails."""
        if not self._left.recipients or time.monotonic() < self._asked:
            return
        refused = self._sender.again(self._left, now_ms())
        self._refusals = self._refusals + 1 if refused else 0
        self._asked = time.monotonic() + _pause_after(self._refusals)
        if refused:
            self._tally.failed(", ".join(refused), now_ms())

    def _send(self, message: Message) -> None:
        given_up, reports = False, {each.incident.id: each.as_report() for each in message.news}
        new = reports.keys() - self._memory.tried(self._channel).keys()
        self._memory.begin_to_say(self._channel, reports)
        try:
            waiting = self._left.recipients
            answer = self._sender.send(message, self._left)
            if self._left.recipients - waiting:
                self._tally.failed(answer, now_ms())
                self._asked = time.monotonic() + _pause_after(1)
        except SendError as error:
            if error.code == "NOTIFY_REFUSED":
                self._memory.not_said(self._channel, new)  # of the others an earlier message may have arrived
            self._wrong[message.id] = self._wrong.get(message.id, 0) + error.hopeless
            if self._wrong[message.id] < _TRIES:
                raise
            log.error("a message is given up", channel=self._channel, id=message.id, reason=error.what)
            given_up = True
        self._wrong.pop(message.id, None)
        now = now_ms()
        self._memory.say(self._channel, reports, now, self._settings.rate)
        self._tally.taken(list(reports), given_up)
        if not given_up:
            self._memory.messages.add(SentMessage(now, self._channel, message.state, message.title, tuple(reports)))
            log.info("told", channel=self._channel, state=message.state, id=message.id)

    def _pause(self, error: NewnormalError) -> float:
        """Logs a failure; returns for how long the channel is left alone, seconds."""
        self._failures += 1
        self._tally.failed(error.what, now_ms())
        pause = _pause_after(self._failures)
        if isinstance(error, SendError) and error.after is not None:
            pause = max(pause, error.after)
        facts = {"again_s": round(pause, 1), "code": error.code, "reason": error.what, "where": error.where}
        log.warning("a message was not taken; it is sent again", channel=self._channel, **facts)
        return pause


def _pause_after(failures: int) -> float:
    """Seconds to wait after some failures in a row."""
    longest = min(_LONGEST, _FIRST * 2.0 ** min(max(failures, 1) - 1, 10))
    return random.uniform(longest / 2, longest)


def _gone(incident: Incident, version: str, now: int) -> Incident:
    """An incident of a version that is no longer shown, and that the one shown now does not have."""
    message = f"version {version}, which is shown now, has no such incident"
    over = {"status": "resolved", "message": message, "end": incident.end or now}
    return incident.model_copy(update=over) if incident.status not in ("resolved", "merged") else incident
