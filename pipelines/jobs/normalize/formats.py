"""The registry of input formats: for each its name, what it carries, how it is recognised, and its decoder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from engine.formats.json_decoder import JsonDecoder
from engine.spec.decoder import Decoder
from engine.spec.record import Record
from pipelines.contracts.records import Log, Telemetry
from pipelines.contracts.settings.input import InputSettings, names, told_for
from pipelines.jobs.normalize import otlp
from pipelines.jobs.normalize.apart import Apart
from pipelines.jobs.normalize.cloudwatch import CloudwatchDecoder
from pipelines.jobs.normalize.collectd import CollectdDecoder
from pipelines.jobs.normalize.container_logs import CriDecoder, DockerDecoder, looks_like_cri, looks_like_docker
from pipelines.jobs.normalize.counters import COUNTERS, CounterRule
from pipelines.jobs.normalize.csv_layout import CSV, CsvRule, looks_like_csv
from pipelines.jobs.normalize.csv_lines import CsvDecoder
from pipelines.jobs.normalize.datadog import DatadogDecoder
from pipelines.jobs.normalize.flat_json import FlatJsonDecoder, looks_like_flat_json
from pipelines.jobs.normalize.gelf import GelfDecoder, looks_like_gelf
from pipelines.jobs.normalize.influx import InfluxDecoder
from pipelines.jobs.normalize.influx_lines import LONGEST_HEAD, begins_line, may_be_line
from pipelines.jobs.normalize.labels import LABELS, LabelRule
from pipelines.jobs.normalize.log_file import LogFileDecoder, looks_like_log_file
from pipelines.jobs.normalize.logfmt import LogfmtDecoder, looks_like_logfmt
from pipelines.jobs.normalize.measurement import TEXT, TextRule
from pipelines.jobs.normalize.measurement_logs import InfluxLogDecoder, TelegrafLogDecoder
from pipelines.jobs.normalize.metricbeat import MetricbeatDecoder
from pipelines.jobs.normalize.nagios import NagiosDecoder
from pipelines.jobs.normalize.otlp_logs import OtlpLogsDecoder
from pipelines.jobs.normalize.otlp_metrics import OtlpMetricsDecoder, is_metrics
from pipelines.jobs.normalize.own_logs import OwnLogDecoder
from pipelines.jobs.normalize.parts import MOST
from pipelines.jobs.normalize.plain_lines import GraphiteDecoder, PutvalDecoder
from pipelines.jobs.normalize.prometheus import PrometheusDecoder
from pipelines.jobs.normalize.prometheus_adapter import PrometheusAdapterDecoder
from pipelines.jobs.normalize.prometheus_api import PrometheusApiDecoder
from pipelines.jobs.normalize.remote_write import RemoteWriteDecoder
from pipelines.jobs.normalize.remote_write_protocol import is_remote_write
from pipelines.jobs.normalize.rsyslog import RsyslogDecoder
from pipelines.jobs.normalize.shipped_logs import ShippedLogsDecoder
from pipelines.jobs.normalize.splunk import (
    SplunkEventsDecoder,
    SplunkMetricsDecoder,
    looks_like_events,
    looks_like_metrics,
)
from pipelines.jobs.normalize.statsd import StatsdDecoder
from pipelines.jobs.normalize.statsd_events import StatsdEventsDecoder
from pipelines.jobs.normalize.statsd_events import begins as begins_with_event
from pipelines.jobs.normalize.syslog import SyslogDecoder
from pipelines.jobs.normalize.syslog_times import Zones
from pipelines.jobs.normalize.telegraf import TelegrafDecoder
from pipelines.jobs.normalize.vector import VectorDecoder
from pipelines.jobs.normalize.web_logs import WebLogDecoder, looks_like_web_log
from pipelines.jobs.normalize.zabbix import ZabbixDecoder


@dataclass(frozen=True)
class Rules:
    """How labels and fields of all formats are read.

    Args:
        labels: Which labels name the machine and the series.
        text: Which fields of text are left out.
        counters: Which metrics are counters although their format does not tell it.
        csv: Which columns of CSV are what.
        collectd_rates: Whether collectd has computed rates of its counters.
        most: The most parts of a message, see `pipelines.jobs.normalize.parts`.
        statsd_changes: Whether a sign before the value of a StatsD gauge says that it is a change.
        timezone: The zone of times that name none, see `InputSettings.timezone`.
        topic: The topic, without the namespace.
        machine: The machine of log lines that name none; empty: such lines are refused.
    """

    labels: LabelRule = LABELS
    text: TextRule = TEXT
    counters: CounterRule = COUNTERS
    csv: CsvRule = CSV
    collectd_rates: bool = True
    most: int = MOST
    statsd_changes: bool = True
    timezone: str = "UTC"
    topic: str = ""
    machine: str = ""

    @classmethod
    def of(cls, settings: InputSettings, topic: str = "") -> Rules:
        """The rules that the settings describe, for a topic without the namespace."""
        return cls(
            labels=LabelRule.of(settings, topic),
            text=TextRule(names(settings.text_left_out)),
            counters=CounterRule(names(settings.counters)),
            csv=CsvRule.of(settings, topic),
            collectd_rates=settings.collectd_rates,
            most=settings.max_parts,
            statsd_changes=settings.statsd_changes,
            timezone=settings.timezone,
            topic=topic,
            machine=told_for(settings.default_machine, topic),
        )

    @property
    def zone(self) -> str:
        """The zone of times in the topic that name none."""
        return told_for(self.timezone, self.topic) or "UTC"


RULES = Rules()
"""The rules of the default settings."""


Recogniser = Callable[[bytes, Rules], bool]


@dataclass(frozen=True)
class Format:
    """One input format.

    Args:
        name: Its name on the command line and in the docs.
        record: What its messages become: `Telemetry` or `Log`.
        title: What it is, for the docs.
        make: Makes its decoder; `build` makes it as the topics use it.
        recognise: Whether a message, without blanks before it, looks like the format, as some rules describe it.
        a_line: Whether each line of a file is a message; false if a file is one message.
        binary: Whether blanks at the beginning of a message belong to it.
        tells_kinds: Whether its messages, or its decoder, say which metrics are counters.
    """

    name: str
    record: type[Record]
    title: str
    make: Callable[[Rules], Decoder]
    recognise: Recogniser
    a_line: bool = True
    binary: bool = False
    tells_kinds: bool = False

    def build(self, rules: Rules) -> Decoder:
        """Its decoder, which keeps series apart and knows counters, as some rules say."""
        decoder = self.make(rules)
        if self.record is Log or self.name in ("json", "statsd"):  # events of StatsD may come at one time
            return decoder
        whole = replace(rules, labels=replace(rules.labels, left_out=frozenset(), random=False))
        return Apart(decoder, self.make(whole), replace(rules.counters, well_known=not self.tells_kinds))


def _has(*wanted: bytes, start: bytes = b"{") -> Recogniser:
    """Recognises JSON by its first character and by texts that stand somewhere in it."""
    return lambda value, _: value.startswith(start) and all(text in value for text in wanted)


def _matches(pattern: bytes) -> Recogniser:
    """Recognises text by a pattern of its first line that is no comment."""
    compiled = re.compile(pattern)

    def recognise(value: bytes, _: Rules) -> bool:
        return compiled.match(_first_line(value)) is not None

    return recognise


def _prometheus(value: bytes, rules: Rules) -> bool:
    return _COMMENT.match(value) is not None or _SAMPLE.match(_first_line(value)) is not None


_COMMENT = re.compile(rb"#\s+(TYPE|HELP|UNIT)\s")
_SAMPLE = re.compile(
    rb"(?:[a-zA-Z_:][a-zA-Z0-9_:]*(\s*\{.*\})?\s+|[a-zA-Z_:][a-zA-Z0-9_:]*\s*\{.*\}|\{\s*\"(?:[^\"\\]|\\.)*+\"\s*[,}].*\}?\s*)"
    rb"[-+]?([0-9.]+([eE][-+]?[0-9]+)?|[nN]a[nN]|[iI]nf(inity)?)(\s+[-+]?[0-9.]+([eE][-+]?[0-9]+)?)?(\s+#.*)?$"
)


def _own_log(value: bytes, rules: Rules) -> bool:
    """Whether an object is a log line of our own: ECS in flat form has ``host.name`` too, but a level of its own."""
    wanted = _has(b'"host.name"', b'"message"', b'"@timestamp"', b'"log.syslog.severity.code"')
    return wanted(value, rules) and b'"ecs.version"' not in value


def _shipped(value: bytes, rules: Rules) -> bool:
    nxlog = b'"EventTime"' in value and b'"Message"' in value
    return value[:1] in (b"{", b"[") and (nxlog or _SHIPPED.search(value) is not None)


def _rsyslog(value: bytes, rules: Rules) -> bool:
    wanted = _has(b'"ts"', b'"host"', b'"msg"')
    return wanted(value, rules) and (b'"severity"' in value or b'"program"' in value)


def _vector(value: bytes, rules: Rules) -> bool:
    wanted = _has(b'"name"', b'"kind"')
    return wanted(value, rules) and _VECTOR.search(value) is not None


_VECTOR = re.compile(rb'"(?:counter|gauge|set|distribution|aggregated_histogram|aggregated_summary)"\s*:\s*\{')
_SHIPPED = re.compile(
    rb'"(?:(?:message|log|msg|MESSAGE|event|@mt?|RenderedMessage|textPayload)"\s*:\s*"|MESSAGE"\s*:\s*\[)'
)
_PRIORITY = re.compile(rb"(?:[1-9][0-9]{0,5} )?<[0-9]{1,3}>")
"""The priority of syslog, before which a stream has the length of each message."""


_CLOUDWATCH = re.compile(rb'"(?:metric_stream_name|MetricDataResults)"\s*:')
_STATSD = re.compile(rb"(?m)^[^\s:|{}\"<]+:(?:[-+.0-9][-+.0-9eE:]*\|(?:c|g|ms|h|d)|[^|\n]*\|s)(?=[|:\r]|$)")


def _statsd(value: bytes, _: Rules) -> bool:
    return (_STATSD.search if begins_with_event(value) else _STATSD.match)(value) is not None


_BEFORE = re.compile(rb"(?:[ \t\r]*+(?:#[^\n]*+)?\n)*+")
"""Comments and blank lines, each with its end."""


def _first_line(value: bytes, most: int = 4096) -> bytes:
    """The first line that is neither blank nor a comment, or as many bytes of it; empty if there is none."""
    before = _BEFORE.match(value)
    at = before.end() if before else 0
    end = value.find(b"\n", at)
    line = value[at : end if end >= 0 else len(value)].strip()
    return b"" if line.startswith(b"#") else line[:most]


def _influx(value: bytes, _: Rules) -> bool:
    first = _first_line(value, 2 * LONGEST_HEAD)
    if begins_line(first) or not may_be_line(first):
        return begins_line(first)
    lines = (line.strip() for line in value[: 2 * LONGEST_HEAD].split(b"\n"))
    return any(begins_line(line) for line in lines if line and not line.startswith(b"#"))


FORMATS = (
    Format(
        "remote-write", Telemetry, "Prometheus remote write 1.0 and 2.0, protobuf",
        lambda rules: RemoteWriteDecoder(rules.labels.scraped), lambda value, _: is_remote_write(value),
        a_line=False, binary=True,
    ),
    Format(
        "otlp", Telemetry, "OTLP metrics, protobuf", lambda rules: OtlpMetricsDecoder(rules.labels),
        lambda value, _: value[:1] == b"\n" and otlp.framed(value) and is_metrics(value), a_line=False, binary=True,
        tells_kinds=True,
    ),
    Format(
        "otlp-json", Telemetry, "OTLP metrics, JSON", lambda rules: OtlpMetricsDecoder(rules.labels),
        _has(b'"resourceMetrics"'), tells_kinds=True,
    ),
    Format(
        "otlp-logs", Log, "OTLP logs, protobuf", lambda rules: OtlpLogsDecoder(rules.labels),
        lambda value, _: value[:1] == b"\n" and otlp.framed(value) and not is_metrics(value), a_line=False, binary=True,
    ),
    Format(
        "otlp-logs-json", Log, "OTLP logs, JSON", lambda rules: OtlpLogsDecoder(rules.labels),
        _has(b'"resourceLogs"'),
    ),
    Format(
        "json", Telemetry, "our own JSON of samples", lambda rules: JsonDecoder(Telemetry),
        _has(b'"host.name"', b'"metric"', b'"value"'),
    ),
    Format(
        "json-logs", Log, "our own JSON of log lines", lambda rules: OwnLogDecoder(Log),
        _own_log,
    ),
    Format(
        "metricbeat", Telemetry, "Metricbeat and Elastic Agent (ECS): JSON of metricsets",
        lambda rules: MetricbeatDecoder(rules.labels, rules.text, rules.counters),
        _has(b'"@timestamp"', b'"metricset"'),
    ),
    Format(
        "telegraf", Telemetry, "Telegraf, `data_format = \"json\"`",
        lambda rules: TelegrafDecoder(rules.labels, rules.text),
        _has(b'"fields"', b'"tags"', b'"timestamp"'),
    ),
    Format(
        "collectd", Telemetry, "collectd write_kafka, `Format JSON`",
        lambda rules: CollectdDecoder(rules.collectd_rates),
        _has(b'"dstypes"', b'"dsnames"', start=b"["), tells_kinds=True,
    ),
    Format(
        "rsyslog", Log, "rsyslog omkafka with a JSON template", lambda rules: RsyslogDecoder(rules.labels.default),
        _rsyslog,
    ),
    Format(
        "prometheus-adapter", Telemetry, "prometheus-kafka-adapter, JSON",
        lambda rules: PrometheusAdapterDecoder(rules.labels.scraped),
        _has(b'"labels"', b'"__name__"', b'"value"'),
    ),
    Format(
        "splunk-metrics", Telemetry, "Splunk HTTP Event Collector: metrics",
        lambda rules: SplunkMetricsDecoder(rules.labels), lambda value, _: looks_like_metrics(value),
    ),
    Format(
        "splunk-events", Log, "Splunk HTTP Event Collector: events",
        lambda rules: SplunkEventsDecoder(rules.labels), lambda value, _: looks_like_events(value),
    ),
    Format(
        "datadog", Telemetry, "Datadog: series, versions 1 and 2, JSON", lambda rules: DatadogDecoder(rules.labels),
        _has(b'"series"', b'"metric"', b'"points"'),
    ),
    Format(
        "cloudwatch", Telemetry, "Amazon CloudWatch: metric streams in JSON, GetMetricData",
        lambda rules: CloudwatchDecoder(rules.labels),
        lambda value, _: value[:1] in (b"{", b"[") and _CLOUDWATCH.search(value) is not None,
    ),
    Format(
        "zabbix", Telemetry, "Zabbix, real-time export", lambda rules: ZabbixDecoder(rules.labels),
        _has(b'"itemid"', b'"clock"', b'"host"', b'"type"'),
    ),
    Format(
        "prometheus-api", Telemetry, "Prometheus' HTTP API: answers to queries",
        lambda rules: PrometheusApiDecoder(rules.labels), _has(b'"resultType"', b'"result"', b'"metric"'),
    ),
    Format(
        "nagios", Telemetry, "Nagios, Icinga, Naemon: lines of performance data", lambda rules: NagiosDecoder(),
        _matches(rb"DATATYPE::(?:SERVICE|HOST)PERFDATA\t"),
    ),
    Format(
        "vector", Telemetry, "Vector: JSON of metrics", lambda rules: VectorDecoder(rules.labels), _vector,
    ),
    Format(
        "statsd", Telemetry, "StatsD and DogStatsD", lambda rules: StatsdDecoder(rules.labels, rules.statsd_changes),
        _statsd,
    ),
    Format(
        "statsd-events", Log, "DogStatsD: events and service checks",
        lambda rules: StatsdEventsDecoder(rules.labels), lambda value, _: begins_with_event(value),
    ),
    Format(
        "cri", Log, "CRI: lines of containers' log files",
        lambda rules: CriDecoder(rules.zone, rules.machine), lambda value, _: looks_like_cri(value),
    ),
    Format(
        "docker-json", Log, "Docker's log driver json-file",
        lambda rules: DockerDecoder(rules.zone, rules.machine), lambda value, _: looks_like_docker(value),
    ),
    Format(
        "log-file", Log, "lines of syslog's files, such as `/var/log/syslog`; omkafka without a template",
        lambda rules: LogFileDecoder(rules.zone, rules.machine), lambda value, _: looks_like_log_file(value),
    ),
    Format(
        "web-log", Log, "access and error logs of Apache and nginx",
        lambda rules: WebLogDecoder(rules.zone, rules.machine), lambda value, _: looks_like_web_log(value),
    ),
    Format(
        "logfmt", Log, "logfmt: `level=info msg=\"text\" key=value`",
        lambda rules: LogfmtDecoder(rules.zone, rules.machine, rules.labels),
        lambda value, _: looks_like_logfmt(value),
    ),
    Format(
        "gelf", Log, "GELF, Graylog's JSON of log lines", lambda rules: GelfDecoder(rules.machine),
        lambda value, _: looks_like_gelf(value),
    ),
    Format(
        "prometheus", Telemetry, "Prometheus exposition text, OpenMetrics",
        lambda rules: PrometheusDecoder(rules.labels.scraped, rules.counters),
        _prometheus, a_line=False, tells_kinds=True,
    ),
    Format(
        "influx", Telemetry, "Influx line protocol (Telegraf `data_format = \"influx\"`, many others)",
        lambda rules: InfluxDecoder(rules.labels, rules.text, rules.counters),
        _influx,
    ),
    Format(
        "putval", Telemetry, "collectd, `PUTVAL` commands", lambda rules: PutvalDecoder(), _matches(rb"PUTVAL\s"),
    ),
    Format(
        "graphite", Telemetry, "Graphite lines", lambda rules: GraphiteDecoder(rules.labels),
        _matches(rb"[^\s{}<>\"']+\s+(?:[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|[nN]a[nN])\s+-?[0-9.]+$"),
    ),
    Format(
        "csv", Telemetry, "CSV with a header",
        lambda rules: CsvDecoder(rules.csv, rules.labels, rules.text, rules.counters),
        lambda value, rules: looks_like_csv(value, rules.csv), a_line=False,
    ),
    Format(
        "syslog", Log, "syslog, RFC 5424 and RFC 3164",
        lambda rules: SyslogDecoder(rules.labels, Zones(rules.timezone, rules.topic)),
        lambda value, _: _PRIORITY.match(value) is not None,
    ),
    Format(
        "telegraf-logs", Log, "Telegraf, `data_format = \"json\"`, fields of text",
        lambda rules: TelegrafLogDecoder(rules.labels),
        _has(b'"fields"', b'"tags"', b'"timestamp"'),
    ),
    Format(
        "influx-logs", Log, "Influx line protocol, fields of text", lambda rules: InfluxLogDecoder(rules.labels),
        _influx,
    ),
    Format(
        "shipped-logs", Log, "Filebeat, Elastic Agent (ECS), Fluent Bit, Vector: JSON of log lines",
        lambda rules: ShippedLogsDecoder(rules.labels, Zones(rules.timezone, rules.topic)), _shipped,
    ),
    Format(
        "flat-json", Telemetry, "JSON of numbers: Fluent Bit (cpu, mem, ...), jmxtrans, home-made",
        lambda rules: FlatJsonDecoder(rules.labels, rules.text, rules.counters, rules.csv),
        lambda value, _: looks_like_flat_json(value),
    ),
)  # fmt: skip
"""All formats, in the order in which a message is compared with them."""

BY_NAME = {form.name: form for form in FORMATS}
"""The formats by name."""


def guess(value: bytes | None, record: type[Record] | None = None, rules: Rules = RULES) -> Format | None:
    """The format that a message looks like; ``None`` if it looks like none.

    Args:
        value: The message.
        record: Only formats of this record type.
        rules: How labels and fields are read.

    >>> guess(b"cpu,host=a usage=1").name, guess(b"hello"), guess(None)
    ('influx', None, None)
    """
    whole = value or b""
    begin = whole.lstrip()
    return next((each for each in _of(record) if each.recognise(whole if each.binary else begin, rules)), None)


def _of(record: type[Record] | None) -> Iterator[Format]:
    return (each for each in FORMATS if record is None or each.record is record)
