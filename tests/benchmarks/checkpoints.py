"""What checkpoints cost the extractor: measured by Spark's own times, and by a run whose checkpoint is in memory.

``newnormal bench checkpoints`` runs the extractor over the same columnar log four times in one warm session,
by turns with its checkpoint on the disk of the state directory, and in memory (``/dev/shm``).
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from deploy.embedded.services import embedded
from pipelines.contracts import topics
from pipelines.contracts.settings import load
from pipelines.jobs import chain as jobs
from tests.benchmarks.load import Load, write_columnar
from tests.benchmarks.queries import Queries, say, session

BATCHES, WARM = 20, 0.3
MEMORY = Path("/dev/shm")
NOTES = ("walCommit", "commitOffsets", "commitBatch")
"""Times of a micro-batch that Spark gives: planning and completing it in the checkpoint."""


def run(records: int, keys: int) -> dict[str, Any]:
    """Measures both ways.

    Args:
        records: Records that the extractor reads in each run.
        keys: Series that they are spread over.
    """
    with tempfile.TemporaryDirectory(prefix="newnormal-checkpoints-") as folder:
        asked = load(state_dir=Path(folder), namespace="checkpoints.")
        with embedded(asked, elasticsearch=False) as servers:
            settings = servers.settings(asked)
            with session(settings) as spark, tempfile.TemporaryDirectory(dir=MEMORY) as memory:
                on_disk = Queries(spark, settings, warm_up=40)
                in_memory = Queries(spark, settings.model_copy(update={"state_dir": Path(memory)}), warm_up=5)
                source = on_disk.topic(topics.TELEMETRY)
                log = Load.recent(records, keys)
                say(f"writing {records:,} records of {keys:,} series")
                write_columnar(on_disk.bootstrap, source, settings.kafka.partitions, log)
                rates: dict[str, list[float]] = {"disk": [], "memory": []}
                for turn in range(2):
                    for name, queries in (("disk", on_disk), ("memory", in_memory)):
                        rate = queries.ours(
                            f"{name}-{turn}", jobs.extractor(settings), records, records // BATCHES, WARM
                        )
                        rates[name].append(rate)
                noted = on_disk.durations
    disk, memory_rate = (statistics.mean(rates[name]) for name in ("disk", "memory"))
    notes = sum(noted.get(name, 0) for name in NOTES)
    return {
        "records": records,
        "keys": keys,
        "records_per_second": {name: [round(rate) for rate in found] for name, found in rates.items()},
        "slower_with_a_checkpoint_on_disk": round(1 - disk / memory_rate, 3),
        "share_of_notes_in_batch_time": round(notes / noted["triggerExecution"], 3),
        "share_of_state_commits_in_batch_time": round(noted["stateCommit"] / noted["triggerExecution"], 3),
    }
