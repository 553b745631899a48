"""All settings, in one tree: defaults < newnormal.toml < environment (NEWNORMAL_KAFKA__BOOTSTRAP, …) < command line.

A bad setting stops the start with a message that names it and what is accepted.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from engine.spark.checkpoint_lock import NO_NAMESPACE
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts import setting_errors, topics
from pipelines.contracts.setting_types import (
    Brokers,
    DiskSize,
    DriverHeap,
    Duration,
    Families,
    Folder,
    Heap,
    Index,
    Length,
    ListenHost,
    Names,
    Number,
    OptionalLength,
    Prefix,
    Time,
    TimeZone,
    Url,
    Whole,
)

_MOST_SLICES = 1_000
"""Windows that one record is in, at most: each holds a state of its own."""

"""Folder of what belongs to no namespace."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KafkaSettings(_Section):
    bootstrap: Brokers = Field(None, description="host:port of a broker; empty: the embedded one")
    partitions: Whole = Field(
        4, ge=1, le=1024, description="partitions of a topic that we create; a multiple of engine.shards"
    )
    replication: Whole = Field(1, ge=1, le=7, description="replicas of a topic that we create")


class ElasticsearchSettings(_Section):
    url: Url = Field(None, description="http://host:port; empty: the embedded one")
    index: Index = Field(
        "novelties",
        description="alias that documents are read through, and first part of their indices' names; with the "
        "namespace before it: `nab.novelties`",
    )
    refresh: Duration = Field("500ms", description="how soon a document is searchable")


class EmbeddedSettings(_Section):
    kafka_heap: Heap = Field("512m", description="heap of the embedded Kafka broker")
    elasticsearch_heap: Heap = Field("768m", description="heap of the embedded Elasticsearch node")


class EngineSettings(_Section):
    shards: Whole = Field(
        2, ge=1, le=1024, description="shards of keyed state of each job; fixed at a job's first start"
    )
    cores: Whole = Field(4, ge=1, le=1024, description="threads of the local Spark")
    trigger: Duration = Field("200ms", description="shortest time between two micro-batches")
    max_records: Whole = Field(
        2_000, ge=1, le=10**9, description="Kafka messages of one columnar micro-batch at the most"
    )
    max_messages: Whole = Field(
        400_000, ge=1, le=10**9, description="Kafka messages of one JSON micro-batch at the most"
    )
    driver_memory: DriverHeap = Field("2g", description="heap of the Spark driver")


class WatermarkSettings(_Section):
    out_of_orderness: Duration = Field("5s", description="how far records of one input partition may be out of order")
    idle_after: Length = Field("10s", description="a partition silent for so long no longer holds the watermark back")
    max_ahead: Duration = Field("1m", description="how far an event time may lie ahead of its arrival at Kafka")
    earliest: Time = Field("2000-01-01T00:00:00Z", description="event times before this are taken for a broken clock")


class WindowSettings(_Section):
    size: Length = Field("10s", description="length of the feature windows")
    every: OptionalLength = Field(None, description="slide of the windows; empty: tumbling. It divides the size")
    allowed_lateness: Duration = Field(
        "10m", description="how long after the watermark a late record still revises its window"
    )


class DetectorSettings(_Section):
    threshold: Number = Field(
        50.0, ge=0, le=100, description="record_score from which a window is an anomaly: the sensitivity knob"
    )
    emit: Literal["all", "novel"] = Field(
        "all", description="all: a verdict for each window; novel: only what is not normal"
    )
    timezone: TimeZone = Field("UTC", description="IANA name of the time zone in which hours of the day are counted")
    family: Families = Field(
        {},
        description="families of metrics whose own choice is not wanted, by glob of the metric: `mixture`, `count`, "
        "`ratio` or `categorical`; the first glob that matches holds; see model.md",
    )


class ConsoleSettings(_Section):
    host: ListenHost = Field("127.0.0.1", description="address the console listens on")
    port: Whole = Field(8880, ge=0, le=65535, description="its port; the next free one when taken")
    hosts: Names = Field("", description="further names by which it is reached, with commas between them; `*`: any")


class LogSettings(_Section):
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level that is logged")
    format: Literal["text", "json"] = Field("text", description="text: lines for people; json: an object a line")


class BufferSettings(_Section):
    size: DiskSize = Field("256m", description="what an agent may keep on disk while Kafka does not answer")
    age: Length = Field("1d", description="how long it keeps a sample; older ones are dropped, and told of")


