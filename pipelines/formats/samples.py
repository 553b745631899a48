"""Columns of samples, and of codes of texts, as a decoded table: common to the decoders that work by the column."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from engine.formats.json_decoder import FIELD_INVALID
from engine.spec.decoder import ROW, Decoded, Decoder, Messages
from pipelines.contracts.records import Telemetry
from pipelines.contracts.records.telemetry import RESERVED
from pipelines.formats.labels import FOLDED
from pipelines.formats.refusals import MACHINE_UNKNOWN, MESSAGE_EMPTY, Refusals, no_machine

LONGEST = 512
"""The most characters of the name of a machine."""
LONGEST_METRIC = 1_024
"""The most characters of the name of a metric with its labels; Istio's standard metrics have some 900."""
_RESERVED = re.compile(RESERVED.pattern)
_SHOWN = 100
_CUT = "\0"
"""Ends the beginning of a name that is too long."""
LONGEST_LABELS = 16_384
"""The most characters of labels that several samples of a message share."""


Codes = npt.NDArray[np.int64]


@dataclass
class Coded:
    """A column of few distinct texts: ``texts[codes]``."""

    codes: Codes
    texts: Sequence[str]

    def array(self) -> pa.Array:
        """The column as a dictionary of the texts in use."""
        used, dense = np.unique(self.codes, return_inverse=True)
        values = [self.texts[code] for code in used.tolist()]
        first: dict[str, int] = {}
        where = np.array([first.setdefault(value, len(first)) for value in values], np.int32)
        indices = where[dense] if len(where) else np.zeros(0, np.int32)
        return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(list(first), pa.string()))


def codes_of(column: pl.Series) -> tuple[Codes, list[str]]:
    """The number of each row's text among the distinct texts, and these texts; null counts as empty.

    >>> codes_of(pl.Series(["b", "a", "b", None]))
    (array([0, 1, 0, 2]), ['b', 'a', ''])
    """
    encoded = column.fill_null("").to_arrow().dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def pairs_of(first: Codes, second: Codes, seconds: int) -> tuple[Codes, Codes, Codes]:
    """The number of each row's pair of codes among the distinct pairs; and for each pair its two codes.

    Args:
        first: Codes, shape (n,).
        second: Codes from 0 to ``seconds - 1``, shape (n,).
        seconds: Number of codes of the second column.
    """
    encoded = pa.array(first * seconds + second).dictionary_encode()
    distinct = encoded.dictionary.to_numpy()
    return encoded.indices.to_numpy().astype(np.int64), distinct // seconds, distinct % seconds


def short(metric: str) -> str:
    """The name of a metric; of one that is too long only the beginning, marked, which `table` refuses with its name."""
    return metric if len(metric) <= LONGEST_METRIC else metric[:_SHOWN] + _CUT


def wrong_metric(metric: str) -> str:
    """What is wrong with the name of a metric as `short` returns it; empty if nothing is.

    >>> wrong_metric("mem.used"), wrong_metric(short("m" * 5000))[100:]
    ('', '...: the name of the metric with its labels is longer than 1024 characters')
    >>> wrong_metric("_machine")
    '_machine: reserved for verdicts: `_machine`, `_living`, `_peers.` at the beginning, `~full` at the end'
    """
    if _RESERVED.search(metric):
        return f"{metric[:_SHOWN]}: {RESERVED.why}"
    if 0 < len(metric) <= LONGEST_METRIC and not metric.endswith(_CUT):
        return ""
    if not metric:
        return "the name of the metric is empty"
    begin = metric[:_SHOWN].rstrip(_CUT)
    return f"{begin}...: the name of the metric with its labels is longer than {LONGEST_METRIC} characters"


def table(
    rows: npt.NDArray[np.int32], times: npt.NDArray[np.int64], entity: Coded, metric: Coded,
    values: npt.NDArray[np.float64], kind: Coded, refusals: Refusals, lines: npt.NDArray[np.int32] | None = None,
) -> Decoded:  # fmt: skip
    """The decoded samples, without NaN (an agent's mark of no value) and without those of refused messages.

    Args:
        rows: Index of the message of each sample, ascending; all columns have shape (n,).
        times: Epoch milliseconds.
        entity: The machines; samples without a machine are left out, and reported.
        metric: The names of the metrics; so are samples whose name is too long.
        values: The values.
        kind: The kinds of the metrics.
        refusals: What has been refused so far; wrong names, and messages without any value, are added.
        lines: The line of each sample in its message, if it has one.
    """
    there = ~np.isnan(values)
    named = _named(rows, entity, metric, refusals, there, lines)
    there &= named
    empty = np.setdiff1d(rows, rows[there]) if not there.all() else np.zeros(0, np.int32)
    for row in empty.tolist():
        refusals.add(row, MESSAGE_EMPTY, "all values are NaN; accepted: at least one number")
    if refusals.whole:
        there &= ~np.isin(rows, np.fromiter(refusals.whole, np.int64))
    schema = Telemetry.arrow_schema().append(pa.field(ROW, pa.int32()))
    arrays = [pa.array(times), entity.array(), metric.array(), pa.array(values), kind.array(), pa.array(rows)]
    samples = pa.Table.from_arrays(arrays, schema=schema)
    return Decoded(samples if there.all() else samples.filter(pa.array(there)), refusals.all())


