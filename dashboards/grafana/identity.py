"""Uids of dashboards and data sources: the same for the same installation, whenever they are made."""

from __future__ import annotations

from uuid import UUID, uuid5

from dashboards.panels import Site

_NEWNORMAL = UUID("2a1de7a4-0c0e-5ac4-9c0b-8a7f3c1d5e60")


def uid(site: Site, *names: str) -> str:
    """The uid of what has these names, e.g. ``uid(site, "data source", "novelties")``."""
    return str(uuid5(_NEWNORMAL, "\0".join([site.alias, *names])))
