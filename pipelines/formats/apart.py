"""What holds for samples of all formats: which count, and that two series are not taken for one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.columns.arrays import Ints
from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from pipelines.formats.counters import CounterRule
from pipelines.formats.refusals import LABEL_KEPT, SAMPLE_TWICE, Refused
from pipelines.formats.samples import combined, folded, if_same


@dataclass(frozen=True)
class Apart(Decoder):
    """Makes counters of the samples whose names say so, and keeps series apart that left-out or folded labels divide.

    Where samples of a message have the same machine, metric and time, it is read again with the labels of
    `InputSettings.left_out` and with UUIDs. What these distinguish is kept in the names, and reported. Of the others,
    those that differ in labels of `InputSettings.folded` become one: the sum of counters, the mean of others; the rest
    are reported as two values at one time.

    Args:
        decoder: The decoder of the format.
        whole: The same with the labels and UUIDs that are left out or folded otherwise.
        counters: Which metrics are counters.
    """

    decoder: Decoder
    whole: Decoder
    counters: CounterRule

    def decode(self, messages: Messages) -> Decoded:
        decoded = self.decoder.decode(messages)
        records, refused = self._counted(decoded.records), list(decoded.refused)
        groups = _repeated(records)
        if groups is not None:
            records, kept = self._distinguished(records, groups, messages)
            records = combined(records)
            refused = sorted([*refused, *kept, *_two_values(records)])
        return Decoded(records, refused, decoded.writer_watermarks)

    def _distinguished(self, records: pa.Table, groups: Ints, messages: Messages) -> tuple[pa.Table, list[Refused]]:
        """The samples, those that left-out labels or UUIDs distinguish with these; and the reports of it."""
        rows = records.column(ROW).to_numpy()
        mine = np.unique(rows[groups >= 0])
        keep = np.zeros(len(messages.values), np.bool_)
        keep[mine] = True
        again = self._counted(self.whole.decode(messages.where(keep)).records)
        places = mine[again.column(ROW).to_numpy()]
        counts, others = (np.bincount(each, minlength=len(keep)) for each in (rows, places))
        same = np.isin(rows, np.flatnonzero(keep & (counts == others)))
        chosen, names = np.arange(len(rows)), np.full(len(rows), -1)
        chosen[same] = len(rows) + np.flatnonzero(counts[places] == others[places])
        names[same] = again.column("metric").combine_chunks().indices.to_numpy()[chosen[same] - len(rows)]
        split = np.isin(groups, groups[(groups >= 0) & (names != _of_first(groups, names))])
        if not split.any():
            return records, []
        split_rows, first = np.unique(rows[split], return_index=True)
        metrics = records.column("metric").take(pa.array(np.flatnonzero(split)[first])).to_pylist()
        why = (
            "and others of its name differ only in labels of input.left_out, or in UUIDs; these are kept in their names"
        )
        again = again.set_column(again.schema.get_field_index(ROW), ROW, pa.array(places.astype(np.int32)))
        both = pa.concat_tables([records, again]).unify_dictionaries().combine_chunks()
        samples = both.take(pa.array(np.where(split, chosen, np.arange(len(rows)))))
        kept = zip(split_rows.tolist(), metrics, strict=True)
        return samples, [(row, LABEL_KEPT, f"{name} {why}") for row, name in kept]

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        part = self.decoder.only(value, records)
        if part is None or _repeated(self.decoder.decode(Messages.of([value])).records) is None:
            return part
        return if_same(self, value, records, part)

    def _counted(self, records: pa.Table) -> pa.Table:
        """The samples; gauges whose names are those of counters are counters."""
        metrics, kinds = (records.column(name).combine_chunks() for name in ("metric", "kind"))
        says = np.array(
            [self.counters.says(text.partition("{")[0]) for text in metrics.dictionary.to_pylist()], np.bool_
        )
        if not says.any() or not len(records):
            return records
        names = kinds.dictionary.to_pylist()
        codes = kinds.indices.to_numpy()
        gauges = np.array([name == "gauge" for name in names])[codes] & says[metrics.indices.to_numpy()]
        if not gauges.any():
            return records
        names = names if "counter" in names else [*names, "counter"]
        changed = np.where(gauges, names.index("counter"), codes).astype(np.int32)
        at = records.schema.get_field_index("kind")
        column = pa.DictionaryArray.from_arrays(pa.array(changed), pa.array(names, pa.string())).cast(kinds.type)
        return records.set_column(at, records.schema.field(at), column)


def _of_first(groups: Ints, codes: Ints) -> Ints:
    """The code of the first of each one's group, shape (n,).

    >>> _of_first(np.array([3, -1, 3, -1]), np.array([7, 8, 9, 6])).tolist()
    [7, 8, 7, 8]
    """
    _, first, places = np.unique(groups, return_index=True, return_inverse=True)
    return codes[first][places]


def _two_values(records: pa.Table) -> list[Refused]:
    """The reports of messages with two values of a series at one time."""
    groups = _repeated(records)
    if groups is None:
        return []
    at = np.flatnonzero(groups >= 0)
    rows, first = np.unique(records.column(ROW).to_numpy()[at], return_index=True)
    samples = records.take(pa.array(at[first])).to_pylist()
    what = [f"{one['metric']} of {one['entity']} has two values at one time, {one['value']:g}" for one in samples]
    return [(row, SAMPLE_TWICE, f"{why} and another one") for row, why in zip(rows.tolist(), what, strict=True)]


_ODD = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))


def _repeated(records: pa.Table) -> Ints | None:
    """The number of the group of each sample that has machine, metric, time and message of others; ``None``: no group.

    It is -1 for samples that are alone, and for those of equal values unless a label in their name is folded.
    """
    if records.num_rows < 2:
        return None
    entity, metric = (records.column(name).combine_chunks() for name in ("entity", "metric"))
    series = entity.indices.to_numpy().astype(np.int64) * len(metric.dictionary) + metric.indices.to_numpy()
    rows, times = records.column(ROW).to_numpy(), records.column("time").to_numpy()
    parts = (series, rows.astype(np.int64), times)
    mixed = np.bitwise_xor.reduce([part.view(np.uint64) * odd for part, odd in zip(parts, _ODD, strict=True)])
    order = np.argsort(mixed, kind="stable")
    same = np.append(False, np.diff(mixed[order]) == 0)
    if not same.any():
        return None
    values = records.column("value").to_numpy()[order]
    counts = np.append(False, values[1:] != values[:-1]) | folded(metric)[order]
    number = np.cumsum(~same) - 1
    repeated = np.bincount(number[same & counts], minlength=len(order)) > 0
    groups = np.empty(len(order), np.int64)
    groups[order] = np.where(repeated[number], number, -1)
    return groups if repeated.any() else None
