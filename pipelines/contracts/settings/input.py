"""The settings of the section `input`: how the labels and fields of agents become machines and metrics."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pipelines.contracts.setting_types import Accepts, Whole
from pipelines.contracts.tables.columns import MACHINES, METRICS, TIMES

_LABEL = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_@./:-]{0,199}")
_COLUMN = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_MACHINE = re.compile(r"(?:[A-Za-z0-9_.*?-]{1,200}=)?[^\s=\x00-\x1f\x7f]{1,512}")
_FIELD = re.compile(r"[A-Za-z0-9_@*?.:-]{1,200}")


def names(text: str) -> tuple[str, ...]:
    """The names in a setting, which are separated by commas.

    >>> names("host, instance")
    ('host', 'instance')
    """
    return tuple(part.strip() for part in text.split(",") if part.strip())


def told_for(text: str, *places: str) -> str:
    """What a setting such as ``logs.agents=lb-1,web-*=web,other`` says of some places; empty if it says nothing.

    Args:
        text: Parts with commas between them: ``glob=value``, or a value for all places. The first that fits counts.
        places: What a glob may fit: the name of a topic, or of a machine.

    >>> told_for("fw-*=Europe/Berlin,UTC", "logs.agents", "fw-1"), told_for("fw-*=Europe/Berlin,UTC", "logs.agents")
    ('Europe/Berlin', 'UTC')
    """
    for part in names(text):
        glob, mark, value = part.rpartition("=")
        if not mark or any(fnmatchcase(place, glob) for place in places):
            return value
    return ""


def _zones(text: str) -> str:
    for part in names(text) or ("",):
        try:
            ZoneInfo(part.rpartition("=")[2])
        except (OSError, ValueError, KeyError):
            raise ValueError("not accepted") from None
    return text


def _all_parts(pattern: re.Pattern[str]) -> AfterValidator:
    def check(text: str) -> str:
        if text.strip() and not all(pattern.fullmatch(part.strip()) for part in text.split(",")):
            raise ValueError("not accepted")
        return text

    return AfterValidator(check)


Labels = Annotated[str, _all_parts(_LABEL), Accepts("nothing, or names of labels with commas between them")]
Columns = Annotated[str, _all_parts(_COLUMN), Accepts("nothing, or names of columns with commas between them")]
FieldGlobs = Annotated[
    str, _all_parts(_FIELD), Accepts("nothing, or globs measurement.field of * and ? with commas between them")
]
Machines = Annotated[
    str, _all_parts(_MACHINE), Accepts("nothing, a machine, or topic=machine, several with commas between them")
]
Zones = Annotated[
    str,
    AfterValidator(_zones),
    Accepts("an IANA name such as UTC or Europe/Stockholm, or glob=name, several with commas between them"),
]


class InputSettings(BaseModel):
    """How the labels and fields of agents become machines and metrics."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    machine: Labels = Field(
        "host.name,host,hostname,nodename,node,instance,agent.hostname,k8s.node.name,k8s.pod.name,service.instance.id,"
        "service.name",
        description="labels that may name the machine; the first one that a sample has does",
    )
    pods: bool = Field(
        True,
        description="whether samples and log lines that name a pod of Kubernetes are of the machine `namespace/pod`, "
        "whichever label of `machine` they have, and kube-state-metrics' of a workload of `namespace/workload`",
    )
    default_machine: Machines = Field(
        "",
        description="the machine of a sample or log line that names none: a name, or `topic=name` (globs of topics, of "
        "which the first that fits counts); nothing: it is refused",
    )
    timezone: Zones = Field(
        "UTC",
        description="the zone of times that name none, such as those of syslog by RFC 3164: an IANA name, or "
        "`glob=name` with globs of topics or machines, the first that fits counts",
    )
    left_out: Labels = Field(
        "dc,datacenter,region,rack",
        description="labels that describe a machine or an instance; they do not become a part of a metric's name",
    )
    folded: Labels = Field(
        "container_id,container.id,pod_uid,k8s.pod.uid,request_id,session_id,trace_id,span_id",
        description="labels with very many values: in a metric's name the value is `*`; so are UUIDs and 32 or more "
        "hexadecimal digits in any label",
    )
    text_left_out: FieldGlobs = Field(
        "system.uptime_format",
        description="fields of Telegraf and Influx that are text which nobody needs; other text in a topic of metrics "
        "is a dead letter",
    )
    counters: FieldGlobs = Field(
        "",
        description="metrics of any format that are counters although it does not tell so, besides the well-known ones "
        "of SNMP, Telegraf's inputs and the node exporter",
    )
    collectd_rates: bool = Field(
        True,
        description="whether collectd computes rates of its counters (`StoreRates` of the plugin that writes JSON; the "
        "default of write_kafka, not that of write_http)",
    )
    csv_time: Columns = Field(
        ",".join(TIMES),
        description="CSV: columns that may hold the time, in any case; the first one that the header has does",
    )
    csv_machine: Columns = Field(
        ",".join(MACHINES),
        description="CSV: columns that may name the machine; the first one that the header has does",
    )
    csv_metric: Columns = Field(
        ",".join(METRICS),
        description="CSV: columns that may name the metric of a line (long form); without one, the name of each column "
        "of numbers is a metric (wide form)",
    )
    csv_labels: Columns = Field(
        "",
        description="CSV: columns that tell one series of a metric from another; nothing: the columns of a message "
        "that hold only text",
    )
    csv_separator: Literal["auto", "comma", "semicolon", "tab", "pipe"] = Field(
        "auto",
        description="CSV: what stands between two columns; `auto`: the one that divides a line like the header",
    )
    csv_decimal: Literal["auto", "point", "comma"] = Field(
        "auto",
        description="CSV: the decimal mark of numbers; `auto`: the one that more numbers of a message prove (1,5 "
        "proves a comma, 1,234 neither)",
    )
    csv_dates: Literal["auto", "day-first", "month-first"] = Field(
        "auto",
        description="CSV: how dates such as 01/11/2026 are read; `auto`: as a number above 12 in the message shows, "
        "else month first with `/` and day first with `.` and `-`",
    )
    statsd_changes: bool = Field(
        True,
        description="StatsD: whether a sign before the value of a gauge (`+3`, `-3`) says that it is a change, as "
        "StatsD and Telegraf read it; clients of DogStatsD send values below 0 so: false",
    )
    max_parts: Whole = Field(
        250_000,
        ge=1_000,
        le=10_000_000,
        description="the most samples, lines, labels, attributes, buckets and other parts of a message; one with more "
        "is a dead letter, and is not decoded",
    )
    max_series: Whole = Field(
        300_000,
        ge=1_000,
        le=10**9,
        description="the most series of the site that are ever known; each of kafka.partitions has an equal share, and "
        "records of a series beyond it are dead letters",
    )
    max_series_per_machine: Whole = Field(30_000, ge=100, le=10**9, description="the same for one machine")
