"""How labels and fields of all formats are read, as the settings of the input describe it."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.contracts.settings.input import InputSettings, names, told_for
from pipelines.formats.counters import COUNTERS, CounterRule
from pipelines.formats.csv_layout import CSV, CsvRule
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.measurement import TEXT, TextRule
from pipelines.formats.parts import MOST


@dataclass(frozen=True)
class Rules:
    """How labels and fields of all formats are read.

    Args:
        labels: Which labels name the machine and the series.
        text: Which fields of text are left out.
        counters: Which metrics are counters although their format does not say so.
        csv: Which columns of CSV are what.
        collectd_rates: Whether collectd has computed rates of its counters.
        most: The most parts of a message, see `pipelines.formats.parts`.
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
