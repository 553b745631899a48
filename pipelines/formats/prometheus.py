"""The decoder of Prometheus' exposition text and of OpenMetrics: a message holds a scrape, or some of its lines."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from engine.spec.decoder import Decoded, Decoder, Messages
from pipelines.formats.counters import COUNTERS, CounterRule
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.refusals import LINE_INVALID, MESSAGE_EMPTY, Refusals
from pipelines.formats.remembering import remembered
from pipelines.formats.samples import Coded, Codes, codes_of, divisible, short, table
from pipelines.formats.text_lines import lines

_VALUE = r"\s+(?<raw>[^\s{}#]+)(?:\s+(?<stamp>[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?))?(?:\s+#\s.*)?$"
_SAMPLE = r'(?s)^(?<series>(?:[a-zA-Z_:][a-zA-Z0-9_:]*)?\s*\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\})' + _VALUE.replace(
    r"\s+", r"\s*", 1
)
"""Texts in quotes may hold whatever divides the parts of a line elsewhere; a name in quotes stands in the braces."""
_PLAIN = r"^(?<series>[a-zA-Z_:][a-zA-Z0-9_:]*(?:\s*\{[^#]*\})?)" + _VALUE
_TYPE = r'^#\s+TYPE\s+(?<family>"(?:[^"\\]|\\.)*"|\S+)\s+(?<type>\S+)$'
_NUMBER = r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
_ODD = {
    **dict.fromkeys(("NaN", "nan", "NAN", "+NaN", "-NaN"), float("nan")),
    **dict.fromkeys(("+Inf", "Inf", "inf", "+inf", "Infinity", "+Infinity", "infinity", "+infinity"), float("inf")),
    **dict.fromkeys(("-Inf", "-inf", "-Infinity", "-infinity"), float("-inf")),
}
_LABEL = r'\s*+([a-zA-Z_][a-zA-Z0-9_]*+|"(?:[^"\\]++|\\.)*+")\s*+=\s*+"((?:[^"\\]++|\\.)*+)"\s*+'
"""Possessive, as the repetitions of a group are otherwise all remembered, at 200 bytes each."""
_LABELS = re.compile(_LABEL, re.DOTALL)
_ALL_LABELS = re.compile(rf"(?:{_LABEL}(?:,|$))*+\s*", re.DOTALL)
_QUOTED_NAME = re.compile(r'\s*"((?:[^"\\]++|\\.)*+)"\s*(?:,|$)', re.DOTALL)
_ESCAPE = re.compile(r'\\(["\\n])')
_PARTS = r"_(?:bucket|sum|count|total|created)$"
COUNTING = ("_total", "_bucket", "_count", "_sum")
"""Ends of the names of counters, for samples without a type."""
_CACHED = 1 << 17
_LONGEST_LINE = 65_536
"""The most bytes of a line; a longer one is broken."""


@dataclass(frozen=True)
class PrometheusDecoder(Decoder):
    """Decodes lines such as ``http_requests_total{instance="web-1:8080",code="200"} 1027 1395066363000``.

    Timestamps are milliseconds, in OpenMetrics (a message that ends with ``# EOF``) seconds; a line without one has
    the time of its message's arrival. Counters, also the counts, sums and buckets of histograms, are counters, from
    which the extractor computes rates; quantiles of summaries are gauges. NaN is no value. A broken line is left out
    and reported; a message without any other is refused.

    If no label names the machine, ``node_uname_info`` of the node exporter in the same message does.

    Args:
        labels: Which labels name the machine and the series.
        counters: Which metrics are counters where no comment says so.
    """

    labels: LabelRule = LABELS
    counters: CounterRule = COUNTERS

    def decode(self, messages: Messages) -> Decoded:
        refusals = Refusals()
        samples = _typed(*_samples(messages, refusals), self.counters)
        series, texts = codes_of(samples["series"])
        read = [parsed(text) or ("", ()) for text in texts]
        rule = replace(self.labels, default="")
        applied = [rule.apply(labels, metric=name) for name, labels in read]
        machines: dict[str, int] = {"": 0}
        entity = np.array([machines.setdefault(machine, len(machines)) for machine, _ in applied], np.int64)[series]
        if not entity.all():
            entity = _from_uname(samples["row"].to_numpy(), series, read, entity, machines)
        if self.labels.default:
            entity = np.where(entity == 0, machines.setdefault(self.labels.default, len(machines)), entity)
        names = [short(f"{name}{instance}") for (name, _), (_, instance) in zip(read, applied, strict=True)]
        metrics = Coded(series, names)
        counter = samples["counter"].to_numpy().astype(np.int64)
        return table(
            samples["row"].to_numpy(),
            samples["time"].to_numpy(),
            Coded(entity, list(machines)),
            metrics,
            samples["value"].to_numpy(),
            Coded(counter, ("gauge", "counter")),
            refusals,
            samples["number"].to_numpy(),
        )

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        split = lines(pa.array([value]), Refusals())
        comment = pl.col("line").str.starts_with("#")
        numbers = _values(split.filter(~comment)).filter(~pl.col("value").is_nan())
        if split.filter(pl.col("line").str.starts_with("node_uname_info")).height:
            return None
        if not divisible(self, value, numbers.height):
            return None
        kept = numbers[sorted(records)]["number"]
        wanted = split.filter(comment | pl.col("number").is_in(kept.implode()))
        return "\n".join(wanted["line"].to_list()).encode()


def _samples(messages: Messages, refusals: Refusals) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The samples of messages without a broken line; and the types in their comments."""
    split = lines(messages.values, refusals)
    too_long = pl.col("line").str.len_bytes() > _LONGEST_LINE
    split = split.with_columns(line=pl.when(too_long).then(pl.lit("too long")).otherwise("line"))
    comment = pl.col("line").str.starts_with("#")
    comments = split.filter(comment)
    samples = _values(split.filter(~comment))
    strange = [text for text in samples["series"].unique().drop_nulls().to_list() if parsed(text) is None]
    wrong = pl.col("value").is_null() | pl.col("series").is_null() | pl.col("series").is_in(strange)
    seconds = comments.filter(pl.col("line").str.contains(r"^#\s+EOF$"))["row"].unique()
    scale = pl.when(pl.col("row").is_in(seconds.implode())).then(1000.0).otherwise(1.0)
    samples = samples.with_columns(time=(pl.col("at") * scale).round().cast(pl.Int64, strict=False))
    wrong |= pl.col("stamp").is_not_null() & pl.col("time").is_null()
    broken = samples.filter(wrong)
    samples = samples.filter(~wrong.fill_null(False))
    if broken.height:
        used = set(samples["row"].unique().to_list())
        firsts = broken.group_by("row", maintain_order=True).agg(pl.len(), pl.first("number"), pl.first("line"))
        for row, count, number, line in firsts.select("row", "len", "number", "line").iter_rows():
            why = f'line {number}: {line[:80]!r}; accepted: name{{label="x"}} and a number, then a timestamp'
            if row in used:
                refusals.parts.append((row, LINE_INVALID, f"{count} lines are left out, the first: {why}"))
            else:
                refusals.add(row, LINE_INVALID, why)
    for row in np.setdiff1d(split["row"].unique().to_numpy(), samples["row"].unique().to_numpy()).tolist():
        refusals.add(row, MESSAGE_EMPTY, "only comments; accepted: at least one line with a number")
    if refusals.whole:
        samples = samples.filter(~pl.col("row").is_in(list(refusals.whole)))
    arrived = pl.Series("arrived", messages.arrived[samples["row"].to_numpy()], pl.Int64)
    time = pl.coalesce(pl.col("time"), pl.col("arrived"))
    types = comments.select("row", pl.col("line").str.extract_groups(_TYPE).alias("parts")).unnest("parts")
    types = types.with_columns(pl.col("family").str.strip_chars('"'))
    types = types.drop_nulls().unique(["row", "family"], keep="last")
    return samples.with_columns(arrived).with_columns(time=time), types


def _values(split: pl.DataFrame) -> pl.DataFrame:
    """The series, value and timestamp of each line; what a line lacks, or what is no number, is null."""
    values = split.with_columns(pl.col("line").str.extract_groups(_PLAIN).alias("parts")).unnest("parts")
    series = pl.col("series")
    torn = series.is_null() | (
        pl.col("line").str.contains("#", literal=True) & (series.str.count_matches('"', literal=True) % 2 == 1)
    )
    again = values.filter(torn).select(split.columns)
    if again.height:
        again = again.with_columns(pl.col("line").str.extract_groups(_SAMPLE).alias("parts")).unnest("parts")
        values = pl.concat([values.filter(~torn), again]).sort("row", "number")
    raw = pl.col("raw")
    number = pl.when(raw.str.contains(_NUMBER)).then(raw.cast(pl.Float64, strict=False))
    odd = raw.replace_strict(_ODD, default=None, return_dtype=pl.Float64)
    values = values.with_columns(value=number, at=pl.col("stamp").cast(pl.Float64, strict=False))
    return values.with_columns(value=pl.coalesce("value", odd)) if values["value"].null_count() else values


def _typed(samples: pl.DataFrame, types: pl.DataFrame, counters: CounterRule) -> pl.DataFrame:
    """The samples, each with whether it counts: by the type of its family, else by its name."""
    name = pl.col("series").str.extract(r"^([a-zA-Z0-9_:]+)")
    name = pl.coalesce(name, pl.col("series").str.extract(r'^\s*\{\s*"((?:[^"\\]|\\.)*)"'))
    samples = samples.with_columns(name=name).with_columns(family=name.str.replace(_PARTS, ""))
    counting = pl.any_horizontal(pl.col("name").str.ends_with(end) for end in COUNTING)
    counter_names = [each for each in samples["name"].unique().drop_nulls().to_list() if counters.says(each)]
    likely = counting | pl.col("name").is_in(counter_names)
    if not types.height:
        return samples.with_columns(counter=likely)
    own = types.rename({"family": "name", "type": "own"})
    joined = samples.join(own, on=["row", "name"], how="left", maintain_order="left")
    joined = joined.join(types, on=["row", "family"], how="left", maintain_order="left")
    type_in_comment = pl.coalesce("own", "type")
    partly = pl.col("own").is_null() & counting & type_in_comment.is_in(["histogram", "summary", "counter"])
    unknown = type_in_comment.is_null() | type_in_comment.is_in(["untyped", "unknown"])
    return joined.with_columns(counter=(pl.col("own") == "counter").fill_null(False) | partly | (unknown & likely))


def _from_uname(
    rows: npt.NDArray[np.int32], series: Codes, read: list[tuple[str, tuple[tuple[str, str], ...]]], entity: Codes,
    machines: dict[str, int],
) -> Codes:  # fmt: skip
    """The machines, where no label names one: the node's own name in the same message."""
    codes = [at for at, (name, _) in enumerate(read) if name == "node_uname_info"]
    of_row = {}
    for at in np.flatnonzero(np.isin(series, codes)).tolist() if codes else ():
        nodename = dict(read[series[at]][1]).get("nodename", "")
        of_row[int(rows[at])] = machines.setdefault(nodename, len(machines))
    if not of_row:
        return entity
    nodes = np.array([of_row.get(row, 0) for row in range(int(rows.max()) + 1)])[rows]
    return np.where(entity == 0, nodes, entity)


@remembered(_CACHED, len)
def parsed(series: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    r"""The name and the labels of a series; ``None`` if they cannot be read.

    >>> parsed('up{job="a b",path="C:\\\\x\\"}"}')
    ('up', (('job', 'a b'), ('path', 'C:\\x"}')))
    >>> parsed("up{job=a}")
    """
    name, brace, inside = series.partition("{")
    inside = inside.rstrip()[:-1]
    if not name.strip():
        quoted = _QUOTED_NAME.match(inside)
        if quoted is None:
            return None
        name, inside = _ESCAPE.sub(_unescaped, quoted[1]), inside[quoted.end() :]
    if brace and not _ALL_LABELS.fullmatch(inside):
        return None
    labels = [(label.strip('"'), value) for label, value in _LABELS.findall(inside)]
    if "\\" in inside:
        labels = [(label, _ESCAPE.sub(_unescaped, value)) for label, value in labels]
    return name.strip(), tuple(labels)


def _unescaped(mark: re.Match[str]) -> str:
    return "\n" if mark[1] == "n" else mark[1]
