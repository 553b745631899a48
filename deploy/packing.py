"""Packs the code of Newnormal and the packages that it needs into one archive, for the machines of a Spark cluster.

Spark unpacks the archive on each machine, and its Python workers find the packages there. The interpreter must be there
already, of the same minor version and for the same kind of processor; PySpark is part of Spark itself. Nothing is
compiled or moved: the files are those of this installation, and folders that are named.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from deploy.image.dependencies import dependencies
from engine.spec.errors import NewnormalError

ENDINGS = (".tar", ".tar.gz", ".tgz")
CODE = ("engine", "models", "pipelines", "deploy", "dashboards", "datagen")
"""Our own packages, which lie beside one another."""
OF_SPARK = frozenset({"pyspark", "py4j"})
"""Distributions that a machine with Spark has; theirs must be used, since they belong to its jars."""
_LEFT_OUT = frozenset({"tests", "__pycache__"})
_LEVEL = 1
"""Of compression: higher ones take minutes and save a tenth."""

Place = tuple[str, Path]
"""A name in the archive, and the file."""


def pack(
    file: Path, root: str = "newnormal", report: Callable[[str], None] = lambda _: None, also: Mapping[str, Path] = {}
) -> int:
    """Writes the archive; returns the number of its files.

    Args:
        file: The archive; its ending says how it is compressed.
        root: Distribution whose requirements are packed, with those that they require.
        report: Is called with the name of each distribution before its files are packed.
        also: Further folders, by their names in the archive.

    Raises:
        NewnormalError: ``OUTPUT_NOT_WRITABLE`` if the archive cannot be written, or has another ending.
    """
    if not file.name.endswith(ENDINGS):
        raise _refused(f"{file.name} has an unknown ending", file, ", ".join(ENDINGS))
    part, count = file.with_name(f".{file.name}.part"), 0
    try:
        with _opened(part, packed=not file.name.endswith(".tar")) as archive:
            report("newnormal")
            for name, path in (*_code(), *_within(also)):
                archive.add(path, name, recursive=False)
                count += 1
            for distribution in needed(root):
                report(distribution.name)
                for name, path in _files(distribution):
                    archive.add(path, name, recursive=False)
                    count += 1
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise _refused(error.strerror or str(error), file, "a folder that is writable and has room") from None
    return count


def needed(root: str) -> list[metadata.Distribution]:
    """The distributions that one requires, directly or not, by name; without those that are part of Spark."""
    distributions: dict[str, metadata.Distribution] = {}
    project = Path(__file__).parents[1] / "pyproject.toml"
    checkout = root == "newnormal" and project.is_file()  # what was installed may be of an older state of the checkout
    waiting = _names(dependencies(project) if checkout else metadata.distribution(root).requires or ())
    while waiting:
        name = waiting.pop()
        if name in distributions or name in OF_SPARK:
            continue
        distributions[name] = metadata.distribution(name)
        waiting += _names(distributions[name].requires or ())
    return [distributions[name] for name in sorted(distributions)]


def _names(requirements: Sequence[str]) -> list[str]:
    """The distributions that requirements name, without those of extras and other systems."""
    parsed = [Requirement(text) for text in requirements]
    wanted = [each for each in parsed if each.marker is None or each.marker.evaluate({"extra": ""})]
    return [each.name.lower().replace("_", "-").replace(".", "-") for each in wanted]


def _files(distribution: metadata.Distribution) -> Iterator[Place]:
    """The files of a distribution that lie in the folder of packages: no commands, no manuals."""
    for each in distribution.files or ():
        if each.parts[0] != ".." and not _LEFT_OUT & set(each.parts):
            path = Path(str(distribution.locate_file(each)))
            if path.is_file():
                yield str(each), path


def _code() -> Iterator[Place]:
    home = Path(__file__).parents[1]
    for package in CODE:
        for path in sorted((home / package).rglob("*")):
            name = path.relative_to(home)
            if path.is_file() and not _LEFT_OUT & set(name.parts):
                yield str(name), path


def _within(folders: Mapping[str, Path]) -> Iterator[Place]:
    for name, folder in folders.items():
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                yield f"{name}/{path.relative_to(folder)}", path


def _opened(file: Path, packed: bool) -> tarfile.TarFile:
    return tarfile.open(file, "w:gz", compresslevel=_LEVEL) if packed else tarfile.open(file, "w")


def _refused(why: str, file: Path, accepted: str) -> NewnormalError:
    return NewnormalError("OUTPUT_NOT_WRITABLE", why, str(file), accepted, "nothing was packed")
