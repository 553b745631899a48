"""All settings, in one tree of sections.

A value on the command line overrides the environment (NEWNORMAL_KAFKA__BOOTSTRAP, …), which overrides newnormal.toml,
which overrides the default. A wrong setting stops the start with a message that names it and what is accepted.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from engine.spark.checkpoint_lock import NO_NAMESPACE
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts import setting_errors, topics
from pipelines.contracts.gateway_settings import GatewaySettings
from pipelines.contracts.gateway_settings import contradictions as gateway_contradictions
from pipelines.contracts.input_settings import InputSettings
from pipelines.contracts.notify_settings import NotifySettings
from pipelines.contracts.setting_types import (
    Brokers,
    DiskSize,
    DriverHeap,
    Duration,
    Families,
    FilePath,
    Folder,
    HeaderName,
    Heap,
    Index,
    Length,
    ListenAddress,
    ListenHost,
    Names,
    Networks,
    Number,
    OptionalFolder,
    OptionalHost,
    OptionalLength,
    Prefix,
    SeriesGlobs,
    Time,
    TimeZone,
    Token,
    Url,
    Whole,
    is_loopback,
)
from pipelines.contracts.version_names import VersionNames

_MOST_SLICES = 1_000
"""The most sliding windows that one record may belong to; each of them keeps state."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KafkaSettings(_Section):
    bootstrap: Brokers = Field(None, description="host:port of a Kafka broker; empty: the embedded one")
    partitions: Whole = Field(
        4, ge=1, le=1024, description="partitions of each topic that Newnormal creates; a multiple of engine.shards"
    )
    replication: Whole = Field(1, ge=1, le=7, description="replicas of each topic that Newnormal creates")
    retention: Length = Field(
        "7d",
        description="how long Kafka keeps messages; rules, labels and versions are kept for ever. A start changes "
        "existing topics to a value that was given, but not to the default",
    )


class ElasticsearchSettings(_Section):
    url: Url = Field(None, description="http://host:port of Elasticsearch; empty: the embedded one")
    index: Index = Field(
        "novelties",
        description="alias through which documents are read, and first part of the names of their indices; the "
        "namespace is put before it, e.g. `nab.novelties`",
    )
    incidents: Index = Field(
        "incidents", description="the same for incidents: alias and first part of the names of their indices"
    )
    refresh: Duration = Field("500ms", description="time until a new document can be found by a search")


class EmbeddedSettings(_Section):
    address: ListenAddress = Field(
        "127.0.0.1",
        description="address on which the embedded servers listen; they have no login, so name another one only where "
        "a firewall or a container's network lets nobody else in",
    )
    kafka_heap: Heap = Field("512m", description="heap of the embedded Kafka broker")
    elasticsearch_heap: Heap = Field("768m", description="heap of the embedded Elasticsearch node")


class EngineSettings(_Section):
    shards: Whole = Field(
        2,
        ge=1,
        le=1024,
        description="shards of each job's keyed state; `newnormal savepoint restore --shards` changes it later",
    )
    cores: Whole = Field(4, ge=1, le=1024, description="threads of the local Spark")
    trigger: Duration = Field("200ms", description="shortest time between the starts of two micro-batches")
    max_records: Whole = Field(
        2_000, ge=1, le=10**9, description="most Kafka messages of one micro-batch that reads columnar topics"
    )
    max_messages: Whole = Field(
        400_000, ge=1, le=10**9, description="most Kafka messages of one micro-batch that reads JSON topics"
    )
    on_missing_offsets: Literal["fail", "earliest", "archive"] = Field(
        "fail",
        description="what a start does if Kafka has removed messages that a job has not read: `fail`: it is refused; "
        "`earliest`: they are left out; `archive`: the job reads them from the archive",
    )
    driver_memory: DriverHeap = Field("2g", description="heap of the Spark driver")


class WatermarkSettings(_Section):
    out_of_orderness: Duration = Field("5s", description="how far records of one input partition may be out of order")
    idle_after: Length = Field(
        "10s", description="a partition without records for this long no longer holds the watermark back"
    )
    max_ahead: Duration = Field("1m", description="how far an event time may lie after its record's arrival at Kafka")
    earliest: Time = Field(
        "2000-01-01T00:00:00Z", description="records with an earlier event time are rejected: a wrong clock"
    )


