"""Derives from the definition of a record its Spark schema, its Elasticsearch mapping and its page of the docs."""

from pipelines.contracts.schemas.elasticsearch_mapping import mapping
from pipelines.contracts.schemas.markdown import errors_page, records_page, settings_page
from pipelines.contracts.schemas.spark_schema import spark_schema

__all__ = ["errors_page", "mapping", "records_page", "settings_page", "spark_schema"]
