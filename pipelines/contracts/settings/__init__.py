"""All settings, in one tree of sections; each section has a file.

A value on the command line overrides the environment (NEWNORMAL_KAFKA__BOOTSTRAP, …), which overrides newnormal.toml,
which overrides the default. A wrong setting stops the start with a message that names it and what is accepted.
"""

from pipelines.contracts.settings.access import AccessSettings
from pipelines.contracts.settings.console import ConsoleSettings
from pipelines.contracts.settings.detector import DetectorSettings
from pipelines.contracts.settings.elasticsearch import ElasticsearchSettings
from pipelines.contracts.settings.embedded import EmbeddedSettings
from pipelines.contracts.settings.engine import EngineSettings
from pipelines.contracts.settings.gateway import GatewaySettings
from pipelines.contracts.settings.incidents import IncidentSettings
from pipelines.contracts.settings.kafka import KafkaSettings
from pipelines.contracts.settings.loading import load
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.contracts.settings.retention import RetentionSettings
from pipelines.contracts.settings.tree import ArchiveSettings, BufferSettings, LogSettings, Settings
from pipelines.contracts.settings.view import ViewSettings
from pipelines.contracts.settings.watermark import WatermarkSettings
from pipelines.contracts.settings.window import WindowSettings

__all__ = [
    "AccessSettings",
    "ArchiveSettings",
    "BufferSettings",
    "ConsoleSettings",
    "DetectorSettings",
    "ElasticsearchSettings",
    "EmbeddedSettings",
    "EngineSettings",
    "GatewaySettings",
    "IncidentSettings",
    "KafkaSettings",
    "LogSettings",
    "NotifySettings",
    "RetentionSettings",
    "Settings",
    "ViewSettings",
    "WatermarkSettings",
    "WindowSettings",
    "load",
]
