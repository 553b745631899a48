"""The time on which something is tried: the options `--from` and `--until` of the commands named `try`."""

from __future__ import annotations

from engine.spec.errors import NewnormalError
from pipelines.query.control_topics import instant


def past(start: str, end: str, now: int, command: str) -> tuple[int, int]:
    """First and last instant of a past time, epoch milliseconds; nothing after the present.

    Args:
        start: The option `--from`.
        end: The option `--until`.
        now: The present, epoch milliseconds.
        command: The command, for the error.

    Raises:
        NewnormalError: ``USAGE_INVALID``.

    >>> past("-2h", "+1h", 7_200_000, "rule try")
    (0, 7200000)
    """
    begin, until = instant(start, now, "--from") or 0, instant(end, now, "--until") or now
    if begin < min(until, now):
        return begin, min(until, now)
    what = f"--from {start} is not before --until {end}, or in the future"
    raise NewnormalError("USAGE_INVALID", what, command, "a past time", "nothing was tried")
