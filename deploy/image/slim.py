"""Deletes from an installation what a running Newnormal never reads: tests, headers, examples, unused parts of Spark.

The build of the image runs it before the code is there, so it uses nothing but the standard library.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

UNUSED = (
    # tests and headers of packages
    "pandas/tests",
    "pyarrow/tests",
    "pyarrow/include",
    "matplotlib/tests",
    "mpl_toolkits/*/tests",
    "scipy/**/tests",
    "numpy/**/tests",
    "pyspark/**/tests",
    # Spark: the shell of Spark Connect, examples, and drivers of cluster managers, which a cluster has in its own image
    "pyspark/jars/connect-repl",
    "pyspark/jars/spark-kubernetes_*.jar",
    "pyspark/jars/kubernetes-*.jar",
    "pyspark/jars/spark-yarn_*.jar",
    "pyspark/examples",
    "pyspark/data",
)
"""Globs under the folder of packages."""


def unused(packages: Path) -> Iterator[Path]:
    """The files and folders under a folder of packages that can go."""
    for pattern in UNUSED:
        yield from sorted(packages.glob(pattern))


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
    print(f"{freed >> 20} MB deleted that are never read")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
