"""Spark's Python daemon with the libraries already imported, so that a forked worker is ready at once.

The setting ``spark.python.daemon.module`` names this module. It only imports: nothing that starts a thread may run
before the fork. Imported objects are frozen, since Spark collects garbage after each task, which would otherwise take
50 ms a task for walking through them.
"""

import gc
import importlib
import os
import sys

# Spark puts its own pyspark.zip first, whose sources are compiled anew in each process; the installed package is not.
# On one machine `engine.spark.interpreter` has left it out already; the Python of a cluster's machines is not ours.
sys.path.sort(key=lambda entry: entry.endswith("pyspark.zip"))


import numpy  # noqa: F401
import pandas  # noqa: F401
import polars  # noqa: F401
import pyspark.sql.pandas.serializers
import pyspark.sql.streaming.proto.StateMessage_pb2
import pyspark.sql.streaming.stateful_processor_api_client
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import engine.spark.query
import engine.spark.shard_task  # noqa: F401
from engine.spark.session import PRELOAD

if __name__ == "__main__":
    gc.disable()  # what is imported stays, and looking for garbage in it meanwhile takes a sixth of the time
    for module in filter(None, os.environ.get(PRELOAD, "").split(",")):
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    gc.enable()
    manager()
