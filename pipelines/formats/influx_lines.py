r"""Parses Influx line protocol by the column: ``measurement,tag=x field=1i,text="a b" 1795220820013000000``.

Lines are split, which is several times faster than reading them with patterns. Those with backslashes, and those whose
texts in quotes are not the values of fields, are read with patterns.
"""

from __future__ import annotations

import re

import orjson
import polars as pl

from pipelines.formats.remembering import remembered

WHOLE_LINE = (
    r"(?ms)^[ \t]*#[^\n]*|^[ \t]*(?:[^ \t\n\\]|\\+[^\n\\])(?:[^ \n\\]|\\+[^\n\\])*"
    r'(?: (?:\\.|"(?:[^"\\]|\\.)*"|[^\n"\\])*)?|^[ \t]+$'
)
"""A comment, a line, or blanks. Quotes in its head stand for themselves; those of a field's text may hold line ends.

A backslash stands for itself, but before a comma, an equals sign, a blank and, within texts, a quote or a backslash:
of several backslashes the last one takes away the meaning of what follows.
"""
_HEAD = r"(?s)^(?<head>(?:[^ \\]|\\+[^\\])+) +(?<rest>.*)$"
_REST = r'(?s)^(?<fields>(?:[^ "\\]|\\+[^\\]|"(?:[^"\\]|\\.)*")+)(?<tail>(?: .*)?)$'
_FIELD = r'(?s)(?:[^,"\\]|\\+[^\\]|"(?:[^"\\]|\\.)*")+'
_PAIR = r'(?s)^(?<key>(?:[^=\\"]|\\+[^\\])+)=(?<raw>.*)$'
_TEXT = r'(?s)^"(?:[^"\\]|\\.)*"$'
_STAMP = r"^-?[0-9]{1,19}$"
_NUMBER = r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
_WHOLE = r"^[-+]?[0-9]+[iu]$"
_QUOTED, _EMPTY = r'"[^"]*"', '""'
_FLAGS = {
    **dict.fromkeys(("t", "T", "true", "True", "TRUE"), 1.0),
    **dict.fromkeys(("f", "F", "false", "False", "FALSE"), 0.0),
}
LONGEST_HEAD = 16_384
"""The most bytes of a measurement with its tags, which all fields of a line share."""
_ESCAPED = re.compile(r"\\([,= ])")
_IN_TEXT, _CONTROL = re.compile(r'\\(["\\nrt])'), {"n": "\n", "r": "\r", "t": "\t"}
_CACHED = 1 << 18
"""How many heads of lines are remembered; one takes about half a kilobyte."""


def fields(lines: pl.DataFrame) -> pl.DataFrame:
    r"""The fields of lines: a row for each, in their order.

    Args:
        lines: Columns ``row``, ``number`` and ``line``, see `pipelines.formats.text_lines`.

    Returns:
        Columns ``row``, ``number``, ``head`` (measurement and tags as they stand there), ``key``, ``raw`` (the value as
        it stands there), ``stamp`` (null if the line has none), ``value`` (null if it is text), ``text`` (true for
        text), and ``wrong``: what is wrong with the field or its line, null if nothing is.
    """
    lines = lines.filter(~pl.col("line").str.starts_with("#"))
    escaped, quoted = (pl.col("line").str.contains(mark, literal=True) for mark in ("\\", '"'))
    texts, odd = _quoted(lines.filter(quoted & ~escaped))
    found = [_plain(lines.filter(~quoted & ~escaped)), texts, _special(pl.concat([lines.filter(escaped), odd]))]
    parts = [part for part in found if part.height] or found[:1]
    return _valued(parts[0] if len(parts) == 1 else pl.concat(parts).sort("row", "number", maintain_order=True))


def _plain(lines: pl.DataFrame) -> pl.DataFrame:
    line = pl.col("line").str.split(" ").list.eval(pl.element().filter(pl.element() != ""))
    split = lines.select("row", "number", parts=line)
    parts = pl.col("parts")
    split = split.select(
        *("row", "number"),
        head=parts.list.get(0, null_on_oob=True),
        fields=parts.list.get(1, null_on_oob=True).str.split(","),
        stamp=parts.list.get(2, null_on_oob=True),
        surplus=parts.list.len() > 3,
    ).explode("fields")
    pair = pl.col("fields").str.split_exact("=", 1)
    return split.select(
        *("row", "number", "head"),
        key=pair.struct.field("field_0"),
        raw=pair.struct.field("field_1"),
        stamp=pl.col("stamp"),
        surplus=pl.col("surplus") | (pl.col("fields").str.count_matches("=", literal=True) > 1),
    )


