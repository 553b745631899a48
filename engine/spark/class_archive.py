"""The archive of Spark's classes: with it Spark's JVM starts with about three fifths of the CPU time.

A JVM that starts without it reads, checks and links some 20,000 classes from jars. With the archive (class data
sharing, JEP 350) it maps them from one file. The JVM itself compares the file with its own version and with the jars,
and goes on without it if they differ, so an archive changes nothing but the time. It says nothing of it, so the file
is named by the jars: one for others counts as none. `deploy.class_archive` makes it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from hashlib import sha1
from pathlib import Path

import pyspark

from engine.spark.java_options import OPTIMIZES


def place(jars: Sequence[Path]) -> Path:
    """The file of the archive for some jars, in the environment of this Python, as those of its PySpark belong to it.

    Args:
        jars: All but those of PySpark; the JVM wants them where they were, as large and as old.
    """
    stamps = [(str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars]
    name = f"spark-{pyspark.__version__}-{sha1(repr(stamps).encode()).hexdigest()[:12]}.jsa"
    return Path(sys.prefix) / "share" / "newnormal" / name


def reading(jars: Sequence[Path]) -> Sequence[str]:
    """Options for a JVM that uses the archive for some jars; none if there is no archive."""
    file = place(jars)
    # a JVM that cannot use the archive would say so on the terminal
    return [f"-XX:SharedArchiveFile={file}", "-Xlog:cds*=off"] if file.is_file() else []


def recording(file: Path) -> Sequence[str]:
    """Options for a JVM that writes an archive of all classes it has loaded, when it ends."""
    return [f"-XX:ArchiveClassesAtExit={file}", "-Xlog:cds*=off", *OPTIMIZES["never"]]
