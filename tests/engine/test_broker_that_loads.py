"""A broker that has just started cannot say at once what was committed: a start waits for it instead of ending."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from engine.kafka import continuation

LOADING = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)


class Broker:
    """The edge of confluent-kafka's AdminClient: a broker's first moments cannot be had on demand from a real one."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def list_consumer_groups(self, request_timeout: float) -> Future[Any]:
        future: Future[Any] = Future()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        return future


def listed(*names: str, errors: tuple[Any, ...] = ()) -> Any:
    return SimpleNamespace(valid=[SimpleNamespace(group_id=name) for name in names], errors=list(errors))


def test_groups_are_asked_for_again_while_the_broker_loads_them() -> None:
    broker = Broker(listed(errors=(LOADING,)), KafkaException(LOADING), listed("a", "b"))
    assert continuation._answer(partial(continuation._groups, broker)) == ["a", "b"]  # type: ignore[arg-type]


def test_another_refusal_ends_at_once() -> None:
    denied = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
    broker = Broker(listed(errors=(denied,)), listed("a"))
    with pytest.raises(KafkaException):
        continuation._answer(partial(continuation._groups, broker))  # type: ignore[arg-type]
    assert len(broker.answers) == 1
