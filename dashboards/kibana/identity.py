"""Ids of saved objects: the same for the same installation and space, whenever they are made.

Kibana gives an imported dashboard another id if a dashboard of another space has its id. So the space is part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid5

from dashboards.panels import Site

_NEWNORMAL = UUID("7b0f9a52-5d51-5c0a-9a63-5f0d4c9d1b4e")

DEFAULT_SPACE = "default"


@dataclass(frozen=True)
class Identity:
    """Makes ids.

    Args:
        site: The installation.
        space: Id of the Kibana space.
    """

    site: Site
    space: str = DEFAULT_SPACE

    def of(self, *names: object) -> str:
        """The id of what has these names, e.g. ``of("panel", "overview", "alarms")``."""
        return str(uuid5(_NEWNORMAL, "\0".join([self.space, self.site.alias, *map(str, names)])))