class WindowSettings(_Section):
    size: Length = Field("10s", description="length of the feature windows")
    every: OptionalLength = Field(
        None, description="slide of the windows, a divisor of the size; empty: tumbling windows"
    )
    allowed_lateness: Duration = Field(
        "10m", description="how far the watermark may be past a window's end while late records still revise it"
    )


class DetectorSettings(_Section):
    threshold: Number = Field(
        50.0,
        ge=0,
        le=100,
        description="record_score from which a window is an anomaly; lower: more sensitive",
    )
    emit: Literal["all", "context", "novel"] = Field(
        "all",
        description="`all`: write a verdict for each window; `novel`: only news, and the end of an incident; "
        "`context`: that, and the ordinary windows before, during and after an incident of the series",
    )
    context_before: Whole = Field(
        60, ge=0, le=100_000, description="with `context`: how many windows before the onset of an incident are written"
    )
    context_after: Whole = Field(
        30, ge=0, le=100_000, description="with `context`: how many windows after the end of an incident are written"
    )
    context_always: SeriesGlobs = Field(
        "",
        description="with `context`: globs `machine/metric` of series of which all windows are written, separated by "
        "commas; `?` also stands for a comma",
    )
    timezone: TimeZone = Field("UTC", description="IANA name of the time zone in which hours of the day are counted")
    family: Families = Field(
        {},
        description="model family of metrics, by glob of the metric: `mixture`, `count`, `ratio` or `categorical`; the "
        "first glob that matches applies; the detector chooses for all other metrics; see model.md",
    )


class IncidentSettings(_Section):
    score: Number = Field(
        70.0, ge=0, le=100, description="novelties are written as an incident if one of them has this record_score, ..."
    )
    series: Whole = Field(5, ge=1, le=10**9, description="... or so many series are novel, or a series has stopped")
    together: Duration = Field(
        "1m", description="novelties of unrelated machines that show the same belong together if they begin so close"
    )
    related: Duration = Field(
        "3m", description="the same for a machine and the one that it runs on, as the topic `topology` says"
    )
    quiet: Duration = Field("5m", description="an incident is resolved when nothing has been novel for so long")
    reopen: Duration = Field(
        "5m", description="a novelty on its machines within this time after that reopens it; later ones are a new one"
    )
    longest: Length = Field("1d", description="a series without news for so long no longer keeps its incident open")


class ConsoleSettings(_Section):
    host: ListenHost = Field("127.0.0.1", description="address on which the web console listens")
    port: Whole = Field(
        8880, ge=0, le=65535, description="port of the web console; if taken, the next free one is used"
    )
    published: OptionalHost = Field(
        "",
        description="address at which others open the port, if the console runs in a container; with 127.0.0.1 it is "
        "treated as one that only this machine reaches. Empty: `console.host`",
    )
    hosts: Names = Field(
        "", description="further host names under which browsers reach the console, separated by commas; `*`: any"
    )
    user_header: HeaderName = Field(
        "",
        description="header in which a proxy names the operator who has logged in; requests with it are answered, and "
        "take labels and the like, if they come from an address of `console.proxies`",
    )
    proxies: Networks = Field(
        "127.0.0.1,::1", description="addresses and networks of the proxies whose `console.user_header` is believed"
    )
    token: Token = Field(
        SecretStr(""),
        description="what users of the console must know: browsers ask for it once, programs send it as "
        "`Authorization: Bearer TOKEN`; empty: none, or that in `console.token_file`",
    )
    token_file: FilePath = Field("", description="file with that token in one line; it is read at each start")

    @property
    def reached(self) -> str:
        """The address that decides who reaches the console."""
        return self.published or self.host


class ViewSettings(_Section):
    host: ListenHost = Field("127.0.0.1", description="address on which the state view listens")
    port: Whole = Field(8890, ge=0, le=65535, description="port of the state view; if taken, the next free one is used")
    hosts: Names = Field(
        "", description="further host names under which the state view is reached, separated by commas; `*`: any"
    )
    windows: Whole = Field(
        240, ge=1, le=100_000, description="how many of the last windows of each series the state view keeps"
    )


class LogSettings(_Section):
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="lowest level that is logged")
    format: Literal["text", "json"] = Field("text", description="`text`: lines for people; `json`: one object per line")


