"""The Elasticsearch writer: each document stored once, in its last revision, or returned. Knows no Spark."""

from pipelines.jobs.index.document import Outcome, Rejected, SinkDocument
from pipelines.jobs.index.sink import Sink, SinkConfig, SinkStoppedError

__all__ = ["Outcome", "Rejected", "Sink", "SinkConfig", "SinkDocument", "SinkStoppedError"]
