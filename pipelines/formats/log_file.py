"""The decoder of lines as syslog daemons write them to files: ``/var/log/syslog``, ``messages``, ``auth.log``.

They are rsyslog's templates RSYSLOG_FileFormat, which omkafka uses unless it is configured otherwise, and
RSYSLOG_TraditionalFileFormat, as most other daemons and ``journalctl`` write.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipelines.formats.text_logs import TextLogDecoder

_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_BSD = (
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}[0-9]{1,2} (?:[0-9]{4} )?"
    r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
)
_STAMP = rf"(?<stamp>{_ISO}|{_BSD})"
_HOST = r"(?<entity>[^\s\[\]:=\"]+(?::+[^\s\[\]:=\"]+)*)"
"""A name or an address, which neither ends in a colon nor holds a bracket: such a word is a program."""
_PROGRAM = r"(?<program>(?:-- )?[^\s:\[\]]+(?: [0-9][0-9.]*)?)(?:\[[^\]\s]*\])?:"
"""``sshd[7]:``, ``kernel:``; also ``syslogd 1.4.1:`` and ``-- root[7]:``."""
WITH_HOST = rf"^{_STAMP} {_HOST} {_PROGRAM}(?<message> .*|)$"
WITHOUT_HOST = rf"^{_STAMP} {_PROGRAM}(?<message> .*|)$"
WITHOUT_PROGRAM = rf"^(?<stamp>{_BSD}) {_HOST} (?<message>.+)$"
"""Only with BSD's time: behind one of RFC 3339 applications write a level or a text."""

_BEGINS = re.compile(rf"(?:{_ISO}|{_BSD}) \S".encode())


def looks_like_log_file(value: bytes) -> bool:
    """Whether a message begins with a time as syslog daemons write it to files."""
    return _BEGINS.match(value) is not None


@dataclass(frozen=True)
class LogFileDecoder(TextLogDecoder):
    """Decodes lines such as ``2026-11-26T09:07:30.5+01:00 web-1 sshd[7]: no`` or ``Nov 26 09:07:30 web-1 sshd[7]: no``.

    A time without a year is in the last year in which it is not ahead of the line's arrival.
    """

    accepted = "accepted: 2026-11-21T00:27:00Z host program[7]: text, or Nov 21 00:27:00 host program[7]: text"
    patterns = (WITH_HOST, WITHOUT_HOST, WITHOUT_PROGRAM)
