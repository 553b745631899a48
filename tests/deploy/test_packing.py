"""The archive for machines of a Spark cluster: it has our code and what that needs, and works where it is unpacked."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from deploy.packing import needed, pack
from engine.spec.errors import NewnormalError


@pytest.mark.parametrize("ending", [".tar", ".tar.gz"])
def test_packages_and_code_are_found_where_the_archive_is_unpacked(tmp_path: Path, ending: str) -> None:
    file, there = tmp_path / f"packages{ending}", tmp_path / "there"
    pack(file, "typer")  # it requires a few small packages
    with tarfile.open(file) as archive:
        archive.extractall(there, filter="data")
    asked = (
        f"import sys; sys.path.insert(0, {str(there)!r}); import rich, models; print(rich.__file__, models.__file__)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(there / "rich/__init__.py"), str(there / "models/__init__.py")]
    mine = Path(__file__).parents[2]
    assert (there / "engine/spark/workers.py").read_bytes() == (mine / "engine/spark/workers.py").read_bytes()
    assert not list(there.glob("**/__pycache__")) and not (there / "tests").exists()


def test_further_folders_are_packed_by_the_names_that_are_given(tmp_path: Path) -> None:
    code, file = tmp_path / "code", tmp_path / "packages.tar"
    (code / "of a model").mkdir(parents=True)
    (code / "of a model/kernel.nbc").write_bytes(b"machine code")
    pack(file, "typer", also={"compiled": code})
    with tarfile.open(file) as archive:
        found = archive.extractfile("compiled/of a model/kernel.nbc")
        assert found is not None and found.read() == b"machine code"


def test_everything_that_the_jobs_import_is_packed_but_not_what_is_part_of_spark() -> None:
    names = {each.name.lower().replace("_", "-") for each in needed("newnormal")}
    assert {"numpy", "polars", "pyarrow", "confluent-kafka", "protobuf", "msgspec"} <= names
    assert not {"pyspark", "py4j", "pytest", "ruff"} & names


def test_another_ending_or_a_folder_that_is_not_there_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    for file in (tmp_path / "packages.rar", tmp_path / "absent" / "packages.tar"):
        with pytest.raises(NewnormalError, match="OUTPUT_NOT_WRITABLE"):
            pack(file, "typer")
    assert list(tmp_path.iterdir()) == []
