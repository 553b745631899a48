"""All settings as one tree of sections, and the names of topics, indices and folders that follow from them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, PrivateAttr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from engine.spark.checkpoint_lock import NO_NAMESPACE
from engine.spec.duration import duration_ms
from pipelines.contracts import topics
from pipelines.contracts.setting_types import DiskSize, Folder, Length, OptionalFolder, OptionalLength, Prefix
from pipelines.contracts.settings.detection import DetectorSettings, IncidentSettings
from pipelines.contracts.settings.engine import EngineSettings
from pipelines.contracts.settings.event_time import WatermarkSettings, WindowSettings
from pipelines.contracts.settings.gateway import GatewaySettings
from pipelines.contracts.settings.input import InputSettings
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.contracts.settings.scores import ScoresSettings
from pipelines.contracts.settings.section import Section
from pipelines.contracts.settings.servers import ElasticsearchSettings, EmbeddedSettings, KafkaSettings
from pipelines.contracts.settings.spark import SparkSettings
from pipelines.contracts.settings.state_folder import StateFolderSource
from pipelines.contracts.settings.web_servers import ConsoleSettings, ViewSettings
from pipelines.contracts.version_names import VersionNames


class RetentionSettings(Section):
    indices: OptionalLength = Field(
        None, description="how long the sink's indices are kept, by event time; empty: for ever"
    )
    archive: OptionalLength = Field(
        None, description="how long the days of the archive are kept, by event time; empty: for ever"
    )
    late: OptionalLength = Field(
        None, description="how long Kafka keeps the topics of late records; empty: as long as `kafka.retention`"
    )
    every: Length = Field("1h", description="time between two looks of a running pipeline for what is too old")


class LogSettings(Section):
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="lowest level that is logged")
    format: Literal["text", "json"] = Field("text", description="`text`: lines for people; `json`: one object per line")


class BufferSettings(Section):
    size: DiskSize = Field("256m", description="disk space for samples that an agent keeps while Kafka does not answer")
    age: Length = Field("1d", description="how long an agent keeps a sample; it drops older ones and says so")


class ArchiveSettings(Section):
    path: OptionalFolder = Field(
        None, description="folder of the archive of `telemetry` and `logs` as Parquet files; empty: no archive"
    )
    every: Length = Field("1m", description="time between two writes to the archive; longer: fewer and larger files")


class TopologySettings(Section):
    infer: bool = Field(
        True,
        description="whether telemetry says what machines run on, what they are replicas of and what they call, where "
        "no person says it (`newnormal topology`)",
    )


class Settings(BaseSettings):
    """All settings; they are validated together before anything starts."""

    model_config = SettingsConfigDict(
        env_prefix="NEWNORMAL_", env_nested_delimiter="__", frozen=True, extra="forbid", toml_file="newnormal.toml"
    )

    namespace: Prefix = Field("", description="prefix of all topics and indices, ends in a dot; empty: none")
    state_dir: Folder = Field(
        Path("~/.local/state/newnormal"), description="folder of the embedded servers' data, checkpoints and log files"
    )
    kafka: KafkaSettings = KafkaSettings()
    elasticsearch: ElasticsearchSettings = ElasticsearchSettings()
    embedded: EmbeddedSettings = EmbeddedSettings()
    engine: EngineSettings = EngineSettings()
    spark: SparkSettings = SparkSettings()
    watermark: WatermarkSettings = WatermarkSettings()
    window: WindowSettings = WindowSettings()
    detector: DetectorSettings = DetectorSettings()
    incidents: IncidentSettings = IncidentSettings()
    topology: TopologySettings = TopologySettings()
    input: InputSettings = InputSettings()
    gateway: GatewaySettings = GatewaySettings()
    buffer: BufferSettings = BufferSettings()
    console: ConsoleSettings = ConsoleSettings()
    view: ViewSettings = ViewSettings()
    scores: ScoresSettings = ScoresSettings()
    archive: ArchiveSettings = ArchiveSettings()
    retention: RetentionSettings = RetentionSettings()
    notify: NotifySettings = NotifySettings()
    log: LogSettings = LogSettings()
    _names: VersionNames = PrivateAttr(default_factory=VersionNames)
    _end: int | None = PrivateAttr(default=None)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The sources, the strongest first: command line (init), environment, newnormal.toml, the state folder."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls), StateFolderSource(settings_cls)

    def of(self, names: VersionNames, end: int | None = None) -> Settings:
        """These settings for one version of the chain: its topics, indices and folders.

        Args:
            names: The names of the version's topics, indices and folders.
            end: See `end`.
        """
        mine = self.model_copy()
        mine._names, mine._end = names, end
        return mine

    @property
    def version(self) -> str:
        """Name of the version whose topics, indices and folders these settings name; ``v1`` unless `of` chose one."""
        return self._names.version

    @property
    def end(self) -> int | None:
        """Event time at which the version ends, epoch milliseconds; ``None``: it goes on live."""
        return self._end

    def topic(self, name: str) -> str:
        """The full name of a topic of the first version, or of all versions: with the namespace before it."""
        return self.namespace + name

    def reads(self, name: str) -> str:
        """The full name of a topic that the version reads: its own, or that of the version which it builds upon."""
        return self.namespace + self._names.reads(name)

    def writes(self, name: str) -> str:
        """The full name of a topic that the version writes."""
        return self.namespace + self._names.writes(name)

    def topic_config(self, name: str) -> dict[str, str]:
        """The configuration of a topic, which is given by its name without the namespace."""
        late = self.retention.late if name.endswith(topics.LATE) else None
        return topics.config(name, duration_ms(late or self.kafka.retention))

    def chosen_retention(self, name: str) -> dict[str, str]:
        """The entries of a topic's configuration that say how long messages are kept, if the user has chosen a value.

        The default is for topics that are created: whoever made a topic otherwise had a reason.
        """
        late = name.endswith(topics.LATE) and self.retention.late is not None
        if not late and "retention" not in self.kafka.model_fields_set:
            return {}
        config = self.topic_config(name)
        return {entry: config[entry] for entry in topics.KEPT if entry in config}

    @property
    def alias(self) -> str:
        """The alias through which documents are read, with the namespace before it; it shows one of the versions."""
        return self.namespace + self.elasticsearch.index

    @property
    def index(self) -> str:
        """First part of the names of the indices that the version writes."""
        return self.alias + self._names.suffix

    @property
    def incident_alias(self) -> str:
        """The alias through which incidents are read; it shows the same version as `alias`."""
        return self.namespace + self.elasticsearch.incidents

    @property
    def incident_index(self) -> str:
        """First part of the names of the indices of incidents that the version writes."""
        return self.incident_alias + self._names.suffix

    @property
    def change_alias(self) -> str:
        """The alias of changes, and first part of the names of their indices: all versions have the same changes."""
        return self.namespace + self.elasticsearch.changes

    @property
    def owner(self) -> str:
        """What is put before the names of jobs in transactional ids and consumer groups."""
        return self.namespace + self._names.mark

    @property
    def state(self) -> Path:
        """The state directory, absolute."""
        return self.state_dir.expanduser().resolve()

    def folder(self, purpose: str) -> Path:
        """The folder of the version for one purpose in the state directory; each namespace and version has its own.

        Args:
            purpose: E.g. ``checkpoints``; the first part of the path.
        """
        common = self.common_folder(purpose)
        return common.with_name(f"{common.name}@{self.version}") if self._names.mark else common

    def common_folder(self, purpose: str) -> Path:
        """The folder for one purpose that all versions of a namespace share."""
        apart = self.spark.checkpoints if purpose == "checkpoints" else None
        base = apart.expanduser().resolve() if apart else self.state / purpose
        return base / (self.namespace.rstrip(".") or NO_NAMESPACE)

    def file(self, name: str) -> Path:
        """The path of a file in the state directory; each namespace has its own, for all versions."""
        return self.state / f"{self.namespace}{name}"
