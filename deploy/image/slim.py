"""Deletes from an installation what a running Newnormal never reads: tests, headers, other machines' libraries.

The build of the image runs it before the code is there, so it uses nothing but the standard library.
"""

from __future__ import annotations

import platform
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

UNUSED = (
    # tests and headers of packages
    "pandas/tests",
    "pyarrow/tests",
    "pyarrow/include",
    "pyarrow/includes",
    "pyarrow/src",
    "pyarrow/*.p[xy][dxi]",
    "matplotlib/tests",
    "mpl_toolkits/*/tests",
    "scipy/**/tests",
    "numpy/**/tests",
    "numba/tests",
    "llvmlite/tests",
    "pyspark/**/tests",
    "pyarrow/libarrow_flight*",
    "pyarrow/libarrow_python_flight*",
    "pyarrow/_flight*",
    "pyarrow/libarrow_s3*",
    "pyarrow/_s3fs*",
    # Spark: the server and shell of Spark Connect, machine learning, graphs, Hive, examples, and the client of YARN
    "pyspark/jars/connect-repl",
    "pyspark/jars/spark-connect_*.jar",
    "pyspark/jars/scala-compiler-*.jar",
    "pyspark/jars/spark-mllib*.jar",
    "pyspark/jars/spark-graphx_*.jar",
    "pyspark/jars/breeze*.jar",
    "pyspark/jars/spire*.jar",
    "pyspark/jars/cats-kernel_*.jar",
    "pyspark/jars/algebra_*.jar",
    "pyspark/jars/JTransforms-*.jar",
    "pyspark/jars/arpack*.jar",
    "pyspark/jars/lapack-*.jar",
    "pyspark/jars/spark-hive*.jar",
    "pyspark/jars/hive-[!s]*.jar",
    "pyspark/jars/hive-s[!t]*.jar",  # but not hive-storage-api, which Spark's reader of ORC files needs
    "pyspark/jars/datanucleus-*.jar",
    "pyspark/jars/derby*.jar",
    "pyspark/jars/spark-yarn_*.jar",
    "pyspark/examples",
    "pyspark/data",
    "pyspark/jars/netty-*-osx-*.jar",
    "pyspark/jars/netty-*-windows-*.jar",
    "pyspark/jars/netty-*-riscv64.jar",
    # Elasticsearch: the ciphers of tools that install plugins and make certificates
    "elasticsearch-*/*/lib/tools/*/*-bc-*.jar",
    "elasticsearch-*/*/lib/tools/*/bc*-jdk18on-*.jar",
)
"""Globs under the folder of packages, or that of the jars that Newnormal has downloaded."""

FOLDERS = ("lib/python3*/site-packages", "newnormal/jvm")
"""These folders, as globs under a virtual environment or a cache."""

_WITH_LIBRARIES = ("rocksdbjni-*", "zstd-jni-*", "snappy-java-*", "lz4-java-*", "leveldbjni-*")
"""Jars with native libraries for many machines."""
_LIBRARY = (".so", ".dll", ".jnilib", ".dylib", ".a")
_MACHINES = {"x86_64": r"(64|amd64|x86_64)", "aarch64": "aarch64"}
"""How these jars name the machines that the image is built for."""


def unused(folder: Path) -> Iterator[Path]:
    """The files and folders under one of `FOLDERS` that can go."""
    for pattern in UNUSED:
        yield from sorted(folder.glob(pattern))


def keep_one_machine(jar: Path, machine: str) -> None:
    """Deletes from a jar the native libraries of all machines but one; classes stay.

    Args:
        jar: One of those with libraries for many machines.
        machine: As `platform.machine` says it; for one that is not known, the jar stays as it is.
    """
    if machine not in _MACHINES:
        return
    mine = re.compile(rf"linux[-/]?{_MACHINES[machine]}[./]", re.IGNORECASE)
    part = jar.with_suffix(".part")
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            if not entry.filename.endswith(_LIBRARY) or mine.search(entry.filename):
                new.writestr(entry, old.read(entry))
    part.replace(jar)


def main(root: Path) -> None:
    """Deletes what is not used from a virtual environment or a cache, and says how much that was."""
    freed = 0
    for folder in chain.from_iterable(map(root.glob, FOLDERS)):
        for path in unused(folder):
            if path.is_dir():
                freed += sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
                shutil.rmtree(path)
            elif path.exists():
                freed += path.stat().st_size
                path.unlink()
        for jar in chain.from_iterable(folder.rglob(f"{name}.jar") for name in _WITH_LIBRARIES):
            before = jar.stat().st_size
            keep_one_machine(jar, platform.machine())
            freed += before - jar.stat().st_size
    print(f"{freed >> 20} MB deleted that are never read")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
