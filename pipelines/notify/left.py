"""Mails that some recipients have taken and others have not yet: for these they are kept, in order, until they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class LeftMail:
    """A mail that one recipient has not taken yet.

    Attributes:
        id: The deduplication id of the message.
        mail: The whole mail.
        since: When it was refused first, epoch milliseconds.
    """

    id: str
    mail: str
    since: int


class LeftMails:
    """The mails of one channel that single recipients have not taken yet.

    Args:
        mails: Those that are known, by recipient.
        keep: Called with all mails of a recipient when they change.

    >>> left = LeftMails()
    >>> left.add(["a@example.org"], LeftMail("i1:1:opened", "...", 0))
    >>> left.recipients, left.first("a@example.org").id
    (frozenset({'a@example.org'}), 'i1:1:opened')
    >>> left.done("a@example.org")
    >>> left.recipients
    frozenset()
    """

    def __init__(
        self,
        mails: Mapping[str, Iterable[LeftMail]] | None = None,
        keep: Callable[[str, list[LeftMail]], None] = lambda _recipient, _mails: None,
    ) -> None:
        self._mails, self._keep = {recipient: list(some) for recipient, some in (mails or {}).items()}, keep

    @property
    def recipients(self) -> frozenset[str]:
        """Those for whom there are mails."""
        return frozenset(self._mails)

    def first(self, recipient: str) -> LeftMail | None:
        """The oldest mail for a recipient; ``None`` if there is none."""
        return next(iter(self._mails.get(recipient, ())), None)

    def add(self, recipients: Iterable[str], mail: LeftMail) -> None:
        """Adds a mail for some recipients; one that has it already does not get it twice."""
        for each in recipients:
            known = self._mails.setdefault(each, [])
            if all(other.id != mail.id for other in known):
                known.append(mail)
                self._keep(each, known)

    def done(self, recipient: str) -> None:
        """Removes the oldest mail for a recipient."""
        rest = self._mails.pop(recipient)[1:]
        if rest:
            self._mails[recipient] = rest
        self._keep(recipient, rest)
