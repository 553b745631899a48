"""Parses lines of StatsD and DogStatsD by the column: ``web.requests:1|c|@0.1|#host:web-1,code:200|T1795220820``.

Sources: statsd/docs/metric_types.md, and the datagram format of DogStatsD 1.0 to 1.3 (several values with colons
between them, the container, the timestamp). Fields behind the type that are not known are left out, as DogStatsD does.
"""

from __future__ import annotations

import re

import polars as pl

from pipelines.formats.labels import LabelRule
from pipelines.formats.remembering import remembered
from pipelines.formats.samples import LONGEST

COUNTER, GAUGE, SET = "c", "g", "s"
DURATIONS = ("ms", "h", "d")
"""Timers, histograms and distributions, which are aggregated in the same way."""
_TYPES = [COUNTER, GAUGE, SET, *DURATIONS]
_NUMBER = r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
_STAMP = r"^[0-9]{1,12}(?:\.[0-9]{1,9})?$"
_TAGGED = re.compile(r"([^,;#]+)[,;#](.+)")
_BETWEEN = re.compile(r"[,;#]")
_OTHERS = r"^(?:_e\{[0-9]+,[0-9]+\}:|_sc\|)"
LONGEST_LINE = 65_507
"""The most bytes of a line: no longer one fits into a datagram, by which StatsD is sent."""
_TOO_LONG = ""
"""Stands for a longer line, so that no copies of its parts are made; lines that come are never empty."""
OTHER = "an event or a service check is no sample; it belongs in the topic logs.agents"
SHAPE = "accepted: name:value|type, such as web.requests:1|c|@0.1|#host:web-1"


def fields(lines: pl.DataFrame) -> pl.DataFrame:
    """The values of lines: a row for each, in their order.

    Args:
        lines: Columns ``row``, ``number`` and ``line``, see `pipelines.formats.text_lines`.

    Returns:
        Columns ``row``, ``number``, ``name``, ``raw`` (the value as it stands there), ``type``, ``tail`` (what follows
        the type, null if nothing does), ``tags`` (as they stand there, null without any), ``value`` (null for members
        of sets), ``rate`` (1 if there is none), ``stamp`` (epoch milliseconds, null without one), ``change`` (whether
        it changes a gauge rather than sets it, if a sign means that), and ``wrong``: what is wrong, null if nothing is.
    """
    short = pl.col("line").str.len_bytes() <= LONGEST_LINE
    lines = lines.with_columns(line=pl.when(short).then("line").otherwise(pl.lit(_TOO_LONG)))
    parts = pl.col("line").str.splitn("|", 3)
    split = lines.select(
        *("row", "number", "line"),
        head=parts.struct.field("field_0").str.splitn(":", 2),
        type=parts.struct.field("field_1"),
        tail=parts.struct.field("field_2"),
    )
    named = pl.col("head").struct.field("field_1").is_not_null()
    packed = named & pl.col("type").str.contains(":", literal=True).fill_null(False)
    if split.select(packed.any()).item():
        lists = pl.col("line").map_elements(_unpacked, pl.List(pl.String))
        mine = split.select("row", "number", "line", packed=packed).filter("packed").with_columns(lists).explode("line")
        others = split.filter(~packed).select("row", "number", "line")
        return fields(pl.concat([others, mine.drop("packed")]).sort("row", "number", maintain_order=True))
    split = split.with_columns(
        name=pl.col("head").struct.field("field_0"),
        raw=pl.when(pl.col("type") == SET)
        .then(pl.concat_list(pl.col("head").struct.field("field_1")))
        .otherwise(pl.col("head").struct.field("field_1").str.split(":")),
    ).explode("raw")
    return _valued(split)


