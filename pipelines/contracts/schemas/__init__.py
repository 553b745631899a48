"""Derives from the definition of a record its Elasticsearch mapping and its page of the docs."""

from pipelines.contracts.schemas.elasticsearch_mapping import mapping
from pipelines.contracts.schemas.markdown import errors_page, records_page, settings_page

__all__ = ["errors_page", "mapping", "records_page", "settings_page"]
