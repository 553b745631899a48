r"""The decoder of logfmt: ``time=2026-11-21T00:27:00Z level=error msg="no entry" user=7``.

Sources: what go-kit, logrus, slog's TextHandler and Heroku's router write.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from pipelines.formats.labels import LABELS, LabelRule, machine_and_port
from pipelines.formats.text_logs import PARTS, TextLogDecoder, unescaped

_PAIR = r'[^\s="]+=(?:"(?:[^"\\]|\\.)*"|[^\s"]*)'
_KEYS = {
    "stamp": ("time", "ts", "timestamp", "t", "@timestamp", "date", "datetime"),
    "severity": ("level", "lvl", "severity", "log.level"),
    "message": ("msg", "message"),
    "program": ("process.name", "program", "service.name", "service", "app", "component", "logger", "container"),
}
"""Keys of each part; of several that a line has, the first one here counts."""

_BEGINS = re.compile(rb'[A-Za-z_@][\w.@/-]*=(?:"(?:[^"\\]|\\.)*"|[^\s",]*)(?:\s|$)')
_LOG = re.compile(rb"(?:^|\s)(?:level|lvl|severity|msg|message)=")


def looks_like_logfmt(value: bytes) -> bool:
    """Whether a message begins with a pair of key and value, and its first line has a level or a text."""
    return _BEGINS.match(value) is not None and _LOG.search(value.split(b"\n", 1)[0]) is not None


@dataclass(frozen=True)
class LogfmtDecoder(TextLogDecoder):
    """Decodes pairs of keys and values. The text is the value of ``msg`` or ``message``, else the whole line.

    Args:
        labels: Which keys name the machine.
    """

    labels: LabelRule = LABELS

    accepted = 'accepted: time=2026-11-21T00:27:00Z level=info msg="text" key=value'

    def parts(self, rest: pl.DataFrame) -> pl.DataFrame:
        rest = rest.with_row_index("line_number")
        pairs = rest.select("line_number", pair=pl.col("line").str.extract_all(_PAIR)).explode("pair").drop_nulls()
        split = pl.col("pair").str.splitn("=", 2)
        pairs = pairs.select("line_number", key=split.struct.field("field_0"), value=split.struct.field("field_1"))
        lines = rest
        for name, keys in (*_KEYS.items(), ("entity", self.labels.machine)):
            order = {key: place for place, key in enumerate(keys)}
            mine = pairs.filter(pl.col("key").is_in(keys)).with_columns(
                pl.col("key").replace_strict(order, return_dtype=pl.Int64)
            )
            best = mine.sort("key", maintain_order=True).unique("line_number", keep="first", maintain_order=True)
            best = best.select("line_number", pl.Series(name, _meant(best["value"]), pl.String))
            lines = lines.join(best, on="line_number", how="left", maintain_order="left")
        has_pairs = pl.col("line_number").is_in(pairs["line_number"].unique().implode())
        names = pl.col("entity").unique().drop_nulls()
        hosts = {text: machine_and_port(text)[0] for text in lines.select(names).to_series()}
        lines = lines.with_columns(
            pl.when(has_pairs).then(pl.coalesce("message", "line")).alias("message"),
            pl.col("entity").replace(hosts),
            *(pl.lit(None, pl.String).alias(name) for name in ("more", "stream")),
        )
        return lines.select(*("row", "number", "line"), *PARTS)


def _meant(values: pl.Series) -> pl.Series:
    quoted = values.str.starts_with('"')
    if not quoted.any():
        return values
    inner = values.str.strip_prefix('"').str.strip_suffix('"')
    escaped = quoted & values.str.contains("\\", literal=True)
    return unescaped(inner, escaped) if escaped.any() else values.zip_with(~quoted, inner)
