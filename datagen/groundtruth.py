"""The ground truth: the injected incidents, one row for each machine that an incident affects."""

from __future__ import annotations

import json
from typing import ClassVar, Literal, get_args

from pydantic import Field

from engine.spec.record import Instant, Record

Anomaly = Literal["spike", "outage", "leak", "stuck", "latency", "log_storm", "new_message", "degradation"]
StateChange = Literal["vms_added", "release", "migration", "load_shift", "fleet_shift"]
IncidentType = Literal[Anomaly, StateChange]
ANOMALIES: tuple[str, ...] = get_args(Anomaly)
STATE_CHANGES: tuple[str, ...] = get_args(StateChange)


class GroundTruth(Record):
    """What really happened to one machine: a line of the ground truth file, a message of the topic `groundtruth`."""

    identity: ClassVar[tuple[str, ...]] = ("id",)

    id: str = Field(description="the incident and the machine")
    incident: str = Field(description="the incident; several machines may share one")
    type: IncidentType = Field(description="what happened")
    cls: Literal["anomaly", "state_change"] = Field(alias="class", description="wrong, or another normal")
    entity: str = Field(description="the machine touched, as in host.name")
    metrics: list[str] = Field(description="its metrics that show it; `logs` for its log lines")
    start: Instant = Field(description="first instant that differs")
    end: Instant = Field(description="anomaly: first instant after it; state change: until when it is news")

    def line(self) -> str:
        """The row as one line of JSON."""
        return json.dumps(self.model_dump(by_alias=True), separators=(",", ":"))
