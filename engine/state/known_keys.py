"""Which keys a shard has met in each partition that it reads, and which records come beyond the most keys.

Keys are kept as hashes of 64 bits, 24 bytes per key. If two keys have the same hash, one of them is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from engine.columns.dictionaries import whole
from engine.spec.duration import NEVER
from engine.spec.most_keys import MostKeys
from engine.state.segments import Segments, ShardState, pack, unpack

Hashes = npt.NDArray[np.uint64]
Times = npt.NDArray[np.int64]
_SEGMENT = "most_keys/"
_MIX = np.uint64(0x9E3779B97F4A7C15)
_FEW = 1 << 22
"""So many combinations of values are marked in a table rather than sorted."""

_PERIODS = 7
"""In so many periods of time the time is divided after which a key is forgotten."""


class KnownKeys:
    """The keys of the partitions of a shard.

    Time is counted in periods, and the clock of a partition is the latest period of its records so far. When it goes
    on, the keys are forgotten whose last record is more than `_PERIODS` before. So this depends on the log only.

    State: segment ``most_keys/<topic>/<partition>`` holds the hash of each known key, ascending, that of its first
    column, and the latest period of its records; the clock, and how long a period is.

    Args:
        segments: The state of the shard, or of an operator in it, which is saved with all of that state.
    """

    def __init__(self, segments: Segments) -> None:
        self.state = segments if isinstance(segments, ShardState) else ShardState(segments)
        self.changed = False

    def beyond(
        self,
        most: MostKeys,
        topic: str,
        partition: int,
        records: pa.Table,
        good: npt.NDArray[np.bool_],
        times: Times,
    ) -> npt.NDArray[np.bool_]:
        """Which records are of keys beyond the most; new keys that are accepted are known from then on.

        Args:
            most: The most keys.
            topic: Topic of the records.
            partition: Partition of the records.
            records: The records in the order of the log.
            good: Which records count; others bring no key.
            times: The event time of each record, epoch milliseconds.
        """
        refused, rows = np.zeros(records.num_rows, bool), np.flatnonzero(good)
        if not len(rows):
            return refused
        values, codes = _coded([whole(records.column(name)) for name in most.key])
        codes, name = codes[rows], f"{_SEGMENT}{topic}/{partition}"
        every = max(most.forget // _PERIODS, 1) if most.forget else 0
        known = _Known.of(self.state.get(name), every)
        periods = times[rows] // every if every else np.zeros(len(rows), np.int64)
        clock = np.maximum.accumulate(np.maximum(periods, known.clock))
        begins = np.flatnonzero(np.diff(clock, prepend=clock[0] - 1))
        for begin, end in pairwise([*begins.tolist(), len(rows)]):
            known.go_on(int(clock[begin]))
            beyond = known.take(most, values, codes[begin:end], periods[begin:end])
            if len(beyond):
                refused[rows[begin:end]] = np.isin(codes[begin:end], beyond)
        if known.changed:
            self.state.put(name, known.stored())
            self.changed = True
        return refused

    def save(self) -> None:
        """Stores what is known now, if it has changed."""
        if self.changed:
            self.state.save()
            self.changed = False


class _Known:
    """The keys of one partition, by hashes.

    Args:
        keys: Columns ``key``, ascending, ``first``, and ``met``: the latest period of its records.
        clock: The latest period of all records.
        every: How long a period is, milliseconds; 0: keys count for ever.
    """

    def __init__(self, keys: pl.DataFrame, clock: int, every: int) -> None:
        self.keys, self.clock, self.every, self.changed = keys, clock, every, False

    @classmethod
    def of(cls, stored: bytes | None, every: int) -> _Known:
        """What is stored, in periods of the present length.

        An earlier version had no periods: its keys are as if met when the clock begins.
        """
        if stored is None:
            return cls(pl.DataFrame(schema={"key": pl.UInt64, "first": pl.UInt64, "met": pl.Int64}), NEVER, every)
        tables = unpack(stored)
        keys, clock = tables["keys"], tables.get("clock", pl.DataFrame())
        was = clock["every"][0] if "every" in clock.columns else 0
        if not (was and every):
            return cls(keys.select("key", "first", met=pl.lit(None, pl.Int64)), NEVER, every)
        if was != every:
            keys = keys.with_columns(met=pl.col("met") * was // every)
        return cls(keys, clock["clock"][0] * was // every, every)

    def stored(self) -> bytes:
        """The inverse of `of`."""
        clock = pl.DataFrame({"clock": [self.clock], "every": [self.every]}, {"clock": pl.Int64, "every": pl.Int64})
        return pack({"keys": self.keys, "clock": clock})

    def go_on(self, clock: int) -> None:
        """Sets the clock, and forgets the keys that were met too long before."""
        if clock == self.clock:
            return
        met = pl.col("met").fill_null(clock)
        self.keys = self.keys.with_columns(met=met).filter(pl.col("met") >= clock - _PERIODS)
        self.clock, self.changed = clock, True

    def take(self, most: MostKeys, values: list[list[str]], codes: Times, periods: Times) -> Times:
        """Takes in some records, whose clock is the present one; returns the codes that are beyond the most.

        Args:
            most: The most keys.
            values: The distinct values of each column of the key.
            codes: A number for each record that says which of them it has, as from `_coded`.
            periods: The period of each record.
        """
        present = _distinct(codes, [len(column) for column in values])
        firsts, keys = _hashes(values, present)
        known = self.keys["key"].to_numpy()
        new = ~_within(keys, known)
        latest = np.full(len(present), periods[0])
        if periods.min() != periods.max():
            latest[:] = NEVER
            np.maximum.at(latest, np.searchsorted(present, codes), periods)
        if not new.all():
            self._meet(np.searchsorted(known, keys[~new]), latest[~new])
        if not new.any():
            return present[:0]
        # in the order of their first records; of two keys with one hash, the first one stands for both
        appearing, at = np.unique(codes, return_index=True)
        order = np.argsort(at[np.searchsorted(appearing, present[new])], kind="stable")
        firsts, keys = firsts[new][order], keys[new][order]
        present, latest = present[new][order], latest[new][order]
        accepted = _accepted(most, firsts, self.keys["first"].to_numpy(), self.keys.height)
        if accepted.any():
            added = pl.DataFrame({"key": keys[accepted], "first": firsts[accepted], "met": latest[accepted]})
            self.keys = pl.concat([self.keys, added]).unique("key", keep="first").sort("key")
            self.changed = True
        return present[~accepted]

    def _meet(self, rows: Times, latest: Times) -> None:
        met = self.keys["met"].to_numpy()
        if (met[rows] < latest).any():
            met = met.copy()
            np.maximum.at(met, rows, latest)
            self.keys = self.keys.with_columns(met=pl.Series(met))
            self.changed = True


def move(before: Sequence[ShardState], after: Sequence[ShardState], topic: str, partition: int) -> None:
    """Gives the keys of a partition, or of a slot of an operator, to the new shard that has it."""
    for state in before:
        if (value := state.get(f"{_SEGMENT}{topic}/{partition}")) is not None:
            after[partition % len(after)].put(f"{_SEGMENT}{topic}/{partition}", value)


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
