"""The settings of the section `input`: how the labels and fields of agents become machines and metrics."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pipelines.contracts.setting_types import Accepts

_LABEL = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_@./:-]{0,199}")
_FIELD = re.compile(r"[A-Za-z0-9_@*?.:-]{1,200}")


def names(text: str) -> tuple[str, ...]:
    """The names in a setting, which are separated by commas.

    >>> names("host, instance")
    ('host', 'instance')
    """
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _each(pattern: re.Pattern[str]) -> AfterValidator:
    def check(text: str) -> str:
        if text.strip() and not all(pattern.fullmatch(part.strip()) for part in text.split(",")):
            raise ValueError("not accepted")
        return text

    return AfterValidator(check)


Labels = Annotated[str, _each(_LABEL), Accepts("nothing, or names of labels with commas between them")]
FieldGlobs = Annotated[
    str, _each(_FIELD), Accepts("nothing, or globs measurement.field of * and ? with commas between them")
]


class InputSettings(BaseModel):
    """How the labels and fields of agents become machines and metrics."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    machine: Labels = Field(
        "host.name,host,hostname,nodename,node,instance,agent.hostname,k8s.node.name,k8s.pod.name,service.instance.id,"
        "service.name",
        description="labels that may name the machine; the first one that a sample has does",
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
