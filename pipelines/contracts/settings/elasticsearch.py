"""The settings of Elasticsearch."""

from __future__ import annotations

from pydantic import Field

from pipelines.contracts.setting_types import Duration, Index, Url
from pipelines.contracts.settings.section import Section


class ElasticsearchSettings(Section):
    url: Url = Field(None, description="http://host:port of Elasticsearch; empty: the embedded one")
    index: Index = Field(
        "novelties",
        description="alias through which documents are read, and first part of the names of their indices; the "
        "namespace is put before it, e.g. `nab.novelties`",
    )
    incidents: Index = Field(
        "incidents", description="the same for incidents: alias and first part of the names of their indices"
    )
    refresh: Duration = Field("500ms", description="time until a new document can be found by a search")
