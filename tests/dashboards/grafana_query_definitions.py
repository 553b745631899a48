"""The queries of Grafana's data sources Elasticsearch and Prometheus, so far as the dashboards use them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


Number = Annotated[str, StringConstraints(pattern=r"^\d+$")]
Percent = Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)?$")]


class Source(_Strict):
    """A data source, by its uid, or the variable that chooses one."""

    type: Literal["elasticsearch", "prometheus"]
    uid: Annotated[str, StringConstraints(min_length=1)]


class Count(_Strict):
    """The number of documents."""

    id: Number
    type: Literal["count"]


class OfField(_Strict):
    """A number that is computed from a field."""

    id: Number
    type: Literal["max", "min", "avg", "cardinality"]
    field: str


class PercentileSettings(_Strict):
    """Which percentiles."""

    percents: Annotated[list[Percent], Field(min_length=1)]


class Percentiles(_Strict):
    """Percentiles of a field."""

    id: Number
    type: Literal["percentiles"]
    field: str
    settings: PercentileSettings


class Size(_Strict):
    """How many documents."""

    size: Number


class RawData(_Strict):
    """The documents themselves."""

    id: Number
    type: Literal["raw_data"]
    settings: Size


class HistogramSettings(_Strict):
    """How long a bucket is."""

    interval: str
    min_doc_count: Number
    trimEdges: Number  # noqa: N815  names are Grafana's


class DateHistogram(_Strict):
    """One bucket for each interval of time."""

    id: Number
    type: Literal["date_histogram"]
    field: str
    settings: HistogramSettings


class TermsSettings(_Strict):
    """Which values of a field have a bucket."""

    size: Number
    order: Literal["asc", "desc"]
    orderBy: str  # noqa: N815
    min_doc_count: Number
    missing: str | None = None


class Terms(_Strict):
    """One bucket for each value of a field."""

    id: Number
    type: Literal["terms"]
    field: str
    settings: TermsSettings


class NamedFilter(_Strict):
    """A bucket for the documents that a query finds."""

    query: str
    label: str


class FiltersSettings(_Strict):
    """Which queries have a bucket."""

    filters: Annotated[list[NamedFilter], Field(min_length=1)]


class Filters(_Strict):
    """One bucket for each query."""

    id: Number
    type: Literal["filters"]
    settings: FiltersSettings


Metric = Annotated[Count | OfField | Percentiles | RawData, Field(discriminator="type")]
Bucket = Annotated[DateHistogram | Terms | Filters, Field(discriminator="type")]


class ElasticsearchQuery(_Strict):
    """A query of the Elasticsearch data source (`ElasticsearchDataQuery`)."""

    refId: str  # noqa: N815
    datasource: Source
    query: Annotated[str, StringConstraints(min_length=1)]
    alias: str
    timeField: str  # noqa: N815
    metrics: Annotated[list[Metric], Field(min_length=1)]
    bucketAggs: list[Bucket]  # noqa: N815

    @model_validator(mode="after")
    def _joined(self) -> ElasticsearchQuery:
        metrics: dict[str, Any] = {each.id: each for each in self.metrics}
        ids = [each.id for each in (*self.metrics, *self.bucketAggs)]
        if len(set(ids)) < len(ids):
            raise ValueError("each metric and each bucket has an id of its own")
        documents = any(each.type == "raw_data" for each in self.metrics)
        if documents == bool(self.bucketAggs):
            raise ValueError("a query has buckets, or asks for documents")
        for bucket in self.bucketAggs[:-1]:
            if bucket.type == "date_histogram":
                raise ValueError("time is the innermost bucket, or Grafana makes a table of the answer")
        for bucket in self.bucketAggs:
            by = bucket.settings.orderBy if isinstance(bucket, Terms) else "_term"
            if by not in ("_term", "_key", "_count") and by not in metrics:
                raise ValueError(f"the buckets {bucket.id} are ordered by {by}, which is no metric")
        return self


class PrometheusQuery(_Strict):
    """A query of the Prometheus data source (`PrometheusDataQuery`)."""

    refId: str  # noqa: N815
    datasource: Source
    expr: Annotated[str, StringConstraints(min_length=1)]
    legendFormat: str  # noqa: N815
    editorMode: Literal["code", "builder"]  # noqa: N815
    range: bool
    instant: bool

    @model_validator(mode="after")
    def _asks(self) -> PrometheusQuery:
        if not (self.range or self.instant):
            raise ValueError("a query asks for a range or for an instant")
        return self
