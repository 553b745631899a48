"""The decoder of Influx line protocol for metrics: each field of a line that is a number or a flag is a sample."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from engine.spec.decoder import Decoded, Decoder, Messages
from pipelines.formats import influx_lines
from pipelines.formats.counters import COUNTERS, CounterRule
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.measurement import TEXT, TextRule, epochs_ms, series_tags
from pipelines.formats.refusals import LINE_INVALID, MESSAGE_EMPTY, Refusals
from pipelines.formats.samples import (
    LONGEST,
    LONGEST_METRIC,
    Coded,
    Codes,
    codes_of,
    divisible,
    is_folded,
    pairs_of,
    short,
    table,
)
from pipelines.formats.text_lines import lines


@dataclass(frozen=True)
class InfluxDecoder(Decoder):
    """Decodes lines such as ``mem,host=a used=5i,free=1.5 1795220820013000000``; a message may hold many.

    Timestamps are in seconds to nanoseconds, by their magnitude; a line without one has the time of its arrival.
    Flags are 1 or 0. A message with a broken line is refused as a whole. Fields of text are a dead letter.

    Args:
        labels: Which tags name the machine and the series.
        text: Which fields of text are left out without a dead letter.
        counters: Which metrics are counters.
    """

    labels: LabelRule = LABELS
    text: TextRule = TEXT
    counters: CounterRule = COUNTERS

    def decode(self, messages: Messages) -> Decoded:
        refusals = Refusals()
        return self.of_fields(usable_fields(messages, refusals), messages, refusals)

    def of_fields(self, fields: pl.DataFrame, messages: Messages, refusals: Refusals) -> Decoded:
        """Decodes the fields of messages, see `usable_fields`."""
        self._report(fields.filter(pl.col("text")), refusals)
        fields = fields.filter(~pl.col("text"))
        heads, texts = _heads_of(fields)
        keys, raw_keys = codes_of(fields["key"])
        entities, measured, pairs = self._heads(texts)
        metrics, of_head, of_key = pairs_of(measured[heads], keys, max(len(raw_keys), 1))
        plain = [influx_lines.unescaped(key) for key in raw_keys]
        named = [(*pairs[head], plain[key]) for head, key in zip(of_head, of_key, strict=True)]
        counters = np.array([self.counters.says(f"{name}.{key}") for name, _, key in named], np.int64)
        return table(
            fields["row"].to_numpy(),
            times_of(fields, messages),
            Coded(entities.codes[heads], entities.texts),
            Coded(metrics, [short(f"{name}.{key}{instance}") for name, instance, key in named]),
            fields["value"].to_numpy(),
            Coded(counters[metrics], ("gauge", "counter")),
            refusals,
        )

    def is_plain(self, head: str, longest: int) -> bool:
        """Whether each number in a line becomes a record of its own, whatever else its message holds.

        Args:
            head: Measurement and tags of the line, without escapes.
            longest: The most characters of the name of a field.

        >>> InfluxDecoder().is_plain("cpu,host=a", 100), InfluxDecoder().is_plain("cpu", 100)
        (True, False)
        """
        name, tags = influx_lines.head(head) or ("", ())
        machine, instance = self.labels.apply(series_tags(name, tags))
        metric = f"{name}.{instance}"
        fits = 0 < len(machine) <= LONGEST and len(name) <= LONGEST and len(metric) + longest <= LONGEST_METRIC
        return bool(name) and fits and not is_folded(metric)

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        found = influx_lines.fields(lines(pa.array([value]), Refusals(), influx_lines.WHOLE_LINE))
        numbers = found.filter(~pl.col("text"))
        if not divisible(self, value, numbers.height):
            return None
        kept = numbers[sorted(records)].select("head", "key", "raw", "stamp").rows()
        ends = ("" if stamp is None else f" {stamp}" for *_, stamp in kept)
        return "\n".join(f"{k[0]} {k[1]}={k[2]}{end}" for k, end in zip(kept, ends, strict=True)).encode()

    def _heads(self, heads: list[str]) -> tuple[Coded, Codes, list[tuple[str, str]]]:
        """Of measurements with tags: the machine of each; the code of its name and instance; and these by code."""
        entities: dict[str, int] = {}
        measured: dict[tuple[str, str], int] = {}
        codes = np.zeros((len(heads), 2), np.int64)
        for at, text in enumerate(heads):
            name, tags = influx_lines.head(text) or ("", ())
            machine, instance = self.labels.apply(series_tags(name, tags))
            codes[at] = (
                entities.setdefault(machine, len(entities)),
                measured.setdefault((name, instance), len(measured)),
            )
        return Coded(codes[:, 0], list(entities)), codes[:, 1], list(measured)

    def _report(self, texts: pl.DataFrame, refusals: Refusals) -> None:
        """Adds a dead letter for each message with fields of text that are not left out."""
        for row, *fields in texts.group_by("row", maintain_order=True).agg("head", "key").iter_rows():
            names = [(influx_lines.head(head) or ("", ()))[0] for head in fields[0]]
            keys = map(influx_lines.unescaped, fields[1])
            refusal = self.text.refusal(f"{name}.{key}" for name, key in zip(names, keys, strict=True))
            refusals.parts += [(row, *refusal)] if refusal else []


def _heads_of(fields: pl.DataFrame) -> tuple[Codes, list[str]]:
    """`codes_of` the heads of fields. Fields of a line share its head, which is not repeated in memory for each."""
    begins = begin_lines(fields)
    codes, texts = codes_of(fields["head"].filter(pl.Series(begins)))
    return codes[np.cumsum(begins) - 1], texts


def begin_lines(fields: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether each field is the first one of its line, shape (n,)."""
    place = fields.select("row", "number").to_numpy()
    begins = np.ones(len(place), bool)
    begins[1:] = (place[1:] != place[:-1]).any(axis=1)
    return begins


