"""An archive of Spark's classes is named by the jars that it was made with: the JVM uses it with no others."""

from __future__ import annotations

import os
from pathlib import Path

from engine.spark import class_archive


def test_with_jars_that_have_moved_or_changed_there_is_no_archive_until_it_is_made_anew(tmp_path: Path) -> None:
    jar, moved = tmp_path / "a.jar", tmp_path / "b.jar"
    jar.write_bytes(b"classes")
    os.utime(jar, ns=(1, 1))
    archive = class_archive.place([jar])
    assert class_archive.place([jar]) == archive
    jar.rename(moved)
    assert class_archive.place([moved]) != archive
    moved.rename(jar)
    assert class_archive.place([jar]) == archive
    jar.write_bytes(b"other classes")
    os.utime(jar, ns=(1, 1))
    assert class_archive.place([jar]) != archive
    jar.write_bytes(b"CLASSES")
    os.utime(jar, ns=(2, 2))
    assert class_archive.place([jar]) != archive, "the JVM compares times, and no contents"
    assert class_archive.reading([jar]) == [], "none was made"
