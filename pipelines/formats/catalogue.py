"""The catalogue of input formats: for each its name, what it carries, how it is recognised, and its decoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from engine.formats.json_decoder import JsonDecoder
from engine.spec.decoder import Decoder
from engine.spec.record import Record
from pipelines.contracts.records import Log, Telemetry
from pipelines.formats import otlp, recognisers
from pipelines.formats.apart import Apart
from pipelines.formats.cloudwatch import CloudwatchDecoder
from pipelines.formats.collectd import CollectdDecoder
from pipelines.formats.container_logs import CriDecoder, DockerDecoder, looks_like_cri, looks_like_docker
from pipelines.formats.csv_layout import looks_like_csv
from pipelines.formats.csv_lines import CsvDecoder
from pipelines.formats.datadog import DatadogDecoder
from pipelines.formats.flat_json import FlatJsonDecoder, looks_like_flat_json
from pipelines.formats.gelf import GelfDecoder, looks_like_gelf
from pipelines.formats.influx import InfluxDecoder
from pipelines.formats.line_decoder import OwnLogDecoder
from pipelines.formats.log_file import LogFileDecoder, looks_like_log_file
from pipelines.formats.logfmt import LogfmtDecoder, looks_like_logfmt
from pipelines.formats.measurement_logs import InfluxLogDecoder, TelegrafLogDecoder
from pipelines.formats.metricbeat import MetricbeatDecoder
from pipelines.formats.nagios import NagiosDecoder
from pipelines.formats.otlp_logs import OtlpLogsDecoder
from pipelines.formats.otlp_metrics import OtlpMetricsDecoder, is_metrics
from pipelines.formats.plain_lines import GraphiteDecoder, PutvalDecoder
from pipelines.formats.prometheus import PrometheusDecoder
from pipelines.formats.prometheus_json import PrometheusAdapterDecoder, PrometheusApiDecoder
from pipelines.formats.remote_write import RemoteWriteDecoder
from pipelines.formats.remote_write_protocol import is_remote_write
from pipelines.formats.rsyslog import RsyslogDecoder
from pipelines.formats.rules import RULES, Rules
from pipelines.formats.shipped_logs import ShippedLogsDecoder
from pipelines.formats.splunk import SplunkEventsDecoder, SplunkMetricsDecoder, looks_like_events, looks_like_metrics
from pipelines.formats.statsd import StatsdDecoder
from pipelines.formats.statsd_events import StatsdEventsDecoder
from pipelines.formats.statsd_events import begins as begins_with_event
from pipelines.formats.syslog import SyslogDecoder
from pipelines.formats.syslog_times import Zones
from pipelines.formats.telegraf import TelegrafDecoder
from pipelines.formats.vector import VectorDecoder
from pipelines.formats.web_logs import WebLogDecoder, looks_like_web_log
from pipelines.formats.zabbix import ZabbixDecoder


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
    recognise: recognisers.Recogniser
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
        recognisers.has(b'"resourceMetrics"'), tells_kinds=True,
    ),
    Format(
        "otlp-logs", Log, "OTLP logs, protobuf", lambda rules: OtlpLogsDecoder(rules.labels),
        lambda value, _: value[:1] == b"\n" and otlp.framed(value) and not is_metrics(value), a_line=False, binary=True,
    ),
    Format(
        "otlp-logs-json", Log, "OTLP logs, JSON", lambda rules: OtlpLogsDecoder(rules.labels),
        recognisers.has(b'"resourceLogs"'),
    ),
    Format(
        "json", Telemetry, "our own JSON of samples", lambda rules: JsonDecoder(Telemetry),
        recognisers.has(b'"host.name"', b'"metric"', b'"value"'),
    ),
    Format(
        "json-logs", Log, "our own JSON of log lines", lambda rules: OwnLogDecoder(Log),
        recognisers.own_log,
    ),
    Format(
        "metricbeat", Telemetry, "Metricbeat and Elastic Agent (ECS): JSON of metricsets",
        lambda rules: MetricbeatDecoder(rules.labels, rules.text, rules.counters),
        recognisers.has(b'"@timestamp"', b'"metricset"'),
    ),
    Format(
        "telegraf", Telemetry, "Telegraf, `data_format = \"json\"`",
        lambda rules: TelegrafDecoder(rules.labels, rules.text),
        recognisers.has(b'"fields"', b'"tags"', b'"timestamp"'),
    ),
    Format(
        "collectd", Telemetry, "collectd write_kafka, `Format JSON`",
        lambda rules: CollectdDecoder(rules.collectd_rates),
        recognisers.has(b'"dstypes"', b'"dsnames"', start=b"["), tells_kinds=True,
    ),
    Format(
        "rsyslog", Log, "rsyslog omkafka with a JSON template", lambda rules: RsyslogDecoder(rules.labels.default),
        recognisers.rsyslog,
    ),
    Format(
        "prometheus-adapter", Telemetry, "prometheus-kafka-adapter, JSON",
        lambda rules: PrometheusAdapterDecoder(rules.labels.scraped),
        recognisers.has(b'"labels"', b'"__name__"', b'"value"'),
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
        recognisers.has(b'"series"', b'"metric"', b'"points"'),
    ),
    Format(
        "cloudwatch", Telemetry, "Amazon CloudWatch: metric streams in JSON, GetMetricData",
        lambda rules: CloudwatchDecoder(rules.labels),
        recognisers.cloudwatch,
    ),
    Format(
        "zabbix", Telemetry, "Zabbix, real-time export", lambda rules: ZabbixDecoder(rules.labels),
        recognisers.has(b'"itemid"', b'"clock"', b'"host"', b'"type"'),
    ),
    Format(
        "prometheus-api", Telemetry, "Prometheus' HTTP API: answers to queries",
        lambda rules: PrometheusApiDecoder(rules.labels), recognisers.has(b'"resultType"', b'"result"', b'"metric"'),
    ),
    Format(
        "nagios", Telemetry, "Nagios, Icinga, Naemon: lines of performance data", lambda rules: NagiosDecoder(),
        recognisers.matches(rb"DATATYPE::(?:SERVICE|HOST)PERFDATA\t"),
    ),
    Format(
        "vector", Telemetry, "Vector: JSON of metrics", lambda rules: VectorDecoder(rules.labels), recognisers.vector,
    ),
    Format(
        "statsd", Telemetry, "StatsD and DogStatsD", lambda rules: StatsdDecoder(rules.labels, rules.statsd_changes),
        recognisers.statsd,
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
        recognisers.prometheus, a_line=False, tells_kinds=True,
    ),
    Format(
        "influx", Telemetry, "Influx line protocol (Telegraf `data_format = \"influx\"`, many others)",
        lambda rules: InfluxDecoder(rules.labels, rules.text, rules.counters),
        recognisers.influx,
    ),
    Format(
        "putval", Telemetry, "collectd, `PUTVAL` commands", lambda rules: PutvalDecoder(),
        recognisers.matches(rb"PUTVAL\s"),
    ),
    Format(
        "graphite", Telemetry, "Graphite lines", lambda rules: GraphiteDecoder(rules.labels),
        recognisers.matches(rb"[^\s{}<>\"']+\s+(?:[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|[nN]a[nN])\s+-?[0-9.]+$"),
    ),
    Format(
        "csv", Telemetry, "CSV with a header",
        lambda rules: CsvDecoder(rules.csv, rules.labels, rules.text, rules.counters),
        lambda value, rules: looks_like_csv(value, rules.csv), a_line=False,
    ),
    Format(
        "syslog", Log, "syslog, RFC 5424 and RFC 3164",
        lambda rules: SyslogDecoder(rules.labels, Zones(rules.timezone, rules.topic)),
        recognisers.syslog,
    ),
    Format(
        "telegraf-logs", Log, "Telegraf, `data_format = \"json\"`, fields of text",
        lambda rules: TelegrafLogDecoder(rules.labels),
        recognisers.has(b'"fields"', b'"tags"', b'"timestamp"'),
    ),
    Format(
        "influx-logs", Log, "Influx line protocol, fields of text", lambda rules: InfluxLogDecoder(rules.labels),
        recognisers.influx,
    ),
    Format(
        "shipped-logs", Log, "Filebeat, Elastic Agent (ECS), Fluent Bit, Vector: JSON of log lines",
        lambda rules: ShippedLogsDecoder(rules.labels, Zones(rules.timezone, rules.topic)), recognisers.shipped_log,
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
