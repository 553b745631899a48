"""The public test kit: runs a job on records, watermarks and clocks in milliseconds, without Spark or Kafka.

    stream = TestStream(T0).add(record, ABORT, record).advance_watermark("10s").advance_clock("5s").add(late)
    assert run(job, stream, on="operator").rows == run(job, stream, on="reference").rows

`ABORT` between two records kills the job before the current micro-batch is committed: its output is lost, and it is
repeated. `RESTART` stops and restores the job. Neither changes any result.
"""

from engine.testing.driven import Driven
from engine.testing.runners import RUNNERS, Run, bounded, run, run_all
from engine.testing.scripted_stream import ABORT, RESTART, Batch, Sentinel, TestStream

__all__ = [
    "ABORT",
    "RESTART",
    "RUNNERS",
    "Batch",
    "Driven",
    "Run",
    "Sentinel",
    "TestStream",
    "bounded",
    "run",
    "run_all",
]
