"""The Elasticsearch writer: each document stored once, in its last revision, or returned. Knows no Spark."""

from pipelines.jobs.index.document import Rejected, SinkDocument, SinkOutcome
from pipelines.jobs.index.sink import Sink, SinkConfig, SinkStoppedError

__all__ = ["Rejected", "Sink", "SinkConfig", "SinkDocument", "SinkOutcome", "SinkStoppedError"]
