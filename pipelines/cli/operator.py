"""What writes the messages of operators who use the console of a running pipeline."""

from __future__ import annotations

from engine.clock import now_ms
from pipelines.contracts.settings import Settings
from pipelines.query.operator import Operator


def operator(settings: Settings) -> Operator:
    """Writes to the topics of a pipeline, as of now.

    Args:
        settings: The settings of the pipeline, with the address of Kafka filled in.
    """
    return Operator(lambda: settings, now_ms)
