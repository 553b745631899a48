"""A real HDFS: a name node and a data node of Hadoop in one JVM, from Hadoop's own artifact for tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from deploy.artifacts import ArtifactSet, ensure
from deploy.ivy import Artifact

_MINICLUSTER = Artifact("org.apache.hadoop", "hadoop-client-minicluster", "3.5.0")
_HADOOP = ArtifactSet("hdfs", "3.5.0", 56_000_000, (_MINICLUSTER,))
"""The version is that of the Hadoop that PySpark brings, whose classes it needs."""


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """The address of an HDFS that lives as long as the block, with its data in a folder."""
    conf = SparkConf(loadDefaults=False).set("spark.driver.memory", "512m")
    conf.set("spark.driver.extraClassPath", ":".join(map(str, ensure(_HADOOP).glob("*.jar"))))
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    gateway = launch_gateway(conf, output)  # type: ignore[no-untyped-call]
    try:
        configuration = gateway.jvm.org.apache.hadoop.conf.Configuration()
        configuration.set("hdfs.minidfs.basedir", str(folder))
        builder = getattr(gateway.jvm.org.apache.hadoop.hdfs, "MiniDFSCluster$Builder")(configuration)
        cluster = builder.numDataNodes(1).build()
        cluster.waitActive()
        yield str(cluster.getURI().toString())
    finally:
        gateway.proc.stdin.close()
        gateway.proc.kill()
        gateway.proc.wait()