def _quoted(lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The fields of lines with texts in quotes; and the lines that are broken, or have quotes elsewhere.

    The texts are taken out of the lines, which are then split as if they were plain, and put back.
    """
    split = _plain(lines.with_columns(pl.col("line").str.replace_all(_QUOTED, _EMPTY)))
    emptied, key = pl.col("raw") == _EMPTY, pl.col("key")
    quotes = [pl.col(name).str.contains('"', literal=True) for name in ("head", "key", "stamp")]
    quotes += [pl.col("raw").str.contains('"', literal=True) & ~emptied]
    odd = split.filter(pl.any_horizontal("surplus", *quotes, key == "", key.is_null(), pl.col("raw").is_null()))
    others = lines.clear()
    if odd.height:
        split = split.join(odd, on=("row", "number"), how="anti", maintain_order="left")
        others = lines.join(odd, on=("row", "number"), how="semi", maintain_order="left")
        lines = lines.join(odd, on=("row", "number"), how="anti", maintain_order="left")
    texts = lines["line"].str.extract_all(_QUOTED).explode()
    number = split.select((emptied.cast(pl.Int64).cum_sum() - 1).clip(0)).to_series()
    return split.with_columns(raw=pl.when(emptied).then(texts.gather(number)).otherwise("raw")), others


def _special(lines: pl.DataFrame) -> pl.DataFrame:
    split = lines.with_columns(pl.col("line").str.extract_groups(_HEAD).alias("outer")).unnest("outer")
    split = split.with_columns(pl.col("rest").str.extract_groups(_REST).alias("inner")).unnest("inner")
    listed = pl.col("fields").str.extract_all(_FIELD)
    whole = listed.list.eval(pl.element().str.len_bytes()).list.sum() + listed.list.len() - 1
    stamp = pl.col("tail").str.strip_chars(" ")
    split = split.select(
        *("row", "number", "head"),
        fields=listed,
        stamp=pl.when(stamp != "").then(stamp),
        surplus=whole != pl.col("fields").str.len_bytes(),
    ).explode("fields")
    pairs = split.with_columns(pl.col("fields").str.extract_groups(_PAIR).alias("pair")).unnest("pair")
    return pairs.select("row", "number", "head", "key", "raw", "stamp", "surplus")


def _valued(raw_fields: pl.DataFrame) -> pl.DataFrame:
    raw = pl.col("raw")
    text = raw.str.contains(_TEXT)
    whole = raw.str.contains(_WHOLE)
    digits = pl.when(whole).then(raw.str.head(-1)).otherwise(raw)
    number = pl.when(whole | raw.str.contains(_NUMBER)).then(digits.cast(pl.Float64, strict=False))
    flag = raw.replace_strict(_FLAGS, default=None, return_dtype=pl.Float64)
    raw_fields = raw_fields.with_columns(value=number, text=text.fill_null(False))
    if raw_fields["value"].null_count() > raw_fields["text"].sum():
        raw_fields = raw_fields.with_columns(value=pl.coalesce("value", flag))
    stamped = pl.col("stamp").is_null() | pl.col("stamp").str.contains(_STAMP)
    time = pl.col("stamp").cast(pl.Int64, strict=False)
    wrong = (
        pl.when(pl.col("head").is_null() | pl.col("key").is_null() | pl.col("raw").is_null() | pl.col("surplus"))
        .then(pl.lit("accepted: measurement,tag=x field=1,other=2i and a timestamp, with one blank between them"))
        .when((pl.col("head") == "") | (pl.col("key") == ""))
        .then(pl.lit("a name is empty"))
        .when((pl.col("head").str.len_bytes() > LONGEST_HEAD) | (pl.col("key").str.len_bytes() > LONGEST_HEAD))
        .then(pl.lit(f"measurement and tags, or the name of a field, have more than {LONGEST_HEAD} bytes"))
        .when(~stamped)
        .then(pl.lit("its timestamp is no integer"))
        .when(pl.col("stamp").is_not_null() & time.is_null())
        .then(pl.lit("its timestamp is beyond 64 bits"))
        .when(pl.col("value").is_null() & ~pl.col("text"))
        .then(pl.lit('a value is no number, no flag, and no text in "quotes"'))
    )
    return raw_fields.with_columns(time, wrong=wrong).drop("surplus")


@remembered(_CACHED, len)
def head(text: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    r"""The measurement and the tags, without escapes; ``None`` if a tag has no name or no value.

    >>> head(r"disk\ use,path=/a\,b,host=x")
    ('disk use', (('path', '/a,b'), ('host', 'x')))
    >>> head("cpu,host")
    """
    first, *rest = _divided(text, ",") if "\\" in text else text.split(",")
    tags = []
    for tag in rest:
        pair = _divided(tag, "=") if "\\" in tag else tag.split("=")
        if len(pair) != 2 or not all(pair):
            return None
        tags.append((unescaped(pair[0]), unescaped(pair[1])))
    return (unescaped(first), tuple(tags)) if first else None


def unescaped(text: str) -> str:
    r"""A name without the backslashes before commas, equals signs and blanks; other backslashes stand for themselves.

    >>> unescaped(r"a\,b\ c\d")
    'a,b c\\d'
    """
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def begins_line(line: bytes) -> bool:
    r"""Whether bytes are, or begin, a line of the protocol: measurement, tags, and a field that has a value.

    A broken line counts too if it has tags, so that the decoder can say what is wrong with it. JSON does not, nor do
    two pairs of ``key=value`` alone, which may be logfmt, see `may_be_line`.

    >>> [begins_line(each) for each in (b"m,uri=/{id} x=5i", b'{"a":"b,c d=1 "}', b"level=3 code=4", b"m x=1 5")]
    [True, False, False, True]
    """
    if line[:1] in (b"{", b"["):
        return _LINE.match(line) is not None and not is_json(line)
    return any(each.match(line) for each in (_LINE, _WITH_TAGS, _STAMPED))


def may_be_line(line: bytes) -> bool:
    """Whether a line is one of the protocol if its neighbours are: its measurement has an equals sign, and no tags.

    >>> may_be_line(b"m=n f=1"), may_be_line(b"m=n f=1 g=2"), begins_line(b"m=n f=1 1795220820000000000")
    (True, False, True)
    """
    return _PAIRS.match(line) is not None


_CHARS, _TAGS = rb"(?:[^ ,%s\\\n]|\\++[^\\\n])++", rb"(?:,%s=%s)"
_NAME, _MARK = _CHARS % b"", _CHARS % b"="
_TAGS = _TAGS % (_MARK, _MARK)
_KEY = _CHARS % b'="'
_VALUE = rb"(?:[-+]?[0-9.]++(?:[eE][-+]?[0-9]++)?[iu]?|[tT](?:rue|RUE)?|[fF](?:alse|ALSE)?)(?:,| *-?[0-9]*\s*$)"
_LINE = re.compile(rb"(?:%s|%s%s++) ++%s=(?:\"|%s)" % (_MARK, _NAME, _TAGS, _KEY, _VALUE))
_PAIRS = re.compile(rb"%s ++%s=(?:\"|%s)" % (_NAME, _KEY, _VALUE))
_STAMPED = re.compile(rb"%s ++%s=[^ \"\n]++ ++[0-9]{10,19}\s*$" % (_NAME, _KEY))
_WITH_TAGS = re.compile(rb"%s,(?:[^ \\\n]|\\++[^\\\n])*+ ++%s=[^ ]" % (_NAME, _KEY))


def is_json(text: bytes) -> bool:
    """Whether a text is JSON."""
    try:
        orjson.loads(text)
    except ValueError:
        return False
    return True


def quoted(raw: str) -> str:
    r"""The text of a value in quotes.

    >>> quoted(r'"say \"no\""')
    'say "no"'
    """
    return _IN_TEXT.sub(lambda found: _CONTROL.get(found[1], found[1]), raw[1:-1]) if "\\" in raw else raw[1:-1]


def _divided(text: str, mark: str) -> list[str]:
    """The parts of a text between the marks that have no backslash before them."""
    parts, at, i = [], 0, 0
    while i < len(text):
        if text[i] == "\\" and text[i + 1 : i + 2] in (",", "=", " "):
            i += 1
        elif text[i] == mark:
            parts.append(text[at:i])
            at = i + 1
        i += 1
    return [*parts, text[at:]]
