"""What differs between installations: names of the indices, and the versions that are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from dashboards.panels.query import Group, Groups, InIndices
from engine.spec.record import Record
from pipelines.contracts.records import Change, Incident, Novelty
from pipelines.contracts.schemas.elasticsearch_mapping import mapping
from pipelines.contracts.version_names import FIRST

Data = Literal["novelties", "written", "versions", "incidents", "changes"]
"""`novelties`: of the version that readers see; `written`: the same by the time of writing; `versions`: of all."""

_OWN: dict[Data, type[Record]] = {"incidents": Incident, "changes": Change}
"""The data that are no novelties, and the type of their records."""

ALL_DATA: tuple[Data, ...] = get_args(Data)


@dataclass(frozen=True)
class Site:
    """The names of one installation.

    Args:
        alias: The alias through which novelties are read, with the namespace before it.
        versions: The versions of the chain that are compared.
        incidents: The alias through which incidents are read, with the namespace before it.
        window: Distance of the windows that are judged, as a duration of one unit such as ``10s``.
        changes: The alias through which changes of the site are read, with the namespace before it.
    """

    alias: str = "novelties"
    versions: tuple[str, ...] = (FIRST, "v2")
    incidents: str = "incidents"
    window: str = "10s"
    changes: str = "changes"

    def indices(self, data: Data) -> str:
        """The alias or the pattern of the indices of some data."""
        if data in _OWN:
            return self.incidents if data == "incidents" else self.changes
        return f"{self.alias}-*" if data == "versions" else self.alias

    def time_field(self, data: Data) -> str:
        """The field by which the time range of a dashboard selects documents."""
        return "event.ingested" if data == "written" else "@timestamp"

    def title(self, data: Data) -> str:
        """The name under which users find the data."""
        if data in _OWN:
            return f"Newnormal {self.indices(data)}"
        words = {"novelties": "", "written": ", by time of writing", "versions": ", all versions"}
        return f"Newnormal {self.alias}{words[data]}"

    def groups(self, title: str) -> Groups:
        """The compared versions as groups, told apart by the names of their indices."""
        return Groups(tuple(Group(version, (InIndices(self._patterns(version)),)) for version in self.versions), title)

    def _patterns(self, version: str) -> tuple[str, ...]:
        base = self.alias if version == FIRST else f"{self.alias}-{version}"
        return f"{base}-1*", f"{base}-2*"  # what follows is a year: indices of v1 are not taken for those of others


@cache
def field_types(data: Data) -> Mapping[str, str]:
    """The Elasticsearch type of each field of some data, by its dotted name; fields of open objects are left out."""
    record = _OWN.get(data, Novelty)
    types = dict(_flat(mapping(record)["properties"], ""))
    return types | {name: types[path] for name, path in getattr(record, "also_found_as", {}).items()}


def _flat(properties: Mapping[str, dict[str, object]], prefix: str) -> list[tuple[str, str]]:
    fields: list[tuple[str, str]] = []
    for name, field in properties.items():
        inner = field.get("properties")
        if isinstance(inner, Mapping):
            fields += _flat(inner, f"{prefix}{name}.")
        elif field["type"] != "object":
            fields.append((prefix + name, str(field["type"])))
    return fields
