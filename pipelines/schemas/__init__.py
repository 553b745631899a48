"""What derives from a record's one definition: its Spark schema, its Elasticsearch mapping, its page of the docs."""

from pipelines.schemas.elasticsearch import mapping
from pipelines.schemas.markdown import records_page, settings_page
from pipelines.schemas.spark import spark_schema

__all__ = ["mapping", "records_page", "settings_page", "spark_schema"]
