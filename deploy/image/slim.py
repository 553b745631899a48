"""Deletes from an installation what a running Newnormal never reads: tests, headers, examples, unused parts of Spark.

The build of the image runs it before the code is there, so it uses nothing but the standard library.
"""

from __future__ import annotations

import platform
import shutil
import sys
import zipfile
from collections.abc import Iterator
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
    "pyspark/**/tests",
    "pyarrow/libarrow_flight*",
    "pyarrow/libarrow_python_flight*",
    "pyarrow/_flight*",
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
    "pyspark/jars/spark-hive*.jar",
    "pyspark/jars/hive-[!s]*.jar",
    "pyspark/jars/hive-s[!t]*.jar",  # but not hive-storage-api, which Spark's reader of ORC files needs
    "pyspark/jars/datanucleus-*.jar",
    "pyspark/jars/derby*.jar",
    "pyspark/jars/spark-yarn_*.jar",
    "pyspark/examples",
    "pyspark/data",
)
"""Globs under the folder of packages."""


_NATIVE = (".so", ".dll", ".jnilib")
_MACHINES = {"x86_64": "linux64", "aarch64": "linux-aarch64"}
"""How the jar of RocksDB names the machines that the image is built for."""


def unused(packages: Path) -> Iterator[Path]:
    """The files and folders under a folder of packages that can go."""
    for pattern in UNUSED:
        yield from sorted(packages.glob(pattern))


def keep_one_machine(jar: Path, machine: str) -> None:
    """Deletes from a jar the native libraries of all machines but one; classes stay.

    Args:
        jar: The jar of RocksDB, which holds libraries for fourteen machines.
        machine: As `platform.machine` says it; for one that is not known, the jar stays as it is.
    """
    mine = _MACHINES.get(machine)
    if mine is None:
        return
    part = jar.with_suffix(".part")
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            if not entry.filename.endswith(_NATIVE) or entry.filename.endswith(f"-{mine}.so"):
                new.writestr(entry, old.read(entry))
    part.replace(jar)


def main(root: Path) -> None:
    """Deletes what is not used from the virtual environment ``root``, and says how much that was."""
    freed = 0
    for packages in root.glob("lib/python3*/site-packages"):
        for path in unused(packages):
            if path.is_dir():
                freed += sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
                shutil.rmtree(path)
            elif path.exists():
                freed += path.stat().st_size
                path.unlink()
        for jar in packages.glob("pyspark/jars/rocksdbjni-*.jar"):
            before = jar.stat().st_size
            keep_one_machine(jar, platform.machine())
            freed += before - jar.stat().st_size
    print(f"{freed >> 20} MB deleted that are never read")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
