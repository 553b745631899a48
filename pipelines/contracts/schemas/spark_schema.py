"""Derives the Spark schema of a record from its definition; needs no Spark session."""

from __future__ import annotations

from functools import cache

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from engine.spec.record import Record


@cache
def spark_schema(record: type[Record]) -> StructType:
    """The columns of a record type as a Spark schema; dictionary-encoded text becomes a plain string.

    >>> from pipelines.contracts.records import Telemetry
    >>> spark_schema(Telemetry).simpleString()
    'struct<time:bigint,entity:string,metric:string,value:double,kind:string>'
    """
    return from_arrow_schema(record.arrow_schema())
