"""The score from which a verdict on one series is an alarm, by the settings of the detector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from models.config import DetectorConfig
from models.records import constants
from models.series.alarm import bar
from pipelines.contracts.settings import DetectorSettings


def bar_by_clock(settings: DetectorSettings, false_alarms: float | None = None) -> Callable[[float], float]:
    """The bar of a series by its clock, as the models reckon it.

    Args:
        settings: The settings of the detector.
        false_alarms: In the place of that of the settings.

    Returns:
        A function of the usual milliseconds between two values of a series; 0 where they are not known.
    """
    promised = settings.false_alarms if false_alarms is None else false_alarms
    config = constants(all=replace(DetectorConfig(), threshold=settings.threshold, false_alarms=promised)).all
    return lambda clock: float(bar(config, clock))
