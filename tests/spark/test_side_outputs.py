"""Side outputs through Spark: all cases in one query, which nothing interrupts."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from engine.testing import run_all
from tests.engine.test_side_outputs import CASES, stream

pytestmark = pytest.mark.spark


def test_what_is_given_aside_goes_to_its_output_only(spark: SparkSession) -> None:
    runs = run_all([(job(), stream().crashing({})) for job, _ in CASES.values()], "spark", shards=2)
    for (_, expected), got in zip(CASES.values(), runs, strict=True):
        expected(got)
