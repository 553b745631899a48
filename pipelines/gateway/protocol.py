"""What a protocol of pushing is to the gateway: it checks a body, says what Kafka gets, and words the answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from engine.spec.errors import NewnormalError


class NotTakenError(Exception):
    """Nothing of a request was taken.

    Attributes:
        error: The reason that the sender gets.
        request: The name that the sender gave the request, as Amazon Data Firehose does; empty: none.

    Args:
        code: The stable code.
        what: What is wrong.
        where: The header, the setting or the part of the request.
        accepted: What is accepted.
        now: What happens now.
        status: The status of HTTP.
        retry_after: Seconds after which the sender may send the same again; ``None``: never.
    """

    def __init__(
        self, code: str, what: str, where: str, accepted: str = "", now: str = "nothing was taken", *,
        status: int = HTTPStatus.BAD_REQUEST, retry_after: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(what)
        self.error = NewnormalError(code, what, where, accepted, now)
        self.status, self.retry_after, self.request = status, retry_after, ""

    @property
    def text(self) -> str:
        """Code, what is wrong and what is accepted, in one line."""
        return self.error.in_one_line


class MalformedError(NotTakenError):
    """A body that will never be accepted.

    Args:
        code: The stable code.
        what: What is wrong.
        accepted: What is accepted.
    """

    def __init__(self, code: str, what: str, accepted: str = "") -> None:
        super().__init__(code, what, "gateway", accepted)


@dataclass(frozen=True)
class Body:
    """The body of a request.

    Args:
        data: The bytes, not compressed.
        content_type: The header, in small letters; empty if there is none.
        parameters: The parameters of the address.
        channel: The channel for acknowledgements that a header names, as Splunk's senders do; empty: none.
        attributes: What headers say of a CloudEvent, by the names of its attributes.
    """

    data: bytes
    content_type: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    channel: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def media_type(self) -> str:
        """The content type without its parameters."""
        return self.content_type.partition(";")[0].strip()


def wrong_type(body: Body, accepted: str) -> NotTakenError:
    """The refusal of a body whose content type the protocol does not have."""
    what, status = f"the content type is {body.content_type[:200]!r}", HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    return NotTakenError("GATEWAY_TYPE", what, "Content-Type header", accepted, status=status)


@dataclass(frozen=True)
class Reply:
    """An answer.

    Args:
        status: The status of HTTP.
        content: The body.
        media_type: Its type.
        headers: Further headers.
    """

    status: int
    content: bytes = b""
    media_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Taken:
    """What is made of a body.

    Args:
        topic: The topic, without the namespace.
        value: The message for Kafka; ``None``: there is no such message.
        records: How many samples or log lines it holds.
        reply: The answer when Kafka has acknowledged it.
        keyed: Messages with keys, of which a later one replaces an earlier one with its key.
    """

    topic: str
    value: bytes | None
    records: int
    reply: Reply
    keyed: Mapping[bytes, bytes] = field(default_factory=dict)


class Protocol(ABC):
    """A way to push.

    Attributes:
        name: Its name in the metrics.
        encodings: The values of ``Content-Encoding`` that it takes; the first is that of requests without the header.
        later: The status that makes its senders send the same again later.
    """

    name: str
    encodings: tuple[str, ...] = ("identity", "gzip")
    later: int = HTTPStatus.TOO_MANY_REQUESTS

    @abstractmethod
    def parts(self, body: Body, most: int) -> int:
        """How many parts a body has, see `pipelines.formats.parts`; what is above ``most`` is not exact."""

    @abstractmethod
    def take(self, body: Body) -> Taken:
        """Checks a body.

        Raises:
            NotTakenError: If it is malformed.
        """

    @abstractmethod
    def refusal(self, error: NotTakenError, content_type: str) -> Reply:
        """The answer to a request of which nothing was taken, but for ``Retry-After``.

        Args:
            error: Why.
            content_type: The header of the request.
        """
