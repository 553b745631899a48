"""What the notifying process knows, on disk: incidents, how far the topic was read, what was said to each channel.

Each change is one atomic write. Several threads use it, one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Incident
from pipelines.contracts.records.incident import STANDING
from pipelines.contracts.settings.routes import Route
from pipelines.notify.left import LeftMail, LeftMails
from pipelines.notify.news import LastReport
from pipelines.notify.routing import Routing, Taken
from pipelines.query.told import ToldFiles
from pipelines.query.view.database import Database

_INCIDENT, _OFFSET, _SAID, _TRIED = b"i\0", b"o\0", b"s\0", b"a\0"
_BEGAN, _SENT, _READ, _TOPIC, _LEFT = b"b\0", b"t\0", b"r\0", b"d\0", b"l\0"
_FORMER = " (a former topic of this name)"
"""Follows the name of a topic that was made anew where its incidents are kept, until those who know them were told."""
_ROUTES = b"w"
_KEPT_MS = 30 * 86_400_000
"""An incident that is over is forgotten so long after its last message was read, milliseconds."""


@dataclass(frozen=True)
class ReadIncident:
    """An incident as it was last read.

    Attributes:
        incident: The incident.
        topic: The topic that it was read from.
        read: When, epoch milliseconds.
        taken: Which routes take it.
    """

    incident: Incident
    topic: str
    read: int
    taken: Taken

    def stored(self) -> bytes:
        """The value in the database."""
        return orjson.dumps([self.topic, self.read, self.incident.to_json().decode(), self.taken.stored()])


class Memory:
    """The database of one namespace, in a folder that one process has open.

    Args:
        folder: The folder.
        channels: Names of the channels. One that is left out begins anew when it is given again.
        routing: The routes; ``None``: all channels are told of everything.

    Raises:
        NewnormalError: ``NOTIFY_UNUSABLE`` if another process has the folder open.

    Attributes:
        messages: What was told to whom, for who only reads.
        routing: The routes.
    """

    def __init__(self, folder: Path, channels: Iterable[str], routing: Routing | None = None) -> None:
        try:
            self._database = Database(folder)
        except NewnormalError as error:
            accepted = "a folder that no other `newnormal notify run` has open"
            raise NewnormalError("NOTIFY_UNUSABLE", error.what, error.where, accepted, "nothing was started") from None
        self._lock, self.messages = threading.Lock(), ToldFiles(folder)
        names = list(channels)
        self.routing = routing or Routing([Route(name="all", channels=tuple(names))])
        self._routes = self._known_routes()
        rows = [self._read(value) for _, value in self._database.scan(_INCIDENT)]
        self._incidents = {(each.topic, each.incident.id): each for each in rows}
        self._older: Collection[tuple[str, str]] | None = set(self._incidents)
        """The incidents of before this start, until their topic was read to its end; then ``None``."""
        self._fresh: set[tuple[str, str]] = set()
        self._last = {name: self._stored(_report_key(name)) for name in names}
        self._tried = {name: self._stored(_tried(name)) for name in names}
        sent = {name: self._database.get(_SENT + name.encode()) for name in self._last}
        self._sent: dict[str, list[int]] = {name: orjson.loads(value) if value else [] for name, value in sent.items()}

    def _known_routes(self) -> dict[str, list[str]]:
        """The digests of the routes of before this start, by name.

        Earlier releases stored the severity of each channel, which is the route of that channel if it has the same.
        """
        if known := self._database.get(_ROUTES):
            return dict(orjson.loads(known))
        began = {key[len(_BEGAN) :].decode(): severity.decode() for key, severity in self._database.scan(_BEGAN)}
        now = self.routing.digests
        return {name: digest for name, digest in now.items() if began.get(name) == self.routing.severity(name)}

    def _read(self, value: bytes) -> ReadIncident:
        """The inverse of `ReadIncident.stored`; earlier releases stored no routes."""
        topic, read, text, *more = orjson.loads(value)
        incident = Incident.from_json(text)
        if more:
            return ReadIncident(incident, topic, read, Taken(**more[0]))
        taken = self.routing.taken(incident)
        if incident.status not in STANDING:
            taken = taken.only(self._routes)
        return ReadIncident(incident, topic, read, taken)

    def _stored(self, prefix: bytes) -> dict[str, LastReport]:
        """What is stored of each incident below a prefix."""
        return {key[len(prefix) :].decode(): LastReport.of(value) for key, value in self._database.scan(prefix)}

    def offsets(self, topic: str) -> dict[int, int]:
        """The offset of the next message to read of each partition of a topic that was read before."""
        prefix = _OFFSET + topic.encode() + b"\0"
        return {int(key[len(prefix) :]): int(value) for key, value in self._database.scan(prefix)}

    def take(self, topic: str, incidents: Iterable[Incident], offsets: Mapping[int, int], now: int) -> None:
        """Stores incidents that were read, and how far the topic was read. Of two revisions the higher one counts."""
        with self._lock:
            new: dict[tuple[str, str], ReadIncident] = {}
            for incident in incidents:
                key = topic, incident.id
                old = new.get(key) or self._incidents.get(key)
                if old is None or old.incident.revision <= incident.revision:
                    taken = self.routing.taken(incident, old.taken if old else None)
                    new[key] = ReadIncident(incident, topic, now, taken)
            puts = [(_row(*key), incident.stored()) for key, incident in new.items()]
            puts += [(_OFFSET + topic.encode() + b"\0%d" % at, b"%d" % offset) for at, offset in offsets.items()]
            self._database.write(puts)
            self._incidents.update(new)
            if self._older is not None:
                self._fresh |= new.keys()

    def identity(self, topic: str) -> str | None:
        """The identity that a topic had when it was read; ``None``: it is not known."""
        found = self._database.get(_TOPIC + topic.encode())
        return found.decode() if found else None

    def identify(self, topic: str, identity: str) -> None:
        """Stores the identity of a topic that is read."""
        with self._lock:
            self._database.write([(_TOPIC + topic.encode(), identity.encode())])

    def restart(self, topic: str, identity: str) -> None:
        """Forgets how far a topic was read that was made anew.

        Its incidents become those of another topic: a channel that knows one of them hears its end, unless the new
        topic has it, too.
        """
        with self._lock:
            prefix, former = _OFFSET + topic.encode() + b"\0", topic + _FORMER
            rows = [key for key in self._incidents if key[0] == topic]
            moved = {(former, name): replace(self._incidents[topic, name], topic=former) for _, name in rows}
            keys = [*(key for key, _ in self._database.scan(prefix)), *(_row(*key) for key in rows)]
            puts = [(_row(*key), each.stored()) for key, each in moved.items()]
            puts.append((_TOPIC + topic.encode(), identity.encode()))
            self._database.write(puts, [*keys, _READ + topic.encode()])
            for key in rows:
                del self._incidents[key]
            self._incidents.update(moved)

    def begin(self, topic: str) -> None:
        """Is called when a topic was read to its end. What was over before that is not told if it was never read to it.

        Nor is what only a new or changed route takes, if it was over before; what lasts is taken by the routes anew.
        """
        with self._lock:
            first = self._database.get(_READ + topic.encode()) is None
            digests, older = self.routing.digests, self._older or ()
            same = {name for name, digest in digests.items() if self._routes.get(name) == digest}
            no_wider = {name for name in digests.keys() & self._routes if {*digests[name][1:]} <= {*self._routes[name]}}
            new: dict[tuple[str, str], ReadIncident] = {}
            for key, each in self._incidents.items():
                taken = each.taken
                if each.incident.status in STANDING and key in older and self._routes != digests:
                    taken = self.routing.anew(each.incident, taken.only(same))
                elif each.incident.status in STANDING:
                    continue
                elif first and each.topic == topic:
                    taken = taken.only(())
                else:
                    taken = taken.only(same if key in self._fresh else no_wider)
                if taken != each.taken:
                    new[key] = replace(each, taken=taken)
            puts = [(_row(*key), each.stored()) for key, each in new.items()]
            puts += [(_READ + topic.encode(), b"1"), (_ROUTES, orjson.dumps(digests))]
            self._database.write(puts, [key for key, _ in self._database.scan(_BEGAN)])
            self._incidents.update(new)
            self._routes, self._older, self._fresh = digests, None, set()

    def incidents(self, topic: str) -> tuple[list[ReadIncident], list[ReadIncident]]:
        """The incidents of a topic, and those of other topics that are not in this one."""
        with self._lock:
            known = list(self._incidents.values())
        mine = {each.incident.id: each for each in known if each.topic == topic}
        others = {each.incident.id: each for each in known if each.incident.id not in mine}
        return list(mine.values()), list(others.values())

    def untaken(self, topic: str) -> list[str]:
        """The incidents of a topic that last and that no route takes, by id."""
        mine, _ = self.incidents(topic)
        return [it.incident.id for it in mine if it.incident.status in STANDING and not it.taken.since]

    def last_reports(self, channel: str) -> dict[str, LastReport]:
        """What a channel was told last of each incident."""
        with self._lock:
            return dict(self._last[channel])

    def tried(self, channel: str) -> dict[str, LastReport]:
        """What a channel may have been told since, by messages of which it is not known whether they arrived."""
        with self._lock:
            return dict(self._tried[channel])

    def sent(self, channel: str) -> list[int]:
        """When a channel got its last messages, epoch milliseconds."""
        with self._lock:
            return list(self._sent[channel])

    def left(self, channel: str) -> LeftMails:
        """The mails of a channel that single recipients have not taken yet; what becomes of them is stored."""
        prefix = _LEFT + channel.encode() + b"\0"
        stored = {
            key[len(prefix) :].decode(): [LeftMail(*mail) for mail in orjson.loads(value)]
            for key, value in self._database.scan(prefix)
        }

        def keep(recipient: str, mails: list[LeftMail]) -> None:
            key, left = prefix + recipient.encode(), [[mail.id, mail.mail, mail.since] for mail in mails]
            with self._lock:
                self._database.write([(key, orjson.dumps(left))] if left else [], [] if left else [key])

        return LeftMails(stored, keep)

    def begin_to_say(self, channel: str, messages: Mapping[str, LastReport]) -> None:
        """Stores what a channel is told by a message before it is sent; arguments as of `say`."""
        with self._lock:
            self._database.write([(_tried(channel) + name.encode(), each.stored()) for name, each in messages.items()])
            self._tried[channel].update(messages)

    def not_said(self, channel: str, incidents: Iterable[str]) -> None:
        """Stores that a channel has refused a message on these incidents."""
        with self._lock:
            names = list(incidents)
            self._database.write([], [_tried(channel) + name.encode() for name in names])
            for name in names:
                self._tried[channel].pop(name, None)

    def say(self, channel: str, messages: Mapping[str, LastReport], now: int, most: int) -> None:
        """Stores that a channel was told of incidents, by id, in one message.

        Args:
            channel: Name of the channel.
            messages: What it was told.
            now: The present, epoch milliseconds.
            most: How many times of messages are kept.
        """
        with self._lock:
            sent = [*self._sent[channel], now][-most:]
            puts = [(_report_key(channel) + name.encode(), each.stored()) for name, each in messages.items()]
            tried = [_tried(channel) + name.encode() for name in messages]
            self._database.write([*puts, (_SENT + channel.encode(), orjson.dumps(sent))], tried)
            self._last[channel].update(messages)
            for name in messages:
                self._tried[channel].pop(name, None)
            self._sent[channel] = sent

    def forget(self, now: int) -> None:
        """Forgets incidents that were over long ago."""
        with self._lock:
            over = {
                key: (each.incident.status in ("resolved", "merged") or each.topic.endswith(_FORMER))
                and each.read < now - _KEPT_MS
                for key, each in self._incidents.items()
            }
            names = {name for _, name in over} - {name for (_, name), old in over.items() if not old}
            rows = [key for key in over if key[1] in names]
            prefixes = [of(channel) for channel in self._last for of in (_report_key, _tried)]
            keys = [prefix + name.encode() for prefix in prefixes for name in names]
            self._database.write([], [*keys, *(_row(*key) for key in rows)])
            for key in rows:
                del self._incidents[key]
            for reports in (*self._last.values(), *self._tried.values()):
                for name in names:
                    reports.pop(name, None)

    def close(self) -> None:
        """Closes the folder."""
        with self._lock:
            self._database.close()


def _row(topic: str, incident: str) -> bytes:
    return _INCIDENT + topic.encode() + b"\0" + incident.encode()


def _report_key(channel: str) -> bytes:
    return _SAID + channel.encode() + b"\0"


def _tried(channel: str) -> bytes:
    return _TRIED + channel.encode() + b"\0"
