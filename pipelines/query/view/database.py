"""The view's database: a RocksDB folder that one process writes; data and offsets go in by one atomic batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from rocksdict import AccessType, BlockBasedOptions, Cache, DBCompressionType, Options, Rdict, ReadOptions, WriteBatch

from engine.spec.errors import NewnormalError

_MEGABYTE = 1 << 20
_CACHE = 256 * _MEGABYTE
"""Memory for blocks that were read, bytes."""


class Database:
    """An ordered map from bytes to bytes on disk.

    One process writes it. What `write` has returned from survives the end of that process, also by ``kill -9``: RocksDB
    has handed it to the operating system. Other processes may read it: they see what was written before their last
    `catch_up`, each `write` whole or not at all.

    Args:
        folder: Its folder; made if it does not exist.
        reader: A folder of its own for a process that only reads; ``None``: this process writes.

    Raises:
        NewnormalError: ``VIEW_UNUSABLE`` if another process writes the folder, or it cannot be read.
    """

    def __init__(self, folder: Path, reader: Path | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        access = AccessType.read_write() if reader is None else AccessType.secondary(str(reader))
        options = _options()
        try:
            # The options of the column family are named too: rocksdict takes them from the folder otherwise.
            self._db: Any = Rdict(str(folder), options, {"default": options}, access)
        except Exception as error:
            accepted = "a folder that no other view has open; delete it, and the view is read anew from Kafka"
            raise NewnormalError("VIEW_UNUSABLE", str(error), str(folder), accepted, "nothing was started") from None

    def get(self, key: bytes) -> bytes | None:
        """The value of a key; ``None`` if there is none."""
        found: bytes | None = self._db.get(key)
        return found

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """The values of keys."""
        return list(self._db.get(keys)) if keys else []

    def scan(self, prefix: bytes, after: bytes = b"", once: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """The entries whose keys begin with a prefix and are greater than ``after``, in order of the keys.

        Args:
            prefix: How the keys begin.
            after: A key.
            once: Whether nobody will ask for them again, so that they need no place among the blocks in memory.
        """
        options: Any = ReadOptions()  # its stub says that the next call takes nothing
        options.fill_cache(not once)
        for key, value in self._db.items(from_key=max(prefix, after), read_opt=options):
            if not key.startswith(prefix):
                return
            if key != after:
                yield key, value

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = ()) -> None:
        """Writes entries all together, or none of them if the process ends meanwhile."""
        batch = WriteBatch(raw_mode=True)
        for key in deletes:
            batch.delete(key)
        for key, value in puts:
            batch.put(key, value)
        self._db.write(batch)

    def catch_up(self) -> None:
        """Lets a reader see what the writer has written since; the next call does, if the writer removes a file now."""
        with suppress(Exception):
            self._db.try_catch_up_with_primary()

    def close(self) -> None:
        """Closes the folder."""
        self._db.close()


def _options() -> Options:
    options, table = Options(raw_mode=True), BlockBasedOptions()
    table.set_block_cache(Cache(_CACHE))
    table.set_bloom_filter(10, False)
    table.set_cache_index_and_filter_blocks(True)
    options.set_block_based_table_factory(table)
    options.create_if_missing(True)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_size(64 * _MEGABYTE)
    options.set_max_background_jobs(2)
    options.set_max_open_files(-1)  # a reader keeps files that the writer removes
    options.set_max_file_opening_threads(1)  # else 16 threads are started each time that a reader catches up
    options.set_keep_log_file_num(3)
    return options
