"""The settings of the detectors."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipelines.contracts.setting_types import Families, Number, SeriesGlobs, TimeZone, Whole
from pipelines.contracts.settings.section import Section


class DetectorSettings(Section):
    threshold: Number = Field(
        50.0,
        ge=0,
        le=100,
        description="record_score from which a window of five minutes is an anomaly; lower: more sensitive. Shorter "
        "windows need more, longer ones less, so that all have as many false alarms per month; to say how many, set "
        "`detector.false_alarms` instead",
    )
    false_alarms: Number = Field(
        1.0,
        ge=0.01,
        le=100,
        description="about how many false alarms per series and month there may be; fewer: less sensitive",
    )
    emit: Literal["all", "context", "novel"] = Field(
        "context",
        description="which verdicts are written. `novel`: only news, and the end of an incident; `context`: that, and "
        "the ordinary windows before, during and after an incident of the series; `all`: on each window, as the demo "
        "does",
    )
    context_before: Whole = Field(
        60, ge=0, le=100_000, description="with `context`: how many windows before the onset of an incident are written"
    )
    context_after: Whole = Field(
        30, ge=0, le=100_000, description="with `context`: how many windows after the end of an incident are written"
    )
    context_always: SeriesGlobs = Field(
        "",
        description="with `context`: globs `machine/metric` of series of which all windows are written, separated by "
        "commas; `?` also stands for a comma",
    )
    timezone: TimeZone = Field("UTC", description="IANA name of the time zone in which hours of the day are counted")
    family: Families = Field(
        {},
        description="model family of metrics, by glob of the metric: `mixture`, `count`, `ratio` or `categorical`; the "
        "first glob that matches applies; the detector chooses for all other metrics; see model.md",
    )