class BufferSettings(_Section):
    size: DiskSize = Field("256m", description="disk space for samples that an agent keeps while Kafka does not answer")
    age: Length = Field("1d", description="how long an agent keeps a sample; it drops older ones and says so")


class ArchiveSettings(_Section):
    path: OptionalFolder = Field(
        None, description="folder of the archive of `telemetry` and `logs` as Parquet files; empty: no archive"
    )
    every: Length = Field("1m", description="time between two writes to the archive; longer: fewer and larger files")


class RetentionSettings(_Section):
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
    watermark: WatermarkSettings = WatermarkSettings()
    window: WindowSettings = WindowSettings()
    detector: DetectorSettings = DetectorSettings()
    incidents: IncidentSettings = IncidentSettings()
    input: InputSettings = InputSettings()
    gateway: GatewaySettings = GatewaySettings()
    buffer: BufferSettings = BufferSettings()
    console: ConsoleSettings = ConsoleSettings()
    view: ViewSettings = ViewSettings()
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
        """The sources of settings, the strongest first: command line (init), environment, newnormal.toml."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

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
    def owner(self) -> str:
        """What is put before the names of jobs in transactional ids and consumer groups."""
        return self.namespace + self._names.mark

    @property
    def state(self) -> Path:
        """The state directory, absolute."""
        return self.state_dir.expanduser().resolve()

    def folder(self, what: str) -> Path:
        """The folder of the version for one purpose in the state directory; each namespace and version has its own.

        Args:
            what: The purpose, e.g. ``checkpoints``; the first part of the path.
        """
        common = self.common_folder(what)
        return common.with_name(f"{common.name}@{self.version}") if self._names.mark else common

    def common_folder(self, what: str) -> Path:
        """The folder for one purpose that all versions of a namespace share."""
        return self.state / what / (self.namespace.rstrip(".") or NO_NAMESPACE)

    def file(self, name: str) -> Path:
        """The path of a file in the state directory; each namespace has its own, for all versions."""
        return self.state / f"{self.namespace}{name}"


def load(**overrides: Any) -> Settings:
    """Reads and validates all settings.

    Args:
        overrides: Values of the command line by dotted name, such as ``kafka.bootstrap``; ``None`` means not given.

    Raises:
        NewnormalError: ``SETTING_INVALID``; the message names each wrong setting, its value and what is accepted.
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
    """The settings that contradict another setting."""
    kafka, shards, window = settings.kafka, settings.engine.shards, settings.window
    wrong: dict[str, tuple[str, str]] = {}
    if kafka.partitions % shards:
        what = f"kafka.partitions = {kafka.partitions}, no multiple of engine.shards = {shards}"
        wrong["kafka.partitions"] = (what, "a multiple of it: one shard writes each topic partition")
    size, every = duration_ms(window.size), duration_ms(window.every or window.size)
    if size % every or size // every > _MOST_SLICES:
        what = f"window.every = {window.every!r}, but window.size = {window.size!r}"
        wrong["window.every"] = (what, f"a divisor of the size, at least size / {_MOST_SLICES}")
    if settings.elasticsearch.incidents == settings.elasticsearch.index:
        what = f"elasticsearch.incidents = {settings.elasticsearch.incidents!r}, as elasticsearch.index"
        wrong["elasticsearch.incidents"] = (what, "another name: verdicts and incidents have indices of their own")
    console = settings.console
    guarded = console.token.get_secret_value() or console.token_file or console.user_header
    if not (is_loopback(console.reached) or guarded):
        where = "console.published" if console.published else "console.host"
        what = f"{where} = {console.reached!r}, where others than this machine reach the console"
        wrong[where] = (what, "127.0.0.1; or console.token_file or console.user_header beside it")
    if console.token.get_secret_value() and console.token_file:
        wrong["console.token_file"] = ("console.token and console.token_file are given", "one of them")
    wrong |= gateway_contradictions(settings.gateway)
    if mixed := _mixed(settings):
        wrong["namespace"] = (f"namespace = {settings.namespace!r}, {mixed}", "another name")
    place = setting_errors.place
    return {name: (what, place(name, given, os.environ), wanted) for name, (what, wanted) in wrong.items()}


def _mixed(settings: Settings) -> str | None:
    """What the namespace would share with no namespace, as the rest of a message; ``None`` if it shares nothing."""
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
