"""Keeps the versions of a namespace in a compacted Kafka topic, where all processes and machines see them."""

from __future__ import annotations

import orjson
from confluent_kafka import KafkaError, Message, Producer

from engine.address import kafka_options
from engine.kafka.admin import ensure_topics
from engine.kafka.content import content
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import FIRST
from pipelines.versions.version import Version

_SECONDS = 30.0
_WHOLE = {FIRST: {"jobs": Version.first().jobs}}
"""What is not stored of the first version while it has all jobs, so that those of a later release belong to it, too."""


class Registry:
    """The versions of a namespace.

    Args:
        settings: The settings, with the address of Kafka filled in.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self._bootstrap = settings, settings.kafka.bootstrap or ""
        self._topic = settings.topic(topics.VERSIONS)

    def all(self) -> dict[str, Version]:
        """All versions by name, the oldest first; the first version exists unless it was retired as a whole.

        Raises:
            NewnormalError: ``KAFKA_UNREACHABLE`` or ``KAFKA_READ_FAILED``.
        """
        ensure_topics(self._bootstrap, {self._topic: topics.config(topics.VERSIONS)}, 1, self._replication)
        found: dict[str, Version | None] = {FIRST: Version.first()}
        for message in content(self._bootstrap, self._topic):
            name, value = (message.key() or b"").decode(), message.value()
            found[name] = Version(**_WHOLE.get(name, {}) | orjson.loads(value)) if value else None
        kept = [version for version in found.values() if version and version.jobs]
        return {version.name: version for version in sorted(kept, key=lambda each: (each.created, each.name))}

    def get(self, name: str) -> Version:
        """One version.

        Raises:
            NewnormalError: ``VERSION_UNKNOWN`` if there is none of this name.
        """
        known = self.all()
        if name not in known:
            accepted = f"{', '.join(known)}; `newnormal replay --as {name}` makes a version"
            raise NewnormalError("VERSION_UNKNOWN", f"there is no version {name}", self._topic, accepted)
        return known[name]

    def put(self, version: Version) -> None:
        """Stores a version; returns when Kafka has accepted it.

        Raises:
            NewnormalError: ``VERSION_NOT_WRITTEN`` if Kafka does not accept it.
        """
        stored, whole = version.model_dump(), _WHOLE.get(version.name, {})
        if stored["jobs"] == whole.get("jobs"):
            del stored["jobs"]
        self._write(version.name, orjson.dumps(stored))

    def remove(self, name: str) -> None:
        """Forgets a version; the first one would come back by itself, so it stays as a version without jobs."""
        if name == FIRST:
            self.put(Version(name=FIRST, jobs=()))
        else:
            self._write(name, None)

    @property
    def _replication(self) -> int:
        return self._settings.kafka.replication

    def _write(self, name: str, value: bytes | None) -> None:
        ensure_topics(self._bootstrap, {self._topic: topics.config(topics.VERSIONS)}, 1, self._replication)
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            failed.extend([error] if error else [])

        producer = Producer({**kafka_options(self._bootstrap), "log_level": 0, "acks": "all"})
        producer.produce(self._topic, value, key=name, on_delivery=delivered)
        if producer.flush(_SECONDS) or failed:
            why = failed[0].str() if failed else f"no answer within {_SECONDS:g} s"
            raise NewnormalError("VERSION_NOT_WRITTEN", why, self._topic, "a reachable broker", "nothing was changed")
