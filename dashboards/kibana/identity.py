"""Ids of saved objects: the same for the same installation and space, whenever they are made.

Kibana gives an imported dashboard another id if a dashboard of another space has its id. So the space is part of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID, uuid5

from dashboards.panels import Site
from engine.spec.errors import NewnormalError

_NEWNORMAL = UUID("7b0f9a52-5d51-5c0a-9a63-5f0d4c9d1b4e")

DEFAULT_SPACE = "default"


@dataclass(frozen=True)
class Identity:
    """Makes ids.

    Args:
        site: The installation.
        space: Id of the Kibana space.

    Raises:
        NewnormalError: ``DASHBOARD_SPACE_UNKNOWN`` if no space can have this id.
    """

    site: Site
    space: str = DEFAULT_SPACE

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-zA-Z0-9_-]+", self.space):
            accepted = "the id of a space: letters, digits, _ and -"
            raise NewnormalError(
                "DASHBOARD_SPACE_UNKNOWN", f"{self.space!r} is no id", "--space", accepted, "nothing was done"
            )

    def of(self, *names: object) -> str:
        """The id of what has these names, e.g. ``of("panel", "overview", "alarms")``."""
        return str(uuid5(_NEWNORMAL, "\0".join([self.space, self.site.alias, *map(str, names)])))
