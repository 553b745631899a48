"""The writer to Kafka when something goes wrong in itself; no Kafka is needed, and none is there."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from pipelines.gateway import writer
from pipelines.gateway.protocol import NotTakenError
from pipelines.gateway.writer import Writer

_PATIENCE = 120.0
NOBODY = "127.0.0.1:9"


def test_a_request_does_not_wait_for_ever_when_nobody_tells_what_became_of_its_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Writer, "_poll", lambda _: None)
    silent = Writer(NOBODY, 50, 64_000_000)

    async def write() -> None:
        async with asyncio.timeout(_PATIENCE):
            await silent.write("t", b"x")

    with pytest.raises(NotTakenError, match="not been heard of in time") as caught:
        asyncio.run(write())
    assert (caught.value.status, caught.value.error.code) == (503, "GATEWAY_KAFKA")
    silent.close()


def test_a_producer_that_cannot_be_made_anew_is_tried_again_and_requests_are_still_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[bool] = []

    def produced(settings: dict[str, Any]) -> Producer:
        made.append(len(made) != 1)
        if not made[-1]:
            raise KafkaException(KafkaError(KafkaError._FAIL, "no threads"))
        return Producer(settings)

    monkeypatch.setattr(writer, "Producer", produced)
    monkeypatch.setattr(writer, "_RENEW_SECONDS", 0.01)
    begun = Writer(NOBODY, 50, 64_000_000)
    begun._on_error(KafkaError(KafkaError._FATAL, "fenced", fatal=True))
    end = time.monotonic() + _PATIENCE
    while len(made) < 3 and time.monotonic() < end:
        time.sleep(0.01)
    assert made == [True, False, True]
    with pytest.raises(NotTakenError, match="has not acknowledged"):
        asyncio.run(begun.write("t", b"x"))
    begun.close()
