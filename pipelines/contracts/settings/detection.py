"""The settings of the detectors, and of the incidents that are made of what they find."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.spec.duration import duration_ms
from pipelines.contracts.setting_types import (
    Bounds,
    Days,
    Duration,
    Families,
    Length,
    Number,
    SeriesGlobs,
    TimeZone,
    Whole,
)
from pipelines.contracts.settings.input import Labels
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
    forget: Days = Field(
        "7d",
        description="a series without a sample for so long in event time, and for three times its longest pause so "
        "far, is forgotten: it leaves the state of all jobs and the state view; a sample of it that comes later begins "
        "it anew",
    )
    timezone: TimeZone = Field("UTC", description="IANA name of the time zone in which hours of the day are counted")
    family: Families = Field(
        {},
        description="model family of metrics, by glob of the metric: `mixture`, `count`, `ratio` or `categorical`; the "
        "first glob that matches applies; the detector chooses for all other metrics; see model.md",
    )
    bounds: Bounds = Field(
        {},
        description="bounds of metrics, by glob of the metric, from empty to full: `0..100`, `100..0`, `..0` (what is "
        "left), `..time` (the value is the time at which it is full), or `none`; with `@14d` told so long before; "
        "the first glob that matches applies, then those of well-known names; see time-to-full.md",
    )
    peers_by: Labels = Field(
        "role,service.name,service,app",
        description="labels of metrics that say which machines do the same work: those with the same value are peers, "
        "the first label that a metric has counts; replicas of a workload are peers whatever their labels, and without "
        "such a label machines whose names differ in numbers only; nothing: names alone; see peers.md",
    )
    full_within: Length = Field(
        "1d",
        description="that a series with a bound will be full is told when that is within so long, with 95 % certainty",
    )

    @property
    def full_within_ms(self) -> int:
        """`full_within` in milliseconds."""
        return duration_ms(self.full_within)


class IncidentSettings(Section):
    false_pages: Number = Field(
        2.0,
        ge=0.01,
        le=1e6,
        description="about how many false incidents per week there may be for the site; fewer: less sensitive. The "
        "severity from which novelties are written as an incident follows from the incidents of the last weeks",
    )
    score: Number = Field(
        50.0,
        ge=0,
        le=100,
        description="for experts: novelties are written as an incident from this severity_score on, or from a higher "
        "one that `incidents.false_pages` asks for, ...",
    )
    series: Whole = Field(
        5,
        ge=1,
        le=10**9,
        description="... or if so many series are novel and `incidents.false_pages` asks for no higher one, or if a "
        "series has stopped",
    )
    together: Duration = Field(
        "1m", description="novelties of unrelated machines that show the same belong together if they begin so close"
    )
    related: Duration = Field(
        "3m", description="the same for a machine and the one that it runs on, as the topic `topology` says"
    )
    quiet: Duration = Field("5m", description="an incident is resolved when nothing has been novel for so long")
    reopen: Duration = Field(
        "5m", description="a novelty on its machines within this time after that reopens it; later ones are a new one"
    )
    silence: Length = Field(
        "5m",
        description="an incident tells that nothing is received when heartbeats have gone on for so long without a "
        "record: on all inputs together, or on one that stops alone",
    )
    longest: Length = Field("1d", description="a series without news for so long no longer keeps its incident open")
