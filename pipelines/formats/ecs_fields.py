"""What the field definitions of Metricbeat and of Elastic Agent's integrations say: counters, dimensions, descriptions.

Source: ``metric_type`` and ``dimension`` in the ``fields.yml`` of Beats and of the integrations.
"""

from __future__ import annotations

from pipelines.contracts.globs import compiled
from pipelines.formats.prometheus import COUNTING
from pipelines.formats.remembering import remembered

_COUNTERS = (
    "system.cpu.*.ticks", "system.core.*.ticks", "system.process.cpu.*.ticks", "system.process.cpu.total.value",
    *(f"system.diskio.{way}.{what}" for way in ("read", "write") for what in ("bytes", "count", "time")),
    "system.diskio.io.time",
    *(f"system.network.{way}.{what}" for way in ("in", "out") for what in ("bytes", "packets", "errors", "dropped")),
    *(f"{part}.memory.{what}" for part in ("system", "linux") for what in ("page_stats.*.pages", "swap.*.pages")),
    "system.process.cgroup.*.ns", "system.process.cgroup.cpu.stats.periods", "system.process.cgroup.*.throttled.*",
    "system.process.cgroup.*.failures", "system.process.cgroup.*.pressure.*.total",
    "system.process.cgroup.blkio.total.*", "linux.pressure.*.total.time.us",
    "docker.cpu.*.ticks", *(f"docker.network.{way}.*" for way in ("inbound", "outbound")),
    *(f"docker.diskio.*.{what}" for what in ("ops", "bytes", "queued", "service_time", "wait_time")),
    "kubernetes.*.network.*.bytes", "kubernetes.*.network.*.errors", "kubernetes.*.cpu.usage.core.ns",
    "kubernetes.*.memory.pagefaults", "kubernetes.*.memory.majorpagefaults",
    *(f"nginx.stubstatus.{what}" for what in ("accepts", "handled", "dropped", "requests")),
    "prometheus.*.counter",
)  # fmt: skip
_COUNTS = ("host.network.*", "host.disk.*.bytes", "prometheus.*.rate")
"""Fields that hold what happened since the document before."""

_DIMENSIONS = (
    "process.name", "process.pid", "service.address", "container.name", "container.id", "prometheus.labels.*",
    *(f"kubernetes.{what}.name" for what in ("pod", "container", "deployment", "statefulset", "daemonset", "job")),
    *(f"kubernetes.{what}.name" for what in ("node", "service", "volume", "replicaset", "cronjob", "storageclass")),
    "kubernetes.namespace",
)  # fmt: skip
_NAMING = frozenset(
    (
        *("name", "id", "mount_point", "device_name", "device", "interface", "instance", "address", "host", "object"),
        *("topic", "partition", "database", "index", "queue", "vhost", "namespace", "pod", "container", "client_id"),
    )
)
"""Last parts of the names of fields with text, or of ids that are numbers, which tell one instance from another."""

_DESCRIPTIONS = (
    "system.process.cgroup.*", "system.process.state", "system.process.cmdline", "system.process.env.*",
    "system.process.cpu.start_time", "system.diskio.serial_number", "system.filesystem.type",
    "system.filesystem.options", "system.network_summary.*", "docker.container.labels.*", "docker.*.created",
    "kubernetes.labels.*", "kubernetes.annotations.*", "kubernetes.*_labels.*", "kubernetes.*.uid",
    "kubernetes.*.ip", "*.hostname", "*.version", "*.start_time", "*.created", "kubernetes.namespace_uid",
    "kubernetes.*.labels.*", "kubernetes.*.annotations.*", "kubernetes.*.status.*", "docker.container.command",
    "docker.container.status", "docker.container.ip_addresses", "docker.*.image.*", "docker.*.labels.*",
    "system.core.model_name", "system.core.model_number", "system.core.mhz",
    *(f"system.service.{what}" for what in ("state", "sub_state", "load_state", "state_since", "unit_file.*")),
    *(f"system.raid.{what}" for what in ("status", "level", "sync_action", "disks.*")),
    "system.cpu.model*", "*.uid", "*.labels.*", "*.annotations.*",
)  # fmt: skip

ABOUT = frozenset(
    (
        *("@timestamp", "@metadata", "@version", "agent", "beat", "client", "cloud", "component", "data_stream"),
        *(
            "destination",
            "ecs",
            "elastic_agent",
            "error",
            "event",
            "fields",
            "file",
            "group",
            "host",
            "input",
            "labels",
        ),
        *("labels", "log", "message", "metricset", "network", "observer", "orchestrator", "os", "related", "server"),
        *("service", "source", "stream", "tags", "url", "user", "user_agent", "container", "process"),
    )
)
"""Top-level fields of ECS: they say about what and from where a document is. All others are a module's own."""

MEASURED = {"host": ("cpu", "disk", "network"), "container": ("cpu", "disk", "memory", "network"),
            "process": ("cpu", "memory")}  # fmt: skip
"""Parts of the fields in `ABOUT` that hold numbers which are measured."""


_COUNTER, _COUNT, _DIMENSION, _DESCRIPTION = map(compiled, (_COUNTERS, _COUNTS, _DIMENSIONS, _DESCRIPTIONS))


@remembered(1 << 14, len)
def kind_of(field: str) -> str:
    """The kind of a field's numbers.

    >>> kind_of("system.network.in.bytes"), kind_of("host.network.ingress.bytes"), kind_of("system.load.1")
    ('counter', 'count', 'gauge')
    """
    if _COUNTER.match(field) or (field.startswith("prometheus.metrics.") and field.endswith(COUNTING)):
        return "counter"
    return "count" if _COUNT.match(field) else "gauge"


@remembered(1 << 14, len)
def is_dimension(field: str) -> bool:
    """Whether a field with text, or with a number that is an id, tells one instance of a metricset from another.

    >>> [is_dimension(name) for name in ("system.network.name", "system.process.state", "process.pid", "host.name")]
    [True, False, True, False]
    """
    if _DIMENSION.match(field):
        return True
    parts = field.split(".")
    return parts[0] not in ABOUT and parts[-1] in _NAMING and not _DESCRIPTION.match(field)


@remembered(1 << 14, len)
def is_id(field: str) -> bool:
    """Whether a field with a whole number is an id, and no measurement."""
    return field.endswith((".id", ".pid")) and is_dimension(field)


@remembered(1 << 14, len)
def describes(field: str) -> bool:
    """Whether a field with text only describes what is measured.

    >>> [describes(name) for name in ("agent.version", "system.process.state", "mysql.status.state")]
    [True, True, False]
    """
    return field.partition(".")[0] in ABOUT or _DESCRIPTION.match(field) is not None
