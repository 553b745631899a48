"""Every record that crosses a Kafka topic, each defined once."""

from pipelines.records.features import Features
from pipelines.records.incident import Incident
from pipelines.records.label import Label
from pipelines.records.log import Log
from pipelines.records.log_features import LogFeatures
from pipelines.records.novelty import Novelty
from pipelines.records.rule import Rule
from pipelines.records.telemetry import Telemetry

ALL = (Telemetry, Log, Features, LogFeatures, Novelty, Incident, Rule, Label)

__all__ = ["ALL", "Features", "Incident", "Label", "Log", "LogFeatures", "Novelty", "Rule", "Telemetry"]
