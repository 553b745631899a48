"""The constants of all models in one place: groups of them, and each constant by its name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, get_args, get_type_hints

from models.config import DetectorConfig
from models.constant import Constant
from models.evidence.config import EvidenceConfig
from models.evidence.departure import Departures
from models.families.choice import Choice
from models.filling.config import FillingConfig
from models.fleet.config import FleetConfig
from models.machine.config import MultivariateConfig
from models.regimes.config import RegimesConfig
from models.series.feedback import Feedback
from models.templates.config import TemplateConfig


@dataclass(frozen=True)
class ModelConfig:
    """The constants, by what they are about.

    Args:
        series: How a value of a series is judged and learned, and how an entity's verdicts are joined.
        evidence: Single kinds of evidence.
        departures: How far a value has left the recent ones.
        regimes: How anomalies and new normals are distinguished.
        choice: Which family suits a series.
        feedback: What follows from what operators say of alarms.
        machine: All metrics of a machine together.
        filling: When a gauge with a bound will be full.
        fleet: Machines beside their peers.
        logs: Templates of log lines.
    """

    series: DetectorConfig = field(default_factory=DetectorConfig)
    evidence: EvidenceConfig = field(default_factory=EvidenceConfig)
    departures: Departures = field(default_factory=Departures)
    regimes: RegimesConfig = field(default_factory=RegimesConfig)
    choice: Choice = field(default_factory=Choice)
    feedback: Feedback = field(default_factory=Feedback)
    machine: MultivariateConfig = field(default_factory=MultivariateConfig)
    filling: FillingConfig = field(default_factory=FillingConfig)
    fleet: FleetConfig = field(default_factory=FleetConfig)
    logs: TemplateConfig = field(default_factory=TemplateConfig)


class Described(NamedTuple):
    """A constant, with its default.

    Args:
        group: Field of `ModelConfig`.
        name: Field of the group.
        value: Its default.
        about: Unit, range and source.
        meaning: From the docstring of the group.
    """

    group: str
    name: str
    value: float
    about: Constant
    meaning: str

    @property
    def path(self) -> str:
        """Group and name, such as ``series.half``."""
        return f"{self.group}.{self.name}"


def described() -> Iterator[Described]:
    """All constants, group by group; what is a setting of the user's, such as the threshold, is none.

    >>> next(described()).path
    'series.learning'
    """
    config = ModelConfig()
    for group in fields(config):
        own = getattr(config, group.name)
        meanings = _meanings(type(own))
        for name, hint in get_type_hints(type(own), include_extras=True).items():
            for about in get_args(hint):
                if isinstance(about, Constant):
                    yield Described(group.name, name, getattr(own, name), about, meanings[name])


def changed(config: ModelConfig, path: str, value: float) -> ModelConfig:
    """The configuration with another value of one constant, brought to its type.

    >>> changed(ModelConfig(), "series.calm", 7.6).series.calm
    8
    """
    group, name = path.split(".")
    own: Any = getattr(config, group)
    kind = type(getattr(own, name))
    other = replace(own, **{name: round(value) if kind is int else value})
    return replace(config, **{group: other})


def _meanings(group: type) -> dict[str, str]:
    """What the docstring says of each field."""
    text = inspect.cleandoc(group.__doc__ or "").partition("Args:\n")[2]
    args = re.split(r"\n\n|\n(?=\S)", text)[0]
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", args, re.MULTILINE)
    return {name: " ".join(meaning.split()) for name, meaning in entries}
