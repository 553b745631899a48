"""Which keys a shard has met in each partition that it reads, and which records come beyond the most keys.

Keys are kept as hashes of 64 bits, 16 bytes per key. If two keys have the same hash, one of them is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from engine.columns.dictionaries import whole
from engine.spec.most_keys import MostKeys
from engine.state.segments import Segments, ShardState, pack, unpack

Hashes = npt.NDArray[np.uint64]
_SEGMENT = "most_keys/"
_MIX = np.uint64(0x9E3779B97F4A7C15)
_FEW = 1 << 22
"""So many combinations of values are marked in a table rather than sorted."""


class KnownKeys:
    """The keys of the partitions of a shard.

    State: segment ``most_keys/<topic>/<partition>`` holds the hash of each known key, ascending, and that of its first
    column.

    Args:
        segments: The state of the shard.
    """

    def __init__(self, segments: Segments) -> None:
        self.state = ShardState(segments)
        self.changed = False

    def beyond(
        self, most: MostKeys, topic: str, partition: int, records: pa.Table, good: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Which records are of keys beyond the most; new keys that are accepted are known from then on.

        Args:
            most: The most keys.
            topic: Topic of the records.
            partition: Partition of the records.
            records: The records in the order of the log.
            good: Which records count; others bring no key.
        """
        refused = np.zeros(records.num_rows, bool)
        values, codes = _coded([whole(records.column(name)) for name in most.key])
        present = _distinct(codes[good], [len(column) for column in values])
        firsts, keys = _hashes(values, present)
        name = f"{_SEGMENT}{topic}/{partition}"
        stored = self.state.get(name)
        stored_keys = unpack(stored)["keys"] if stored else pl.DataFrame(schema={"key": pl.UInt64, "first": pl.UInt64})
        new = ~_within(keys, stored_keys["key"].to_numpy())
        if not new.any():
            return refused
        # in the order of their first records; of two keys with one hash, the first one stands for both
        rows = np.flatnonzero(good)
        appearing, at = np.unique(codes[rows], return_index=True)
        order = np.argsort(at[np.searchsorted(appearing, present[new])], kind="stable")
        firsts, keys, present = firsts[new][order], keys[new][order], present[new][order]
        accepted = _accepted(most, firsts, stored_keys["first"].to_numpy(), stored_keys.height)
        if accepted.any():
            added = pl.DataFrame({"key": keys[accepted], "first": firsts[accepted]})
            self.state.put(name, pack({"keys": pl.concat([stored_keys, added]).unique("key").sort("key")}))
            self.changed = True
        if not accepted.all():
            refused = good & np.isin(codes, present[~accepted])
        return refused

    def save(self) -> None:
        """Stores what is known now, if it is more than before."""
        if self.changed:
            self.state.save()
            self.changed = False


def rescale(before: Sequence[ShardState], after: Sequence[ShardState]) -> None:
    """Gives the keys of each partition to the new shard that reads it."""
    for state in before:
        for name in [segment for segment in state.sizes if segment.startswith(_SEGMENT)]:
            value = state.get(name)
            assert value is not None
            after[int(name.rpartition("/")[2]) % len(after)].put(name, value)


def _coded(columns: Sequence[pa.Array]) -> tuple[list[list[str]], npt.NDArray[np.int64]]:
    """The distinct values of each column, and for each row one number that says which of them it has."""
    values, codes = list[list[str]](), np.zeros(len(columns[0]), np.int64)
    for column in columns:
        texts = column.cast(pa.string()).fill_null("") if column.null_count else column
        coded = texts if pa.types.is_dictionary(texts.type) else texts.dictionary_encode()
        values.append(coded.dictionary.to_pylist())
        codes = codes * max(1, len(values[-1])) + coded.indices.to_numpy(zero_copy_only=False)
    return values, codes


def _distinct(codes: npt.NDArray[np.int64], sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    """The distinct numbers, ascending."""
    combinations = int(np.prod([max(1, size) for size in sizes], dtype=object))
    if combinations > _FEW:
        return np.unique(codes)
    marked = np.zeros(combinations, bool)
    marked[codes] = True
    return np.flatnonzero(marked)


def _hashes(values: Sequence[Sequence[str]], codes: npt.NDArray[np.int64]) -> tuple[Hashes, Hashes]:
    """The hashes of the first column and of the whole key, for numbers of `_coded`."""
    parts = list[Hashes]()
    for texts in reversed(values):
        codes, which = np.divmod(codes, max(1, len(texts)))
        parts.insert(0, np.array([_hash(text) for text in texts], np.uint64)[which])
    key = parts[0]
    for part in parts[1:]:
        key = key * _MIX + part
    return parts[0], key


@lru_cache(maxsize=1 << 15)
def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _within(hashes: Hashes, ascending: Hashes) -> npt.NDArray[np.bool_]:
    """Which hashes are among others."""
    if not len(ascending):
        return np.zeros(len(hashes), bool)
    at = np.minimum(np.searchsorted(ascending, hashes), len(ascending) - 1)
    is_within: npt.NDArray[np.bool_] = ascending[at] == hashes
    return is_within


def _accepted(most: MostKeys, firsts: Hashes, stored_firsts: Hashes, total: int) -> npt.NDArray[np.bool_]:
    """Which of some new keys are accepted, in the order in which they appear.

    Args:
        most: The most keys.
        firsts: The hash of the first column of each.
        stored_firsts: The hash of the first column of each known key.
        total: Number of the known keys.

    >>> new = np.array([7, 7, 8, 7, 8], np.uint64)
    >>> _accepted(MostKeys(("a", "b"), 2, 5), new, np.array([7, 9], np.uint64), 2).tolist()
    [True, False, True, False, True]
    """
    kinds, which = np.unique(firsts, return_inverse=True)
    ascending = np.sort(stored_firsts)
    have = np.searchsorted(ascending, kinds, "right") - np.searchsorted(ascending, kinds, "left")
    order = np.argsort(which, kind="stable")
    begins = np.searchsorted(which[order], np.arange(len(kinds)))
    rank = np.empty(len(firsts), np.int64)
    rank[order] = np.arange(len(firsts)) - begins[which[order]]
    fits = have[which] + rank < most.alike
    accepted: npt.NDArray[np.bool_] = fits & (total + np.cumsum(fits) <= most.partition)
    return accepted
