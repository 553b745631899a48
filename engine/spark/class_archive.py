"""The archive of Spark's classes: with it Spark's JVM starts with about three fifths of the CPU time.

A JVM that starts without it reads, checks and links some 20,000 classes from jars. With the archive (class data
sharing, JEP 350) it maps them from one file. The JVM itself compares the file with its own version and with the jars,
and goes on without it if they differ, so an archive changes nothing but the time. `deploy.class_archive` makes it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pyspark

from engine.spark.java_options import OPTIMIZES


def place() -> Path:
    """The file of the archive: in the environment of this Python, as it belongs to the jars of its PySpark."""
    return Path(sys.prefix) / "share" / "newnormal" / f"spark-{pyspark.__version__}-bounded.jsa"


def reading() -> Sequence[str]:
    """Options for a JVM that uses the archive; none if there is no archive."""
    # a JVM that cannot use the archive would say so on the terminal
    return [f"-XX:SharedArchiveFile={place()}", "-Xlog:cds*=off"] if place().is_file() else []


def recording(file: Path) -> Sequence[str]:
    """Options for a JVM that writes an archive of all classes it has loaded, when it ends."""
    return [f"-XX:ArchiveClassesAtExit={file}", "-Xlog:cds*=off", *OPTIMIZES["never"]]
