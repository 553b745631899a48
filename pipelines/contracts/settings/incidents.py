"""The settings of incidents."""

from __future__ import annotations

from pydantic import Field

from pipelines.contracts.setting_types import Duration, Length, Number, Whole
from pipelines.contracts.settings.section import Section


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
