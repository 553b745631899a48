"""Spark's Python daemon with the libraries already imported: a forked worker is ready at once, not after seconds.

Named by ``spark.python.daemon.module``. Imports only: nothing that starts a thread may run before the fork.
"""

import numpy  # noqa: F401
import pandas  # noqa: F401
import polars  # noqa: F401
import pyspark.sql.pandas.serializers
import pyspark.sql.streaming.proto.StateMessage_pb2
import pyspark.sql.streaming.stateful_processor_api_client
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import engine.spark.query  # noqa: F401

if __name__ == "__main__":
    manager()
