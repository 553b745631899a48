"""Dead letters: input that could not be used, with the reason and its place in Kafka."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from engine.spec.errors import registered
from engine.spec.record import Instant, Keyword, Record

PAYLOAD_BYTES, REASON_CHARACTERS = 1024, 1000


def _short(reason: str) -> str:
    """A reason cut to the length that a dead letter may have, whatever input it quotes."""
    return reason if len(reason) <= REASON_CHARACTERS else f"{reason[: REASON_CHARACTERS - 1]}…"


class DeadLetter(Record):
    """A message, or one record of it, that a job could not use: the `deadletter` topic (JSON)."""

    identity: ClassVar[tuple[str, ...]] = ("job", "topic", "partition", "offset", "code")

    time: Instant = Field(alias="@timestamp", description="when the message arrived at Kafka")
    job: Keyword = Field(alias="service.name", description="the job that refused it")
    code: Keyword = Field(alias="error.code", description="stable code of the reason")
    reason: Annotated[str, AfterValidator(_short)] = Field(
        alias="error.message", description="what is wrong and what is accepted; at most 1000 characters"
    )
    topic: Keyword = Field(alias="kafka.topic", description="topic it came from")
    partition: int = Field(alias="kafka.partition", description="partition of that topic")
    offset: int = Field(alias="kafka.offset", description="offset in that partition")
    payload: str = Field("", description="its first bytes, what is no UTF-8 escaped")


def payload_text(raw: bytes | None) -> str:
    r"""The first bytes of a message as text that any JSON reader accepts.

    >>> payload_text(b'{"a": \xff}')
    '{"a": \\xff}'
    """
    return (raw or b"")[:PAYLOAD_BYTES].decode("utf-8", "backslashreplace")


def dead_letter(
    job: str, code: str, reason: str, raw: bytes | None, *, time: int, topic: str, partition: int, offset: int
) -> DeadLetter:
    """The dead letter of a message.

    Raises:
        LookupError: If the code is not registered.
    """
    place = {"topic": topic, "partition": partition, "offset": offset}
    return DeadLetter(time=time, job=job, code=registered(code), reason=reason, payload=payload_text(raw), **place)
