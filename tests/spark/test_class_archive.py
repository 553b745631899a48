"""Spark starts from the archive of its classes that ``make setup`` makes, and starts without one that does not fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from deploy.artifacts import spark_jars
from engine.spark import class_archive

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

COUNTING = """
import sys
from pathlib import Path
from deploy.artifacts import spark_jars
from deploy.java import java_home
from engine.spark import class_archive
from engine.spark.session import StartingSpark, end
folder = Path(sys.argv[1])
jars = spark_jars()
options = [*class_archive.reading(jars), f"-Xlog:class+load:file={folder}/classes.log"]
session = StartingSpark(jars, java_home(), folder, "1g", folder / "spark.log", options).session(2)
print(session.range(10).count())
end(session)
"""
"""Starts Spark in a process of its own, with a list of the classes that its JVM loads and where each comes from."""


def _start(folder: Path) -> tuple[str, int, int]:
    """What the query gave, the number of classes from the archive, and that of classes from jars."""
    words = [sys.executable, "-c", COUNTING, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280, check=True)
    lines = (folder / "classes.log").read_text().splitlines()
    return done.stdout.strip(), sum("shared objects file (top)" in e for e in lines), sum(".jar" in e for e in lines)


def test_spark_takes_nearly_all_its_classes_from_the_archive(tmp_path: Path) -> None:
    assert class_archive.place(spark_jars()).is_file(), "`make setup` makes the archive"
    counted, archived, read = _start(tmp_path)
    assert counted == "10"
    assert archived > 5 * read
    assert archived > 5_000


def test_spark_starts_without_an_archive_that_is_not_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    other = tmp_path / "an other.jsa"  # Spark divides its options at blanks
    other.write_bytes(b"no archive" * 1000)
    (tmp_path / "sitecustomize.py").write_text(
        "from pathlib import Path\nimport engine.spark.class_archive as a\n"
        f"a.place = lambda jars: Path({str(other)!r})\n"
    )
    counted, archived, read = _start(tmp_path)
    assert (counted, archived) == ("10", 0)
    assert read > 1_000
