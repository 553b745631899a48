"""Paths in the file systems that Hadoop knows, such as HDFS and object stores, with the methods of `pathlib.Path`.

Spark keeps checkpoints there through Hadoop's `FileSystem`, and what is beside them is read and written in the same
way, so that one configuration holds for both: addresses, logins, jars. Python's side of Java is loaded when a path is
used, as all commands load this module with the settings.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PosixPath
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from engine.spec.errors import NewnormalError

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")
_HADOOP, _JARS = "spark.hadoop.", "spark.jars"
T = TypeVar("T")

_options: dict[str, str] = {}
_connectors: list[Callable[[str], Sequence[Path]]] = []


def is_address(path: str | Path) -> bool:
    """True if a text is an address such as ``s3a://bucket/path``, which as a path would be a folder ``s3a:``.

    >>> is_address("s3a://bucket/state"), is_address(Path("hdfs://host/state")), is_address("/mnt/state")
    (True, True, False)
    """
    return _ADDRESS.match(str(path)) is not None


def configure(options: Mapping[str, str]) -> None:
    """Takes over those settings of Spark that matter here.

    Args:
        options: All settings: ``spark.hadoop.*``, e.g. the endpoint of an object store, and ``spark.jars.*``, which say
            where its connector is from.
    """
    _options.update({name: value for name, value in options.items() if name.startswith((_HADOOP, _JARS))})


def connect(jars: Callable[[str], Sequence[Path]]) -> None:
    """Says which jars Hadoop needs to reach an address; it is asked when a process without Spark reaches for one."""
    _connectors[:] = [jars]


def files(folder: Path) -> Iterator[Path]:
    """All files below a folder, in any depth, wherever it lies; none if it does not exist."""
    if isinstance(folder, HadoopPath):
        yield from folder.files()
    else:
        yield from (Path(path) / name for path, _, names in os.walk(folder) for name in names)


@contextmanager
def made_here(folder: Path) -> Iterator[Path]:
    """A path of this machine at which a folder is made that is at its place afterwards, wherever that lies."""
    if not isinstance(folder, HadoopPath):
        yield folder
        return
    with TemporaryDirectory() as scratch:
        here = Path(scratch) / folder.name
        yield here
        folder.upload(here)


def delete(path: Path) -> None:
    """Deletes a folder with all that is in it, wherever it lies; it need not exist."""
    if isinstance(path, HadoopPath):
        path.delete()
    else:
        shutil.rmtree(path, ignore_errors=True)


class HadoopPath(PosixPath):
    """A path in a file system of Hadoop: ``scheme://authority/folders``.

    What is not overridden here and would reach the operating system raises ``TypeError``.

    >>> path = HadoopPath("hdfs://name-node:8020/state") / "checkpoints" / "default"
    >>> str(path), path.name, str(path.parent), path.is_absolute()
    ('hdfs://name-node:8020/state/checkpoints/default', 'default', 'hdfs://name-node:8020/state/checkpoints', True)
    """

    __slots__ = ()

    def __str__(self) -> str:
        """The address, as Hadoop and Spark take it."""
        return _ADDRESS.sub(r"\1://", super().__str__())

    def __fspath__(self) -> str:
        """Refused: the operating system would take the address for a relative path.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"{self} is no path of this machine")

    def is_absolute(self) -> bool:
        return True

    def absolute(self) -> HadoopPath:
        return self

    def resolve(self, strict: bool = False) -> HadoopPath:
        return self

    def expanduser(self) -> HadoopPath:
        return self

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        return bool(self._call(lambda store, path: store.exists(path)))

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self.exists() and bool(self._status().isDirectory())

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self.exists() and bool(self._status().isFile())

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Size and time of the last change; the other fields are 0."""
        status = self._status()
        changed = status.getModificationTime() // 1000
        return os.stat_result((0, 0, 0, 0, 0, 0, status.getLen(), changed, changed, changed))

    def iterdir(self) -> Generator[HadoopPath, None, None]:
        for status in self._call(lambda store, path: list(store.listStatus(path))):
            yield self / status.getPath().getName()

    def glob(self, pattern: str) -> Generator[HadoopPath, None, None]:
        """The paths below that match; without ``**``."""
        first, _, rest = pattern.partition("/")
        for child in sorted(self.iterdir()) if self.exists() else []:
            if fnmatchcase(child.name, first):
                if not rest:
                    yield child
                elif child.is_dir():
                    yield from child.glob(rest)

    def files(self) -> Iterator[HadoopPath]:
        """All files below the folder, in any depth."""
        listing = self._call(lambda store, path: store.listFiles(path, True)) if self.exists() else None
        while listing is not None and listing.hasNext():
            yield HadoopPath(listing.next().getPath().toString())

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Makes the folder with all above it, whatever ``parents`` says."""
        if not exist_ok and self.exists():
            raise FileExistsError(str(self))
        self._call(lambda store, path: store.mkdirs(path))

    def read_bytes(self) -> bytes:
        def read(store: Any, path: Any) -> bytes:
            stream = store.open(path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

        return self._call(read)

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def write_bytes(self, data: Any) -> int:
        def write(store: Any, path: Any) -> int:
            stream = store.create(path, True)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()
            return len(data)

        return self._call(write)

    def write_text(
        self, data: str, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> int:
        return self.write_bytes(data.encode(encoding or "utf-8", errors or "strict"))

    def rename(self, target: Any) -> HadoopPath:
        other = HadoopPath(target)
        if other.exists() or not self._call(lambda store, path: store.rename(path, _java_path(str(other)))):
            raise FileExistsError(f"{self} cannot be renamed to {other}")
        return other

    def replace(self, target: Any) -> HadoopPath:
        """Renames the file onto a target that may exist, as Spark does with its own files.

        HDFS does it at once. Elsewhere Hadoop deletes the target first, so a kill may leave none of that name
        (`engine.files.recovered`).
        """
        other = HadoopPath(target)
        self._call(lambda store, path: _over(path, _java_path(str(other))))
        return other

    def unlink(self, missing_ok: bool = False) -> None:
        if not self._call(lambda store, path: store.delete(path, False)) and not missing_ok:
            raise FileNotFoundError(str(self))

    def delete(self) -> None:
        """Deletes the file, or the folder with all that is in it; it need not exist."""
        self._call(lambda store, path: store.delete(path, True))

    def download(self, target: Path) -> None:
        """Copies the file to a path of this machine; the folder must exist."""
        local = str(target.absolute())
        self._call(lambda store, path: store.copyToLocalFile(False, path, _java_path(local), True))

    def upload(self, source: Path) -> None:
        """Copies a file or folder of this machine to this path, which must not exist."""
        local = f"file://{source.absolute()}"
        self._call(lambda store, path: store.copyFromLocalFile(_java_path(local), path))

    def __reduce__(self) -> Any:
        """For other processes, which need the settings for Hadoop and Spark's jars too."""
        return _unpacked, (str(self), {**_options, **_sent()})

    def _status(self) -> Any:
        return self._call(lambda store, path: store.getFileStatus(path))

    def _call(self, ask: Callable[[Any, Any], T]) -> T:
        """What Hadoop answers.

        Raises:
            FileNotFoundError: The file or folder does not exist.
            NewnormalError: ``CHECKPOINT_UNREACHABLE`` with Hadoop's reason for anything else that goes wrong; no
                `OSError`, as a store that does not answer must not pass for one without the file.
        """
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415  see the module's docstring

        try:
            path = _java_path(str(self))
            return ask(path.getFileSystem(_configuration(str(self))), path)
        except Py4JJavaError as error:
            raise _translated(error.java_exception, str(self)) from error


def _java(address: str) -> Any:
    from engine.spark.java_process import java  # noqa: PLC0415  see the module's docstring

    return java(lambda: _jars(address))


def _hadoop(address: str) -> Any:
    return _java(address).org.apache.hadoop


def _over(source: Any, target: Any) -> None:
    java = _java(str(target.toString()))
    way = java.org.apache.hadoop.fs.Options.Rename.OVERWRITE
    overwrite = java.java.lang.reflect.Array.newInstance(way.getClass(), 1)
    overwrite[0] = way
    context = java.org.apache.hadoop.fs.FileContext
    context.getFileContext(source.toUri(), _configuration(str(source.toString()))).rename(source, target, overwrite)


def _jars(address: str) -> dict[str, str]:
    """The settings of Spark that name the jars for an address."""
    settings = {name: value for name, value in _options.items() if name.startswith(_JARS)}
    jars = [_here(jar) for jar in settings.get(_JARS, "").split(",") if jar]
    jars = jars or [str(jar) for connector in _connectors for jar in connector(address)]
    return {**settings, _JARS: ",".join(jars)} if jars else settings


def _sent() -> dict[str, str]:
    """The jars that Spark, if it runs here, sends to all its executors."""
    from pyspark import SparkContext  # noqa: PLC0415  see the module's docstring

    context = SparkContext._active_spark_context
    jars = context.getConf().get(_JARS, "") if context else ""
    return {_JARS: jars} if jars else {}


def _here(jar: str) -> str:
    """The path of a jar that Spark has sent: that of the driver, or in an executor's folder on another machine."""
    from pyspark import SparkFiles  # noqa: PLC0415  see the module's docstring

    path = jar.removeprefix("file:")
    return path if Path(path).exists() else SparkFiles.get(Path(path).name)


def _java_path(address: str) -> Any:
    return _hadoop(address).fs.Path(address)


def _configuration(address: str) -> Any:
    return _configured(_hadoop(address)._gateway_client, tuple(_options.items()))


@lru_cache(maxsize=1)
def _configured(_java: Any, options: tuple[tuple[str, str], ...]) -> Any:
    """Hadoop's configuration, made once for each Java and options, as it reads files of its own."""
    configuration = _hadoop("").conf.Configuration()
    for name, value in options:
        if name.startswith(_HADOOP):
            configuration.set(name.removeprefix(_HADOOP), value)
    return configuration


def _unpacked(address: str, options: Mapping[str, str]) -> HadoopPath:
    _options.update(options)
    return HadoopPath(address)


def _translated(exception: Any, address: str) -> Exception:
    kind, message = str(exception.getClass().getName()), str(exception.getMessage()).partition("\n")[0]
    if kind.endswith("FileNotFoundException"):
        return FileNotFoundError(errno.ENOENT, "there is no such file", address)
    what, accepted = f"{kind.rpartition('.')[2]}: {message}", "an address that Hadoop reaches and may read and write"
    return NewnormalError("CHECKPOINT_UNREACHABLE", what, address, accepted, "this was not read or written")
