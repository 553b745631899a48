"""The Elasticsearch writer: each document stored once, in its last revision, or returned. Knows no Spark."""

from pipelines.sink.document import Outcome, Rejected, SinkDocument
from pipelines.sink.sink import Sink, SinkConfig, SinkStoppedError

__all__ = ["Outcome", "Rejected", "Sink", "SinkConfig", "SinkDocument", "SinkStoppedError"]
