"""The decoder of StatsD and DogStatsD: each value of a line is a sample, as far as one message suffices for it.

What needs the lines of an interval (members of sets, changes of gauges, quantiles of timers) is worked out by the
gateway, see `pipelines.gateway.statsd`, which writes lines with timestamps that this decoder reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from engine.formats.json_decoder import FIELD_INVALID
from engine.spec.decoder import Decoded, Decoder, Messages
from pipelines.formats import statsd_lines
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.refusals import LINE_INVALID, MACHINE_UNKNOWN, TEXT_FIELD, Refusals, no_machine
from pipelines.formats.samples import LONGEST, Coded, Codes, codes_of, divisible, pairs_of, table
from pipelines.formats.text_lines import lines

Flags = npt.NDArray[np.bool_]
_KINDS = ("count", "gauge", "latency")
_CODES = {statsd_lines.COUNTER: 0, statsd_lines.GAUGE: 1, **dict.fromkeys(statsd_lines.DURATIONS, 2)}
_OF_AN_INTERVAL = "{subject} is known only from all lines of an interval; send them to the gateway's port of StatsD"


@dataclass(frozen=True)
class StatsdDecoder(Decoder):
    """Decodes lines such as ``web.requests:1|c|@0.1|#host:web-1``; a message may hold many.

    Counters become counts, divided by their sample rate; gauges gauges; timers, histograms and distributions latencies.
    A line without a timestamp has the time of its message's arrival. A line that cannot be used is left out, with a
    dead letter for the first of each message.

    Args:
        labels: Which tags name the machine and the series.
        changes: Whether a sign before the value of a gauge says that it is a change.
    """

    labels: LabelRule = LABELS
    changes: bool = True

    def decode(self, messages: Messages) -> Decoded:
        refusals = Refusals()
        values = self._of_message(statsd_lines.fields(lines(messages.values, refusals)))
        names, texts = codes_of(values["name"])
        tags, tag_texts = codes_of(values["tags"])
        codes, of_name, of_tags = pairs_of(names, tags, max(len(tag_texts), 1))
        named = [(texts[name], tag_texts[tag]) for name, tag in zip(of_name.tolist(), of_tags.tolist(), strict=True)]
        series = [statsd_lines.series(self.labels, *pair) for pair in named]
        reasons = {code: reason for code, pair in enumerate(series) if (reason := _unusable(*pair, *named[code]))}
        good = _leave_out(values, codes, reasons, refusals)
        values, codes = values.filter(pl.Series(good)), codes[good]
        kinds, types = codes_of(values["type"])
        stamps, rows = values["stamp"], values["row"].to_numpy()
        rates = values.select(pl.when(pl.col("type") == statsd_lines.COUNTER).then("rate").otherwise(1.0)).to_series()
        return table(
            rows,
            np.where(stamps.is_null().to_numpy(), messages.arrived[rows], stamps.fill_null(0).to_numpy()),
            Coded(codes, [machine for machine, _ in series]),
            Coded(codes, [metric for _, metric in series]),
            values["value"].to_numpy() / rates.to_numpy(),
            Coded(np.array([_CODES[kind] for kind in types], np.int64)[kinds], _KINDS),
            refusals,
        )

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        values = self._of_message(statsd_lines.fields(lines(pa.array([value]), Refusals())))
        tags, tail = pl.col("tags").fill_null(""), (pl.lit("|") + pl.col("tail")).fill_null("")
        parts = values.filter(pl.col("wrong").is_null()).select("name", tags, "raw", "type", tail).iter_rows()
        usable = [
            f"{name}:{raw}|{kind}{tail}"
            for name, tags, raw, kind, tail in parts
            if all(statsd_lines.series(self.labels, name, tags))
        ]
        if not divisible(self, value, len(usable)):
            return None
        return "\n".join(usable[at] for at in sorted(records)).encode()

    def _of_message(self, values: pl.DataFrame) -> pl.DataFrame:
        """The values; those that are known only from an interval are wrong in one message."""
        change = pl.col("change") if self.changes else pl.lit(value=False)
        unusable = (
            pl.when(pl.col("type") == statsd_lines.SET)
            .then(pl.lit(_OF_AN_INTERVAL.format(subject="the size of a set")))
            .when(change)
            .then(pl.lit(_OF_AN_INTERVAL.format(subject="a gauge of which a line says a change (+ or -)")))
        )
        return values.with_columns(wrong=pl.coalesce("wrong", unusable))


def _leave_out(values: pl.DataFrame, codes: Codes, reasons: dict[int, tuple[str, str]], refusals: Refusals) -> Flags:
    """Refuses the values that cannot be used: the message if none of it can be, else a part of it.

    Args:
        values: The values, see `statsd_lines.fields`.
        codes: The series of each value, shape (n,).
        reasons: Code and reason by the code of a series that cannot be used.
        refusals: Where the messages are added.

    Returns:
        Whether each value is used, shape (n,).
    """
    good = values["wrong"].is_null().to_numpy() & ~np.isin(codes, list(reasons))
    if good.all():
        return good
    rows, numbers, wrong = (values[name].to_list() for name in ("row", "number", "wrong"))
    used, left = set(np.array(rows)[good].tolist()), Counter(np.array(rows)[~good].tolist())
    for at in np.flatnonzero(~good).tolist():
        row = rows[at]
        if (count := left.pop(row, 0)) == 0:
            continue  # another value of the message is reported
        code, why = (_code(wrong[at]), wrong[at]) if wrong[at] else reasons[int(codes[at])]
        why = f"line {numbers[at]}: {why}" + (f"; {count - 1} more values are left out" if count > 1 else "")
        if row in used:
            refusals.parts.append((row, code, why))
        else:
            refusals.add(row, code, why)
    return good


def _unusable(machine: str, metric: str, name: str, tags: str) -> tuple[str, str] | None:
    """Code and reason why a series cannot be used; ``None`` if it can be."""
    if not metric or len(machine) > LONGEST:
        return FIELD_INVALID, f"the name of the machine, or of the metric with its tags, has over {LONGEST} characters"
    if not machine:
        return MACHINE_UNKNOWN, no_machine(label for label, _ in statsd_lines.named(name, tags)[1])
    return None


def _code(why: str) -> str:
    return TEXT_FIELD if why == statsd_lines.OTHER else LINE_INVALID