class Settings(BaseSettings):
    """Everything that can be set, validated as a whole before anything starts."""

    model_config = SettingsConfigDict(
        env_prefix="NEWNORMAL_", env_nested_delimiter="__", frozen=True, extra="forbid", toml_file="newnormal.toml"
    )

    namespace: Prefix = Field("", description="prefix of all topics and indices, ends in a dot; empty: none")
    state_dir: Folder = Field(Path("~/.local/state/newnormal"), description="servers' data, checkpoints, logs")
    kafka: KafkaSettings = KafkaSettings()
    elasticsearch: ElasticsearchSettings = ElasticsearchSettings()
    embedded: EmbeddedSettings = EmbeddedSettings()
    engine: EngineSettings = EngineSettings()
    watermark: WatermarkSettings = WatermarkSettings()
    window: WindowSettings = WindowSettings()
    detector: DetectorSettings = DetectorSettings()
    buffer: BufferSettings = BufferSettings()
    console: ConsoleSettings = ConsoleSettings()
    log: LogSettings = LogSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Command line (init) over environment over newnormal.toml over defaults."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    def topic(self, name: str) -> str:
        """The full name of a topic: with the namespace before it."""
        return self.namespace + name

    @property
    def index(self) -> str:
        """The alias that documents are read through: with the namespace before it."""
        return self.namespace + self.elasticsearch.index

    @property
    def state(self) -> Path:
        """The state directory, absolute."""
        return self.state_dir.expanduser().resolve()

    def folder(self, what: str) -> Path:
        """Where something that each namespace has of its own lies in the state directory."""
        return self.state / what / (self.namespace.rstrip(".") or NO_NAMESPACE)

    def file(self, name: str) -> Path:
        """A file in the state directory that each namespace has of its own."""
        return self.state / f"{self.namespace}{name}"


def load(**overrides: Any) -> Settings:
    """Reads the settings; ``overrides`` are dotted names (``kafka.bootstrap``) whose value is not ``None``.

    Raises:
        NewnormalError: ``SETTING_INVALID`` naming each wrong setting, its value and what is accepted.
    """
    tree: dict[str, Any] = {}
    for dotted, value in overrides.items():
        if value is not None:
            *parents, leaf = dotted.split(".")
            node = tree
            for parent in parents:
                node = node.setdefault(parent, {})
            node[leaf] = value
    wrong = setting_errors.unknown_variables(os.environ, Settings)
    try:
        settings = Settings(**tree)
    except ValidationError as error:
        wrong |= setting_errors.refused(error, Settings, overrides, os.environ)
        raise setting_errors.refusal(wrong) from None
    except (OSError, ValueError) as error:
        accepted, now = "TOML, see docs/settings.md", "nothing was started"
        raise NewnormalError("SETTING_INVALID", str(error), "newnormal.toml, environment", accepted, now) from None
    wrong |= _contradictions(settings, overrides)
    if wrong:
        raise setting_errors.refusal(wrong)
    return settings


def _contradictions(settings: Settings, given: dict[str, Any]) -> setting_errors.Wrong:
    """The settings that do not fit another one."""
    kafka, shards, window = settings.kafka, settings.engine.shards, settings.window
    wrong: dict[str, tuple[str, str]] = {}
    if kafka.partitions % shards:
        what = f"kafka.partitions = {kafka.partitions}, no multiple of engine.shards = {shards}"
        wrong["kafka.partitions"] = (what, "a multiple: each topic partition is written by one shard")
    size, every = duration_ms(window.size), duration_ms(window.every or window.size)
    if size % every or size // every > _MOST_SLICES:
        what = f"window.every = {window.every!r}, but window.size = {window.size!r}"
        wrong["window.every"] = (what, f"what divides the size, into {_MOST_SLICES} parts at most")
    if mixed := _mixed(settings):
        wrong["namespace"] = (f"namespace = {settings.namespace!r}, {mixed}", "another name")
    place = setting_errors.place
    return {name: (what, place(name, given, os.environ), wanted) for name, (what, wanted) in wrong.items()}


def _mixed(settings: Settings) -> str | None:
    """What a namespace would have in common with another one; ``None``: nothing."""
    namespace, names = settings.namespace, set(topics.NAMES)
    if not namespace:
        return None
    if namespace == f"{NO_NAMESPACE}.":
        return "whose checkpoints would be the checkpoints of no namespace"
    if shared := sorted(names & {settings.topic(name) for name in names}):
        return f"whose topic {shared[0]} would be a topic of no namespace"
    if re.match(rf"{re.escape(settings.elasticsearch.index)}-[12]", namespace):
        return f"whose indices would be taken for those of the alias {settings.elasticsearch.index}"
    return None
