"""Recognises the format of a message at a glance, for formats whose decoder's module does not do so itself.

A recogniser gets a message without blanks before it; it may take a message for one of its format that is none, as the
first format of the catalogue that recognises a message decodes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pipelines.formats.influx_lines import LONGEST_HEAD, begins_line, may_be_line
from pipelines.formats.rules import Rules
from pipelines.formats.statsd_events import begins as begins_with_event

Recogniser = Callable[[bytes, Rules], bool]
"""Whether a message looks like the format, as some rules describe it."""

_PROMETHEUS_COMMENT = re.compile(rb"#\s+(TYPE|HELP|UNIT)\s")
_PROMETHEUS_SAMPLE = re.compile(
    rb"(?:[a-zA-Z_:][a-zA-Z0-9_:]*(\s*\{.*\})?\s+|[a-zA-Z_:][a-zA-Z0-9_:]*\s*\{.*\}|\{\s*\"(?:[^\"\\]|\\.)*+\"\s*[,}].*\}?\s*)"
    rb"[-+]?([0-9.]+([eE][-+]?[0-9]+)?|[nN]a[nN]|[iI]nf(inity)?)(\s+[-+]?[0-9.]+([eE][-+]?[0-9]+)?)?(\s+#.*)?$"
)
_VECTOR = re.compile(rb'"(?:counter|gauge|set|distribution|aggregated_histogram|aggregated_summary)"\s*:\s*\{')
_SHIPPED = re.compile(
    rb'"(?:(?:message|log|msg|MESSAGE|event|@mt?|RenderedMessage|textPayload)"\s*:\s*"|MESSAGE"\s*:\s*\[)'
)
_SYSLOG_PRIORITY = re.compile(rb"(?:[1-9][0-9]{0,5} )?<[0-9]{1,3}>")
"""The priority of syslog, before which a stream has the length of each message."""
_CLOUDWATCH = re.compile(rb'"(?:metric_stream_name|MetricDataResults)"\s*:')
_STATSD = re.compile(rb"(?m)^[^\s:|{}\"<]+:(?:[-+.0-9][-+.0-9eE:]*\|(?:c|g|ms|h|d)|[^|\n]*\|s)(?=[|:\r]|$)")
_COMMENTS = re.compile(rb"(?:[ \t\r]*+(?:#[^\n]*+)?\n)*+")
"""Comments and blank lines, each with its end."""


def has(*texts: bytes, start: bytes = b"{") -> Recogniser:
    """Recognises JSON by its first character and by texts that stand somewhere in it."""
    return lambda value, _: value.startswith(start) and all(text in value for text in texts)


def matches(pattern: bytes) -> Recogniser:
    """Recognises text by a pattern of its first line that is no comment."""
    compiled = re.compile(pattern)

    def recognise(value: bytes, _: Rules) -> bool:
        return compiled.match(_first_line(value)) is not None

    return recognise


def prometheus(value: bytes, rules: Rules) -> bool:
    """Prometheus' text: a comment of a metric, or a line of a sample."""
    return _PROMETHEUS_COMMENT.match(value) is not None or _PROMETHEUS_SAMPLE.match(_first_line(value)) is not None


def own_log(value: bytes, rules: Rules) -> bool:
    """A log line of our own: ECS in flat form has ``host.name`` too, but a level of its own."""
    ours = has(b'"host.name"', b'"message"', b'"@timestamp"', b'"log.syslog.severity.code"')
    return ours(value, rules) and b'"ecs.version"' not in value


def shipped_log(value: bytes, rules: Rules) -> bool:
    """JSON of a shipper of logs: an object or an array with a text under one of the names that shippers use."""
    nxlog = b'"EventTime"' in value and b'"Message"' in value
    return value[:1] in (b"{", b"[") and (nxlog or _SHIPPED.search(value) is not None)


def rsyslog(value: bytes, rules: Rules) -> bool:
    """JSON of the template that docs/input.md gives for rsyslog."""
    template = has(b'"ts"', b'"host"', b'"msg"')
    return template(value, rules) and (b'"severity"' in value or b'"program"' in value)


def vector(value: bytes, rules: Rules) -> bool:
    """JSON of one of Vector's types of metrics."""
    return has(b'"name"', b'"kind"')(value, rules) and _VECTOR.search(value) is not None


def cloudwatch(value: bytes, rules: Rules) -> bool:
    """JSON of a metric stream, or an answer of GetMetricData."""
    return value[:1] in (b"{", b"[") and _CLOUDWATCH.search(value) is not None


def statsd(value: bytes, rules: Rules) -> bool:
    """A first line of StatsD; a line anywhere after an event of DogStatsD, which may stand before samples."""
    return (_STATSD.search if begins_with_event(value) else _STATSD.match)(value) is not None


def syslog(value: bytes, rules: Rules) -> bool:
    """A message that begins with syslog's priority, or with its length and the priority."""
    return _SYSLOG_PRIORITY.match(value) is not None


def influx(value: bytes, rules: Rules) -> bool:
    """Influx's line protocol: the first line, or a later one if the first may be a broken line of it."""
    first = _first_line(value, 2 * LONGEST_HEAD)
    if begins_line(first) or not may_be_line(first):
        return begins_line(first)
    lines = (line.strip() for line in value[: 2 * LONGEST_HEAD].split(b"\n"))
    return any(begins_line(line) for line in lines if line and not line.startswith(b"#"))


def _first_line(value: bytes, most: int = 4096) -> bytes:
    """The first line that is neither blank nor a comment, or as many bytes of it; empty if there is none."""
    comments = _COMMENTS.match(value)
    at = comments.end() if comments else 0
    end = value.find(b"\n", at)
    line = value[at : end if end >= 0 else len(value)].strip()
    return b"" if line.startswith(b"#") else line[:most]
