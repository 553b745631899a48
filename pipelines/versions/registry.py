"""Keeps the versions of a namespace in a compacted Kafka topic, where all processes and machines see them."""

from __future__ import annotations

import orjson
import structlog
from confluent_kafka import KafkaError, Message, Producer
from pydantic import ValidationError

from engine.address import kafka_options
from engine.kafka.admin import ensure_topics
from engine.kafka.content import content
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import FIRST, VersionNames
from pipelines.jobs.links import LINKS
from pipelines.versions.version import CHANGEABLE, Version, is_setting

log = structlog.get_logger()

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

        Of each name the newest message counts. One that is no version is told in the log and left out, until a newer
        message of that name, or one without a value, takes its place.

        Raises:
            NewnormalError: ``KAFKA_UNREACHABLE`` or ``KAFKA_READ_FAILED``.
        """
        ensure_topics(self._bootstrap, {self._topic: topics.config(topics.VERSIONS)}, 1, self._replication)
        newest = {message.key() or b"": message.value() for message in content(self._bootstrap, self._topic)}
        versions: dict[str, Version | None] = {FIRST: Version.first()}
        for key, value in newest.items():
            name = key.decode("utf-8", "backslashreplace")
            try:
                versions[name] = _read(name, value) if value else None
            except ValueError as error:  # pydantic's and orjson's are such; what is no version must stop nobody
                log.warning("a message about a version is left out", topic=self._topic, key=name, reason=_reason(error))
        kept = [version for version in versions.values() if version and version.jobs]
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


def _read(name: str, value: bytes) -> Version:
    """The version in a message.

    Raises:
        ValueError: The message is no version of this name.
    """
    said = orjson.loads(value)
    if not isinstance(said, dict):
        raise ValueError("no JSON object")
    version = Version(**_WHOLE.get(name, {}) | said)
    if version.name != name:
        raise ValueError(f"the key is {name!r}, the name {version.name!r}")
    if unknown := sorted(set(version.jobs) - LINKS.keys()):
        raise ValueError(f"there is no job {', '.join(unknown)}")
    kept = filter(is_setting, version.ran | version.settings)  # what this release does not know is not used
    if foreign := sorted(key for key in kept if key.partition(".")[0] not in CHANGEABLE):
        raise ValueError(f"versions do not differ in {', '.join(foreign)}")
    try:
        for each in {name, version.base or name, *version.sources.values()}:
            VersionNames(each)
    except NewnormalError as error:
        raise ValueError(error.what) from None
    return version


def _reason(error: ValueError) -> str:
    """Why a message is no version, without what it holds."""
    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}" for wrong in error.errors()[:3])
