"""The sink: stores each document in Elasticsearch once, in its last revision, or returns it as rejected."""

from pipelines.jobs.sink.document import Rejected, SinkDocument, SinkOutcome
from pipelines.jobs.sink.sink import Sink, SinkConfig, SinkStoppedError

__all__ = ["Rejected", "Sink", "SinkConfig", "SinkDocument", "SinkOutcome", "SinkStoppedError"]
