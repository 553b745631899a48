"""Asks why nobody was alerted: reads what is known, and walks the steps."""

from __future__ import annotations

from dataclasses import replace

from engine.spec.duration import duration_ms
from models.config import DetectorConfig
from models.records import constants
from models.series.alarm import bar
from pipelines.contracts.settings import Settings
from pipelines.why_not.evidence import evidence
from pipelines.why_not.walk import Walk, walk


def ask(settings: Settings, machine: str, metric: str, start: int, end: int) -> Walk:
    """Says why nobody was alerted of a series within a time.

    Args:
        settings: The settings of the version, with the address of Kafka filled in.
        machine: The machine.
        metric: The metric, with the labels if the series has some.
        start: When something happened, epoch milliseconds.
        end: Until when it is looked for, epoch milliseconds.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE``, ``KAFKA_READ_FAILED``.
    """
    detector = settings.detector
    config = replace(DetectorConfig(), threshold=detector.threshold, false_alarms=detector.false_alarms)
    needed = float(bar(constants(all=config).all, float(duration_ms(settings.window.step))))
    return walk(evidence(settings, machine, metric, start, end), settings, needed)
