"""Puts columns of samples together to a decoded table; common to the decoders that work by the column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from engine.formats.json_decoder import FIELD_INVALID
from engine.spec.decoder import ROW, Decoded
from pipelines.contracts.records import Telemetry
from pipelines.jobs.normalize.labels import FOLDED
from pipelines.jobs.normalize.refusals import MACHINE_UNKNOWN, MESSAGE_EMPTY, NO_MACHINE, Refusals

LONGEST = 512
"""The most characters of the name of a machine or a metric."""


@dataclass
class Coded:
    """A column of few distinct texts: ``texts[codes]``."""

    codes: npt.NDArray[np.int64]
    texts: Sequence[str]

    def array(self) -> pa.Array:
        """The column as a dictionary of the texts in use."""
        used, dense = np.unique(self.codes, return_inverse=True)
        values = [self.texts[code] for code in used.tolist()]
        first: dict[str, int] = {}
        where = np.array([first.setdefault(value, len(first)) for value in values], np.int32)
        indices = where[dense] if len(where) else np.zeros(0, np.int32)
        return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(list(first), pa.string()))


def table(
    rows: npt.NDArray[np.int32], times: npt.NDArray[np.int64], entity: Coded, metric: Coded,
    values: npt.NDArray[np.float64], kind: Coded, refusals: Refusals,
) -> Decoded:  # fmt: skip
    """The decoded samples, without NaN (an agent's mark of no value) and without those of refused messages.

    Args:
        rows: Index of the message of each sample, ascending; all columns have shape (n,).
        times: Epoch milliseconds.
        entity: The machines; without a machine the message is refused.
        metric: The names of the metrics.
        values: The values.
        kind: The kinds of the metrics.
        refusals: What has been refused so far; too long names, and messages without any value, are added.
    """
    _refuse_names(rows, entity, metric, refusals)
    there = ~np.isnan(values)
    empty = np.setdiff1d(rows, rows[there]) if not there.all() else np.zeros(0, np.int32)
    for row in empty.tolist():
        refusals.add(row, MESSAGE_EMPTY, "all values are NaN; accepted: at least one number")
    if refusals.whole:
        there &= ~np.isin(rows, np.fromiter(refusals.whole, np.int64))
    schema = Telemetry.arrow_schema().append(pa.field(ROW, pa.int32()))
    arrays = [pa.array(times), entity.array(), metric.array(), pa.array(values), kind.array(), pa.array(rows)]
    made = pa.Table.from_arrays(arrays, schema=schema)
    made = made if there.all() else made.filter(pa.array(there))
    folded = any(f"={FOLDED}" in text for text in metric.texts)
    return Decoded(_combined(made) if folded else made, refusals.all())


def _refuse_names(rows: npt.NDArray[np.int32], entity: Coded, metric: Coded, refusals: Refusals) -> None:
    for column, what in ((entity, "machine"), (metric, "metric")):
        bad = [code for code, text in enumerate(column.texts) if not 0 < len(text) <= LONGEST]
        for at in np.flatnonzero(np.isin(column.codes, bad)).tolist() if bad else ():
            if what == "metric" or column.texts[column.codes[at]]:
                why = f"the name of the {what} is empty or longer than {LONGEST} characters"
                refusals.add(int(rows[at]), FIELD_INVALID, why)
            else:
                refusals.add(int(rows[at]), MACHINE_UNKNOWN, NO_MACHINE)


def _combined(made: pa.Table) -> pa.Table:
    """Samples of one message that folding has made the same series become one: the sum of counters, else the mean."""
    frame = pl.from_arrow(made)
    assert isinstance(frame, pl.DataFrame)
    key = [ROW, "time", "entity", "metric", "kind"]
    if not frame.select(key).is_duplicated().any():
        return made
    add = pl.col("kind").cast(pl.String).is_in(["counter", "count", "rate"]).first()
    one = pl.when(add).then(pl.col("value").sum()).otherwise(pl.col("value").mean())
    found = frame.group_by(key, maintain_order=True).agg(one.alias("value"))
    arrays = []
    for column in made.schema:
        texts = pa.types.is_dictionary(column.type)
        array = found[column.name].cast(pl.String).to_arrow() if texts else found[column.name].to_arrow()
        arrays.append(array.cast(pa.string()).dictionary_encode() if texts else array.cast(column.type))
    return pa.Table.from_arrays(arrays, schema=made.schema)
