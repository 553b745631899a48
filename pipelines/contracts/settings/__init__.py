"""All settings, in one tree of sections; sections of one subject share a file.

A value on the command line overrides the environment (NEWNORMAL_KAFKA__BOOTSTRAP, …), which overrides newnormal.toml,
which overrides the default. A wrong setting stops the start with a message that names it and what is accepted.
"""

from pipelines.contracts.settings.detection import DetectorSettings, IncidentSettings
from pipelines.contracts.settings.gateway import GatewaySettings
from pipelines.contracts.settings.loading import load
from pipelines.contracts.settings.notify import NotifySettings
from pipelines.contracts.settings.scores import ScoresSettings
from pipelines.contracts.settings.tree import LogSettings, Settings
from pipelines.contracts.settings.web_servers import AccessSettings, ConsoleSettings, ViewSettings

__all__ = [
    "AccessSettings",
    "ConsoleSettings",
    "DetectorSettings",
    "GatewaySettings",
    "IncidentSettings",
    "LogSettings",
    "NotifySettings",
    "ScoresSettings",
    "Settings",
    "ViewSettings",
    "load",
]
