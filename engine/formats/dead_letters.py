"""Dead letters: input that could not be used, with the reason and its place in Kafka."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from engine.spec.errors import registered
from engine.spec.record import Instant, Keyword, Record

PAYLOAD_BYTES, REASON_CHARACTERS = 1024, 1000


def _short(reason: str) -> str:
    """A reason cut to the length that a dead letter may have, whatever input it quotes."""
    return reason if len(reason) <= REASON_CHARACTERS else f"{reason[: REASON_CHARACTERS - 1]}…"


class DeadLetter(Record):
    """A message, or some records of it, that a job could not use: the `deadletter` topic (JSON).

    A letter with `retried` is a mark: it says that the letter of the same identity was sent again.
    """

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
    records: int | None = Field(None, description="how many records the message holds; absent if it could not be read")
    refused: str | None = Field(
        None,
        description="which of its records were refused, by position from 0, e.g. `0-4,9`; absent: the whole message; "
        "empty: none of them, but something beside them was",
    )
    retried: Instant | None = Field(None, description="when it was sent again")
    retried_as: str | None = Field(None, description="the messages by which it was sent again, TOPIC/PARTITION@OFFSET")


def payload_text(raw: bytes | None) -> str:
    r"""The first bytes of a message as text that any JSON reader accepts.

    >>> payload_text(b'{"a": \xff}')
    '{"a": \\xff}'
    """
    return (raw or b"")[:PAYLOAD_BYTES].decode("utf-8", "backslashreplace")


def dead_letter(
    job: str, code: str, reason: str, raw: bytes | None, *, time: int, topic: str, partition: int, offset: int,
    records: int | None = None, refused: Iterable[int] | None = None,
) -> DeadLetter:  # fmt: skip
    """The dead letter of a message, or of some of its records.

    Raises:
        LookupError: If the code is not registered.
    """
    place = {"topic": topic, "partition": partition, "offset": offset}
    which = None if refused is None else ranges(refused)
    held = {"records": records, "refused": which, "payload": payload_text(raw)}
    return DeadLetter(time=time, job=job, code=registered(code), reason=reason, **held, **place)


def ranges(positions: Iterable[int]) -> str:
    """Positions as text.

    >>> ranges([9, 0, 1, 2])
    '0-2,9'
    """
    spans: list[list[int]] = []
    for at in sorted(positions):
        if spans and at == spans[-1][1] + 1:
            spans[-1][1] = at
        else:
            spans.append([at, at])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in spans)


def positions(ranges: str) -> list[int]:
    """Inverse of `ranges`.

    >>> positions("0-2,9")
    [0, 1, 2, 9]
    >>> positions("")
    []
    """
    ends = [part.partition("-") for part in ranges.split(",") if part]
    return [at for first, _, last in ends for at in range(int(first), int(last or first) + 1)]
