"""Errors that a user can act on: a stable code, what is wrong, where, what is accepted, and what happens now."""

from __future__ import annotations


class NewnormalError(Exception):
    """An error whose text tells a user all that is needed to mend it; shown without a stack trace.

    Args:
        code: Stable identifier in UPPER_SNAKE case; scripts may match on it, so it never changes meaning.
        what: What is wrong, with the offending value.
        where: The setting, file, topic or command it was found in.
        accepted: What would have been accepted.
        now: What happens as a consequence.

    >>> print(NewnormalError("SETTING_INVALID", "'10 parsecs' is no duration", "window.size", "10s, 5m", "not started"))
    SETTING_INVALID: '10 parsecs' is no duration
      where: window.size
      accepted: 10s, 5m
      now: not started
    """

    def __init__(self, code: str, what: str, where: str = "", accepted: str = "", now: str = "") -> None:
        self.code, self.what, self.where, self.accepted, self.now = code, what, where, accepted, now
        details = {"where": where, "accepted": accepted, "now": now}
        super().__init__("\n".join([f"{code}: {what}", *(f"  {k}: {v}" for k, v in details.items() if v)]))

    def __reduce__(self) -> tuple[type, tuple[str, ...]]:
        return type(self), (self.code, self.what, self.where, self.accepted, self.now)
