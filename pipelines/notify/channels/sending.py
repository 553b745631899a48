"""What all channels share: how they send, and how they fail."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Generic, TypeVar

from pydantic import BaseModel

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.notify.left import LeftMails
from pipelines.notify.message import Message
from pipelines.notify.news import News

TIMEOUT = 10.0
"""How long a receiver may take to answer, seconds."""


class SendError(NewnormalError):
    """A message did not arrive, or may not have arrived.

    Args:
        code: ``NOTIFY_UNREACHABLE`` or ``NOTIFY_REFUSED``.
        why: What the receiver answered, without secrets.
        where: The receiver, without secrets.
        hopeless: True if this very message will never be taken, so that it is useless to send it again.
        after: Seconds after which the receiver wants to be asked again; ``None``: it does not say.
    """

    def __init__(self, code: str, why: str, where: str, *, hopeless: bool = False, after: float | None = None) -> None:
        super().__init__(code, why, where, "an answer that says that it was taken")
        self.hopeless, self.after = hopeless, after


def cut(text: str, most: int) -> str:
    """A text of at most so many characters; what is left out is marked.

    >>> cut("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def cut_bytes(text: str, most: int) -> str:
    """A text of at most so many bytes of UTF-8; what is left out is marked."""
    whole = text.encode()
    return text if len(whole) <= most else whole[: max(0, most - 3)].decode(errors="ignore") + "…"


Channel = TypeVar("Channel", bound=BaseModel)


class Sender(ABC, Generic[Channel]):
    """Sends messages to one receiver, which is told once of each and takes plain text, unless a class says otherwise.

    Args:
        name: Name of the channel.
        channel: Its settings.
        settings: The settings of notifications.

    Attributes:
        limited: Whether quiet hours and the rate apply. They do not if the receiver has its own.
        repeats: Whether the receiver must be told again and again of what lasts.
    """

    limited, repeats = True, False

    def __init__(self, name: str, channel: Channel, settings: NotifySettings) -> None:
        self._name, self._channel, self._settings = name, channel, settings

    def escape(self, text: str) -> str:
        """Makes a text harmless where the receiver would take parts of it for markup."""
        return text

    @abstractmethod
    def send(self, message: Message, left: LeftMails) -> str:
        """Sends a message; returns what the receiver answered.

        Args:
            message: The message.
            left: Takes the message for those recipients of a mail who were refused for the moment.

        Raises:
            SendError: If it was not taken.
            NewnormalError: ``NOTIFY_SECRET``.
        """

    def again(self, left: LeftMails, now: int) -> list[str]:
        """Sends mails again that single recipients have not taken yet; returns why some still have not.

        Args:
            left: The mails; those that are taken, or given up, are removed.
            now: The present, epoch milliseconds.

        Raises:
            SendError: If the server takes nothing now.
        """
        return []

    def repeat(self, lasting: Collection[News]) -> None:
        """Tells again of incidents that last. Raises as `send`."""