def divisible(decoder: Decoder, value: bytes, samples: int) -> bool:
    """Whether each of the samples in a message becomes a record.

    Args:
        decoder: The decoder of the message.
        value: The message.
        samples: How many samples it holds.
    """
    return bool(_records(decoder, value).num_rows == samples)


def if_same(decoder: Decoder, value: bytes, records: Collection[int], part: bytes) -> bytes | None:
    """A part of a message if it becomes the records that it is made for, and none else; otherwise ``None``.

    Args:
        decoder: The decoder of the message.
        value: The message.
        records: Positions of the records in the message.
        part: The part.
    """
    whole, again = _records(decoder, value), _records(decoder, part)
    return part if again.to_pylist() == whole.take(pa.array(sorted(records), pa.int64())).to_pylist() else None


def _records(decoder: Decoder, value: bytes) -> pa.Table:
    return decoder.decode(Messages.of([value])).records


def _named(
    rows: npt.NDArray[np.int32], entity: Coded, metric: Coded, refusals: Refusals, there: npt.NDArray[np.bool_],
    lines: npt.NDArray[np.int32] | None,
) -> npt.NDArray[np.bool_]:  # fmt: skip
    """Whether each sample has usable names; others are reported, or refuse their message if none is left."""
    machines = {code: why for code, text in enumerate(entity.texts) if (why := _wrong_machine(text))}
    metrics = {code: why for code, text in enumerate(metric.texts) if (why := wrong_metric(text))}
    bad = np.zeros(len(rows), np.bool_)
    for column, wrong in ((entity, machines), (metric, metrics)):
        if wrong:
            bad |= np.isin(column.codes, list(wrong))
    if not bad.any():
        return ~bad
    used = set(np.unique(rows[there & ~bad]).tolist())
    numbers = np.flatnonzero(bad)
    messages, first, counts = np.unique(rows[numbers], return_index=True, return_counts=True)
    for row, at, count in zip(messages.tolist(), numbers[first].tolist(), counts.tolist(), strict=True):
        name, code = metric.texts[metric.codes[at]], FIELD_INVALID
        why = metrics.get(int(metric.codes[at]), "")
        if not why:
            why = machines[int(entity.codes[at])]
            if not entity.texts[entity.codes[at]]:
                code, why = MACHINE_UNKNOWN, no_machine(_LABEL.findall(name[name.find("{") :] if "{" in name else ""))
            why = f"{name[:_SHOWN]}: {why}"
        where = f"line {int(lines[at])}: " if lines is not None else ""
        if row in used:
            refusals.parts.append((row, code, f"{count} samples are left out, the first: {where}{why}"))
        else:
            refusals.add(row, code, f"{where}{why}")
    return ~bad


_LABEL = re.compile(r"[{,]([^{},=]{1,60})=")


def _wrong_machine(name: str) -> str:
    if 0 < len(name) <= LONGEST:
        return ""
    return f"the name of the machine is longer than {LONGEST} characters" if name else "no machine"


def is_folded(metric: str) -> bool:
    """Whether a label in the name of a metric is folded."""
    return f"={FOLDED}," in metric or f"={FOLDED}}}" in metric


def folded(metrics: pa.DictionaryArray) -> npt.NDArray[np.bool_]:
    """Whether a label in each name of a metric is folded, shape (n,)."""
    texts = np.array([is_folded(text) for text in metrics.dictionary.to_pylist()], np.bool_)
    return np.asarray(texts[metrics.indices.to_numpy()])


def combined(samples: pa.Table) -> pa.Table:
    """Samples of one message that folding has made the same series become one: the sum of counters, else the mean.

    Each stands at the place of the first of them. All others are left as they are.
    """
    texts = [samples.column(name).combine_chunks() for name in ("entity", "metric", "kind")]
    kept = ~folded(texts[1])
    at = np.flatnonzero(~kept)
    entity, metric, kind = (text.indices.to_numpy()[at].astype(np.int64) for text in texts)
    series = (entity * len(texts[1].dictionary) + metric) * len(texts[2].dictionary) + kind
    keys = [series, samples.column("time").to_numpy()[at], samples.column(ROW).to_numpy()[at]]
    order = np.lexsort(keys)
    begins = np.ones(len(at), bool)
    begins[1:] = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    if begins.all():
        return samples
    first, group = order[begins], np.empty(len(at), np.int64)
    group[order] = np.cumsum(begins) - 1
    values = samples.column("value").to_numpy().copy()
    adds = np.array([each in ("counter", "count", "rate") for each in texts[2].dictionary.to_pylist()])
    sums = np.bincount(group, values[at])
    values[at[first]] = np.where(adds[kind[first]], sums, sums / np.bincount(group))
    kept[at[first]] = True
    column = samples.schema.get_field_index("value")
    return samples.set_column(column, samples.schema.field(column), pa.array(values)).filter(pa.array(kept))
