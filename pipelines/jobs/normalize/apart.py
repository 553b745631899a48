"""What holds for samples of all formats: which count, and that two series are not taken for one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from pipelines.jobs.normalize.counters import CounterRule
from pipelines.jobs.normalize.refusals import LABEL_KEPT, SAMPLE_TWICE
from pipelines.jobs.normalize.samples import if_same


@dataclass(frozen=True)
class Apart(Decoder):
    """Makes counters of the samples whose names say so, and keeps series apart that descriptive labels distinguish.

    Where two samples of a message have the same machine, metric and time, it is read again with the labels of
    `InputSettings.left_out`. If these distinguish the samples they are kept in their names, and told; otherwise the
    message is told to hold two values at one time.

    Args:
        decoder: The decoder of the format.
        whole: The same with the labels that are left out otherwise.
        counters: Which metrics are counters.
    """

    decoder: Decoder
    whole: Decoder
    counters: CounterRule

    def decode(self, messages: Messages) -> Decoded:
        decoded = self.decoder.decode(messages)
        records = self._counted(decoded.records)
        twice = _twice(records)
        if twice is None:
            return Decoded(records, decoded.refused, decoded.writer_watermarks)
        rows = records.column(ROW).to_numpy()
        mine = np.unique(rows[twice])
        keep = np.zeros(len(messages.values), np.bool_)
        keep[mine] = True
        again = self._counted(self.whole.decode(messages.where(keep)).records)
        at = again.schema.get_field_index(ROW)
        places, still = mine[again.column(ROW).to_numpy()], _twice(again)
        again = again.set_column(at, ROW, pa.array(places.astype(np.int32)))
        refused, chosen = list(decoded.refused), np.arange(len(rows))
        for row in mine.tolist():
            before, after = np.flatnonzero(rows == row), np.flatnonzero(places == row)
            both = before[twice[before]]
            left = 0 if still is None else int(still[after].sum())
            if len(after) == len(before) and left < len(both):
                chosen[both] = len(rows) + after[twice[before]]
                refused.append((row, LABEL_KEPT, _kept(records, both)))
            else:
                left = len(both)
            if left:
                refused.append((row, SAMPLE_TWICE, _two_values(records, both)))
        if (chosen != np.arange(len(rows))).any():
            records = pa.concat_tables([records, again]).unify_dictionaries().combine_chunks().take(pa.array(chosen))
        return Decoded(records, sorted(refused), decoded.writer_watermarks)

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        message = Messages("", 0, pa.array([value], pa.binary()), np.zeros(1, np.int64), np.zeros(1, np.int64))
        part = self.decoder.only(value, records)
        if part is None or _twice(self.decoder.decode(message).records) is None:
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


def _kept(records: pa.Table, places: npt.NDArray[np.int64]) -> str:
    name = records.column("metric")[int(places[0])].as_py()
    what = f"{len(places)} samples, the first of {name}, differ in labels of input.left_out only"
    return f"{what}; they are kept in the names of this message"


def _two_values(records: pa.Table, places: npt.NDArray[np.int64]) -> str:
    first = records.slice(int(places[0]), 1).to_pylist()[0]
    return f"{first['metric']} of {first['entity']} has two values at one time, {first['value']:g} and another one"


_ODD = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))


def _twice(records: pa.Table) -> npt.NDArray[np.bool_] | None:
    """Whether each sample has machine, metric, time and message of another one with another value; ``None``: none."""
    if records.num_rows < 2:
        return None
    entity, metric = (records.column(name).combine_chunks() for name in ("entity", "metric"))
    series = entity.indices.to_numpy().astype(np.int64) * len(metric.dictionary) + metric.indices.to_numpy()
    rows, times = records.column(ROW).to_numpy(), records.column("time").to_numpy()
    parts = (series, rows.astype(np.int64), times)
    mixed = np.bitwise_xor.reduce([part.view(np.uint64) * odd for part, odd in zip(parts, _ODD, strict=True)])
    order = np.argsort(mixed, kind="stable")
    same = np.diff(mixed[order]) == 0
    if not same.any():
        return None
    values = records.column("value").to_numpy()[order]
    differs = same & (values[1:] != values[:-1])
    found = np.zeros(len(order), np.bool_)
    found[order[1:][differs]] = found[order[:-1][differs]] = True
    return found if found.any() else None