def _valued(split: pl.DataFrame) -> pl.DataFrame:
    raw, tail, kind = pl.col("raw"), pl.col("tail"), pl.col("type")
    rate, stamp = tail.str.extract(r"(?:^|\|)@([^|]*)"), tail.str.extract(r"(?:^|\|)T([^|]*)")
    split = split.with_columns(tags=tail.str.extract(r"(?:^|\|)#([^|]*)"), said=rate, stamped=stamp)
    split = split.with_columns(
        value=pl.when((kind != SET) & raw.str.contains(_NUMBER)).then(raw.cast(pl.Float64, strict=False)),
        rate=pl.when(pl.col("said").is_null())
        .then(1.0)
        .when(pl.col("said").str.contains(_NUMBER))
        .then(pl.col("said").cast(pl.Float64, strict=False)),
        stamp=pl.when(pl.col("stamped").str.contains(_STAMP)).then(
            (pl.col("stamped").cast(pl.Float64, strict=False) * 1000).round().cast(pl.Int64)
        ),
        change=(kind == GAUGE) & raw.str.contains("^[-+]") & pl.col("stamped").is_null(),
    )
    wrong = (
        pl.when(pl.col("line") == _TOO_LONG)
        .then(pl.lit(f"it has more than {LONGEST_LINE} bytes, the most that a datagram carries"))
        .when(pl.col("line").str.contains(_OTHERS))
        .then(pl.lit(OTHER))
        .when(raw.is_null() | kind.is_null() | (pl.col("name") == ""))
        .then(pl.lit(SHAPE))
        .when(~kind.is_in(_TYPES))
        .then(pl.lit(f"its type is none of {', '.join(_TYPES)}"))
        .when((kind != SET) & ~(pl.col("value") / pl.col("rate")).abs().lt(float("inf")).fill_null(False))
        .then(pl.lit("its value is no finite number, or its sample rate is none"))
        .when(pl.col("rate").is_null() | (pl.col("rate") <= 0))
        .then(pl.lit("its sample rate is no number above 0"))
        .when(pl.col("stamped").is_not_null() & pl.col("stamp").is_null())
        .then(pl.lit("its timestamp is no number of epoch seconds"))
    )
    return split.select(
        *("row", "number", "name", "raw", "type", "tail", "tags", "value", "rate", "stamp", "change"), wrong=wrong
    )


def _unpacked(line: str) -> list[str]:
    """The lines of one with several values that each have a type, as the first StatsD packs them.

    >>> _unpacked("gorets:1|c:2|c|@0.1")
    ['gorets:1|c', 'gorets:2|c|@0.1']
    """
    values_part, mark, tags = line.partition("|#")
    name, *values = values_part.split(":")
    return [f"{name}:{each if '|' in each else each + '|'}{mark}{tags}" for each in values]


@remembered(1 << 17, lambda rule, name, tags: len(name) + len(tags))
def series(rule: LabelRule, name: str, tags: str) -> tuple[str, str]:
    """The machine, empty if no tag names it, and the metric of a name with tags; an empty one if it is too long.

    >>> series(LabelRule(), "web.requests,host=a", "code:200,canary")
    ('a', 'web.requests{canary=true,code=200}')
    """
    name, pairs = named(name, tags)
    labels: dict[str, str] = {}
    for key, value in pairs:
        labels[key] = f"{labels[key]},{value}" if key in labels else value
    machine, inside = rule.apply(labels.items())
    return machine, f"{name}{inside}" if len(name) + len(inside) <= LONGEST else ""


def named(name: str, tags: str) -> tuple[str, list[tuple[str, str]]]:
    """The name alone, and all tags.

    Tags stand behind the name too, as Telegraf, Graphite and Librato write them: ``name,k=v``, ``name;k=v``,
    ``name#k=v``. A tag without a value is ``true``.

    >>> named("web.requests,host=a", "code:200,canary")
    ('web.requests', [('host', 'a'), ('code', '200'), ('canary', 'true')])
    """
    tagged = _TAGGED.fullmatch(name)
    pairs = [tag.partition("=") for tag in _BETWEEN.split(tagged[2])] if tagged else []
    if tagged and all(key and mark for key, mark, _ in pairs):
        name = tagged[1]
    else:
        pairs = []
    pairs += [tag.partition(":") for tag in tags.split(",")]
    return name, [(key, value if mark else "true") for key, mark, value in pairs if key and (value or not mark)]