def usable_fields(messages: Messages, refusals: Refusals) -> pl.DataFrame:
    """The fields of all messages without a broken line, see `influx_lines.fields`; adds the others to ``refusals``."""
    split = lines(messages.values, refusals, influx_lines.WHOLE_LINE)
    fields = influx_lines.fields(split)
    heads = fields["head"].unique().drop_nulls()
    heads = heads.filter(heads.str.len_bytes() <= influx_lines.LONGEST_HEAD)
    broken = [text for text in heads.to_list() if not 0 < len((influx_lines.head(text) or ("",))[0]) <= LONGEST]
    if broken:
        why = f"a tag has no name or no value, or the measurement has no name or more than {LONGEST} characters"
        fields = fields.with_columns(
            wrong=pl.when(pl.col("head").is_in(broken)).then(pl.lit(why)).otherwise(pl.col("wrong"))
        )
    bad = fields.filter(pl.col("wrong").is_not_null()).unique("row", keep="first", maintain_order=True)
    for row, number, why in bad.select("row", "number", "wrong").iter_rows():
        refusals.add(row, LINE_INVALID, f"line {number}: {why}")
    for row in np.setdiff1d(split["row"].unique().to_numpy(), fields["row"].unique().to_numpy()).tolist():
        refusals.add(row, MESSAGE_EMPTY, "only comments; accepted: at least one line with a number")
    return fields.filter(~pl.col("row").is_in(list(refusals.whole))) if refusals.whole else fields


def times_of(fields: pl.DataFrame, messages: Messages) -> npt.NDArray[np.int64]:
    """The times of fields, epoch milliseconds; that of the message's arrival where a line has none."""
    stamps = fields["stamp"]
    times = epochs_ms(stamps.fill_null(0).to_numpy())
    return np.where(stamps.is_null().to_numpy(), messages.arrived[fields["row"].to_numpy()].astype(np.int64), times)
