"""The record types that Kafka topics carry, each defined once."""

from pipelines.contracts.records.change import Change
from pipelines.contracts.records.features import Features
from pipelines.contracts.records.incident import Incident
from pipelines.contracts.records.label import Label
from pipelines.contracts.records.log import Log
from pipelines.contracts.records.log_features import LogFeatures
from pipelines.contracts.records.news import News
from pipelines.contracts.records.novelty import Novelty
from pipelines.contracts.records.rule import Rule
from pipelines.contracts.records.series_state import SeriesState
from pipelines.contracts.records.site_messages import ALL_INPUTS, Acknowledgement, InferredPlacement, Placement, Silence
from pipelines.contracts.records.telemetry import Telemetry

ALL = (
    Telemetry,
    Log,
    Features,
    LogFeatures,
    Novelty,
    SeriesState,
    News,
    Incident,
    Rule,
    Label,
    Placement,
    InferredPlacement,
    Acknowledgement,
    Change,
)

__all__ = [
    "ALL",
    "ALL_INPUTS",
    "Acknowledgement",
    "Change",
    "Features",
    "Incident",
    "InferredPlacement",
    "Label",
    "Log",
    "LogFeatures",
    "News",
    "Novelty",
    "Placement",
    "Rule",
    "SeriesState",
    "Silence",
    "Telemetry",
]
