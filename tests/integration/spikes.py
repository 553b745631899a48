"""A small site that is quiet but for one VM, which is far busier than it was for three minutes, once or twice."""

from __future__ import annotations

from typing import Any

from datagen.kafka_writer import KafkaWriter
from datagen.simulator import SimulatorConfig, simulate
from datagen.simulator.incidents import InjectedIncident
from datagen.sinks import KafkaSink
from tests.integration.conftest import Pipeline

MINUTE = 60_000
SPIKES = 30, 65
"""The minutes in which a surge begins."""


def send_minutes(pipeline: Pipeline, start: int, begin: int, end: int) -> str:
    """Sends some minutes of the site; returns the name of the VM.

    Args:
        pipeline: To whose topics they are sent.
        start: The first instant of minute 0, epoch milliseconds.
        begin: The first minute.
        end: The minute before which it ends.
    """
    spikes = tuple(
        InjectedIncident("spike", 2, start + at * MINUTE, start + (at + 3) * MINUTE, size=4.0) for at in SPIKES
    )
    shape: dict[str, Any] = {"hosts": 2, "vms": 3, "spare": 0, "metrics": 6, "step": 10_000, "seed": 3}
    quiet = {"incident_rate": 0.0, "skewed": 0.0, "late": 0.0, "delayed": 0.0, "missing": 0.0, "log_rate": 0.2}
    span: dict[str, Any] = {"start": start + begin * MINUTE, "backfill": (end - begin) * MINUTE, "duration": 0}
    site = SimulatorConfig(**shape, **quiet, **span, incidents=spikes)
    with KafkaWriter(pipeline.settings.kafka.bootstrap or "") as writer:
        simulate(site, KafkaSink(writer, pipeline.settings.namespace))
    return site.topology.names[2]
