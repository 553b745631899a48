"""The offsets of topics, asked of the broker, so that the lag of a job is known even while it stands still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import wait

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from engine.kafka.diagnosis import DiagnosingClient

Offsets = Mapping[tuple[str, int], int]
"""Next offset of each partition, by topic and partition."""


class KafkaOffsets:
    """Asks a broker for the offsets of some topics.

    Args:
        bootstrap: ``host:port`` of a broker.
        topics: Names of existing topics.
        timeout: Longest time for an answer, seconds.
    """

    def __init__(self, bootstrap: str, topics: Sequence[str], timeout: float = 4.0) -> None:
        self.topics, self._bootstrap, self._timeout = topics, bootstrap, timeout
        self._client: DiagnosingClient | None = None
        self._places: list[TopicPartition] = []

    def ends(self) -> Offsets:
        """The next offset of each partition for readers of committed messages.

        Raises:
            KafkaException: The broker does not answer, or not with offsets.
            TimeoutError: The answer took too long.
        """
        return self._offsets(OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def written(self) -> Offsets:
        """The next offset of each partition, messages of open transactions counted; errors as those of `ends`.

        A commit returns before the broker has marked its messages as committed. So only these offsets tell for certain
        where the output of a job that has just ended ends.
        """
        return self._offsets(OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)  # type: ignore[no-untyped-call]

    def starts(self) -> Offsets:
        """The offset of the first message that each partition still has; errors as those of `ends`."""
        return self._offsets(OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def since(self, time: int) -> Offsets:
        """The offset of the first message of each partition that Kafka got at or after an instant.

        A partition that got none since then is left out; errors as those of `ends`.

        Args:
            time: The instant, epoch milliseconds.
        """
        offsets = self._offsets(OffsetSpec.for_timestamp(time))
        return {place: offset for place, offset in offsets.items() if offset >= 0}

    def _offsets(self, spec: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_COMMITTED) -> Offsets:
        try:
            return self._ask(self._client or self._connected(), spec, isolation)
        except (KafkaException, TimeoutError):
            client, self._client = self._client, None
            if client and (refused := client.refusal("the jobs wait")):
                raise TimeoutError(f"{refused.code}: {refused.what}") from None
            raise
        except BaseException:
            self._client = None  # its knowledge of the partitions may be outdated when a broker comes back
            raise

    def _ask(self, client: DiagnosingClient, spec: OffsetSpec, isolation: IsolationLevel) -> Offsets:
        asked = dict.fromkeys(self._places, spec)
        answers = client.list_offsets(asked, isolation_level=isolation, request_timeout=self._timeout)
        _, late = wait(answers.values(), self._timeout + 1.0)
        if late:
            raise TimeoutError(f"no answer within {self._timeout:g} s")
        return {(place.topic, place.partition): future.result().offset for place, future in answers.items()}

    def _connected(self) -> DiagnosingClient:
        client = self._client = DiagnosingClient(self._bootstrap)
        existing = client.list_topics(timeout=self._timeout).topics
        self._places = [TopicPartition(t, p) for t in self.topics if t in existing for p in existing[t].partitions]
        if not self._places:
            raise TimeoutError("the broker has not described the topics yet")
        return client


def behind(ends: Offsets, read: Mapping[str, Mapping[str, int]]) -> int:
    """Number of messages between the offsets read, in the form that Spark reports, and the ends of the partitions.

    >>> behind({("a", 0): 10, ("a", 1): 3}, {"a": {"0": 4, "1": 5}})
    6
    """
    return sum(
        max(0, ends.get((topic, int(partition)), offset) - offset)
        for topic, partitions in read.items()
        for partition, offset in partitions.items()
    )
