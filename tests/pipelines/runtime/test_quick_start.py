"""Commands that only look at what is stored answer at once: they load neither Spark nor pandas."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from pipelines.contracts.settings import load
from pipelines.jobs.chain import JOBS
for job in JOBS.values():
    job(load())
print(*sorted({"pandas", "pyspark", "fastapi"} & sys.modules.keys()))
"""


def test_the_definitions_of_all_jobs_load_neither_spark_nor_pandas() -> None:
    """`newnormal savepoint show` reads them; pandas, which Arrow loads for a list, costs it a third of a second."""
    found = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.split() == []
