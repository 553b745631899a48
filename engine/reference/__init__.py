"""The reference interpreter of a job: the specification of what windows, watermarks and revisions mean.

Slow and obvious on purpose: dicts and lists, one record at a time, everything kept for ever, no arrays and no Spark.
The sharded operator must give the same results; `tests/engine` holds the one against the other.
"""

from engine.reference.interpreter import Arrival, Outcome, Silence, Vouched, interpret, step_by_step
from engine.spec.operator import Reference, Row

__all__ = ["Arrival", "Outcome", "Reference", "Row", "Silence", "Vouched", "interpret", "step_by_step"]
