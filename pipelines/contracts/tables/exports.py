"""CSV as some programs export it, made plain: InfluxDB's annotated CSV, sadf of sysstat, and typeperf of Windows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from pipelines.contracts.tables.columns import VALUE

MARK = "\0"
"""Begins the names of columns that are no columns of the CSV; they are kept as they are."""

_ANNOTATION = re.compile(r"#(?:group|datatype|default)\b")
_EXCEL = "sep="
"""Begins a line that tells Excel the separator."""
_SADF = "# hostname"
_FLUX_BEGIN = ("", "result", "table")
_FLUX_LINE = ",result,table,"
_FLUX_OWN = ("result", "table", "_start", "_stop")
_PDH = re.compile(r"\(PDH-CSV [0-9.]+\)(?: \(.*\)\((?P<behind>-?[0-9]{1,4})\))?")
_COUNTER = r"^\\\\(?P<host>[^\\]+)\\(?P<object>[^\\]+?)(?:\((?P<instance>.*)\))?\\(?P<counter>[^\\]+)$"
_PDH_TIME = r"^([0-9][0-9])/([0-9][0-9])/([0-9]{4}) (.*)$"


@dataclass(frozen=True)
class Header:
    """The first line of a table, with what stood above it.

    Args:
        names: The names of the columns.
        types: The types of the columns as InfluxDB annotates them; empty if it does not.
        defaults: What stands for empty fields; empty if nothing does.
    """

    names: tuple[str, ...]
    types: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()


class Headers:
    """Tells lines of fields from headers and annotations, of which a text may have several."""

    def __init__(self) -> None:
        self._above: dict[str, tuple[str, ...]] = {}
        self.header: Header | None = None

    def is_line(self, fields: Sequence[str]) -> bool:
        """Whether some fields are a line below a header; otherwise they are a header, or belong to one."""
        begin = fields[0] if fields else ""
        if begin[:1] == "#" and (annotation := _ANNOTATION.fullmatch(begin)):
            self._above[annotation[0][1:]] = tuple(fields)
            self.header = None
            return False
        if self.header is None and begin.startswith(_EXCEL):
            return False
        if self.header is None or begin == _SADF or tuple(fields[:3]) == _FLUX_BEGIN:
            self.header = Header(tuple(fields), self._above.get("datatype", ()), self._above.get("default", ()))
            self._above = {}
            return False
        return True


def is_annotation(line: str) -> bool:
    """Whether a line stands above a header, as InfluxDB and programs that export for Excel write it."""
    return line.startswith(_EXCEL) or _ANNOTATION.match(line) is not None


def is_header(line: str) -> bool:
    """Whether a line begins another table by itself, as those of Flux and sadf may."""
    return line.startswith((_FLUX_LINE, _SADF))


def is_restart(fields: Sequence[str]) -> bool:
    """Whether a line of sadf says that the machine started: it has fewer fields than the header, and no numbers."""
    return len(fields) == 4 and fields[3].startswith(("LINUX-RESTART", "COM"))


def several(text: str) -> bool:
    """Whether lines may stand above a header, and a text hold several: annotated CSV, what sadf and Excel write."""
    return text.startswith(("#", _FLUX_LINE, _EXCEL))


@dataclass(frozen=True)
class Plain:
    """A table with the usual names of columns.

    Args:
        frame: Its columns of text, and those whose names begin with `MARK`.
        labels: The columns that tell series apart, whatever they hold.
    """

    frame: pl.DataFrame
    labels: frozenset[str] = frozenset()


def plain(frame: pl.DataFrame, header: Header) -> Plain:
    """A table with the names of columns that are usual, from one that a program wrote with its own.

    Args:
        frame: Columns of text, null or empty where a field is empty, and others whose names begin with `MARK`.
        header: The header of the table, whose names are those of the columns.
    """
    names = [name for name in frame.columns if not name.startswith(MARK)]
    counters = [name for name in names[1:] if name.startswith("\\\\")]
    if counters and (pdh := _PDH.fullmatch(names[0].strip())):
        return _typeperf(frame, names[0], counters, "" if pdh["behind"] is None else _zone(-int(pdh["behind"])))
    if names and names[0] == _SADF:
        return _sadf(frame, names)
    if "_time" in names and ("_measurement" in names or "_field" in names):
        return _flux(frame, names, header)
    return Plain(frame)


def _flux(frame: pl.DataFrame, names: list[str], header: Header) -> Plain:
    defaults = {name: text for name, text in zip(header.names, header.defaults, strict=False) if text}
    filled = [
        pl.when(pl.col(name).fill_null("") == "").then(pl.lit(defaults[name])).otherwise(name).alias(name)
        for name in names
        if name in defaults
    ]
    parts = [name for name in ("_measurement", "_field") if name in names]
    metric = pl.concat_str(parts, separator=".", ignore_nulls=True).alias("metric")
    made = frame.with_columns(filled).with_columns(metric).drop(*parts)
    made = made.drop(name for name in names if not name.strip() or name in _FLUX_OWN)
    texts = {name for name, kind in zip(header.names, header.types, strict=False) if kind == "string"}
    labels = texts.intersection(made.columns) - {"_value", *_FLUX_OWN}
    return Plain(made.rename({"_value": VALUE, "_time": "time"}, strict=False), frozenset(labels))


def _sadf(frame: pl.DataFrame, names: list[str]) -> Plain:
    """The activity of a machine: what it is of, such as CPU or DEV, stands in capitals behind the time."""
    labels = [name for name in names[3:4] if name == name.upper() and name != name.lower()]
    cpus = [pl.col(name).replace("-1", "all") for name in labels if name == "CPU"]
    made = frame.drop("interval", strict=False).with_columns(cpus).rename({_SADF: "hostname"})
    return Plain(made, frozenset(labels))


def _typeperf(frame: pl.DataFrame, stamp: str, counters: list[str], zone: str) -> Plain:
    r"""A line a counter, from columns such as ``\\web-1\Processor(_Total)\% Processor Time``.

    Args:
        frame: The table.
        stamp: The name of the column that holds the time.
        counters: Those of the columns of counters, one at least.
        zone: What follows its times: their offset from UTC; empty if it is not told.
    """
    kept = [name for name in frame.columns if name.startswith(MARK)]
    time = pl.col(stamp).str.replace(_PDH_TIME, f"$3-$1-$2 $4{zone}")
    order = pl.int_range(pl.len()).alias(f"{MARK}order")
    long = frame.select(*kept, time.alias("time"), *counters, order).unpivot(
        counters, index=[*kept, "time", f"{MARK}order"], variable_name=f"{MARK}counter", value_name=VALUE
    )
    groups = pl.col(f"{MARK}counter").str.extract_groups(_COUNTER)
    host, group, instance, counter = (groups.struct.field(name) for name in ("host", "object", "instance", "counter"))
    metric = pl.concat_str([group, counter], separator=".")
    made = long.sort(f"{MARK}order", maintain_order=True).select(
        *kept, "time", host.alias("host"), metric.alias("metric"), instance.alias("instance"), VALUE
    )
    return Plain(made, frozenset({"instance"}))


def _zone(ahead: int) -> str:
    """The offset of times that are ahead of UTC by some minutes, as it follows them."""
    return f"{'+' if ahead >= 0 else '-'}{abs(ahead) // 60:02}:{abs(ahead) % 60:02}"
