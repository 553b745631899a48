"""A windowed query as a standing job: `newnormal sql QUERY --into TOPIC`.

    SELECT entity, window_start, avg(value) AS mean FROM tumble(telemetry, time, '10s')
    WHERE metric = 'cpu' GROUP BY entity, window_start HAVING count(*) > 2

The query reads one topic in a window (``tumble``, ``hop`` or ``session``), groups by columns of its records, and
selects aggregates or expressions of aggregates. It becomes a job of the engine: with a checkpoint, a late topic and a
dead-letter topic of its own, and exactly once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from sqlglot import exp, parse_one
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError

from engine.aggregates import AnyAggregate, Count, CustomAggregate, Distinct, Max, Mean, Min, Std, Sum, Variance
from engine.formats.columnar import ColumnarDecoder
from engine.formats.json_decoder import JsonDecoder
from engine.spec.decoder import Decoder
from engine.spec.derived import record_type
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.source import Source
from engine.stream import Stream
from engine.windows import Session, Sliding, Tumbling, Window
from pipelines.contracts.settings import Settings
from pipelines.jobs.sources import bounds, watermark
from pipelines.query import tables

_NOW = "no job was made"
_EXAMPLE = (
    "SELECT entity, window_end, avg(value) AS mean FROM tumble(telemetry, time, '10s') GROUP BY entity, window_end; "
    "also hop(topic, time, '10s', '1m') and session(topic, time, '30s')"
)
_WINDOWS: dict[tuple[str, int], Callable[..., Window]] = {
    ("tumble", 1): Tumbling,
    ("hop", 2): lambda every, size: Sliding(size, every=every),
    ("session", 1): Session,
}
_AGGREGATES: dict[Any, Callable[[str], AnyAggregate]] = {
    exp.Sum: Sum,
    exp.Min: Min,
    exp.Max: Max,
    exp.Avg: Mean,
    exp.Stddev: lambda column: Std(column, of_one=None),
    exp.StddevSamp: lambda column: Std(column, of_one=None),
    exp.Variance: lambda column: Variance(column, of_one=None),
}
_BOUNDS = ("window_start", "window_end")


class Sql(Postgres):
    """The SQL dialect of standing queries: that of Postgres, but ``session`` is an ordinary name."""

    class Tokenizer(Postgres.Tokenizer):
        KEYWORDS = {word: token for word, token in Postgres.Tokenizer.KEYWORDS.items() if word != "SESSION"}  # noqa: RUF012


def standing(query: str, into: str, settings: Settings) -> Job:
    """Turns a query into a job.

    Args:
        query: The text of the query.
        into: Name of the job and of the topic that it writes, without the namespace.
        settings: The settings of namespace and watermarks.

    Raises:
        NewnormalError: ``SQL_STANDING`` if the query does not have the form above; ``SQL_LIVE_TOPIC`` if its topic has
            no record type; ``COLUMN_UNKNOWN`` and other errors in the definition of a job.
    """
    try:
        tree = parse_one(query, read=Sql)
    except SqlglotError as error:
        raise _refused(str(error).splitlines()[0], query) from None
    unusual = [name for name in ("joins", "order", "limit", "distinct", "with_", "windows") if tree.args.get(name)]
    if not isinstance(tree, exp.Select) or unusual:
        raise _refused(f"{', '.join(unusual) or type(tree).__name__.lower()} in a standing query", query)
    topic, time, window = _window(tree, query)
    names = _Names()
    having = tree.args.get("having")
    outputs = {each.alias_or_name or f"column_{i}": names.of(each.unalias()) for i, each in enumerate(tree.expressions)}
    condition = names.of(having.this) if having else ""
    grouped = [each.sql(Sql) for each in (tree.args.get("group") or exp.Group()).expressions]
    key = tuple(name for name in grouped if name not in _BOUNDS)
    if not key or not names.aggregates:
        raise _refused("a standing query must group by a column of the records, and select an aggregate", query)
    stream = Stream.read(_source(topic, time, settings))
    if tree.args.get("where"):
        stream = stream.filter(tree.args["where"].this.sql(Sql))
    if names.arguments:
        stream = stream.map(None, False, **names.arguments)
    stream = stream.key_by(*key).window(window).aggregate(**names.aggregates)
    if condition:
        stream = stream.filter(condition)
    by = next((name for name, text in outputs.items() if text == key[0]), None)
    if by is None:
        raise _refused(f"the query does not select {key[0]}, by which its results are partitioned", query)
    stream = stream.select(**{name: text if text not in outputs else f'"{text}"' for name, text in outputs.items()})
    identity = [name for name, text in outputs.items() if text in key]
    columns = stream.columns
    assert columns is not None
    record = record_type("Standing", columns, identity, f"sql --into {into}")
    return stream.write(settings.topic(into), Output(settings.topic(into), record, "json", by=by))


@dataclass
class _Names:
    """Names for the aggregates of a query, and for the columns that their arguments need.

    Attributes:
        aggregates: The aggregates, by the column of their results.
        arguments: The SQL of arguments that are no plain columns, by the column that is made of them.
        columns: The column of each aggregate, by its SQL.
    """

    aggregates: dict[str, AnyAggregate] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)

    def of(self, expression: exp.Expression) -> str:
        """The SQL of an expression in which each aggregate is replaced by the column of its results."""
        return str(expression.copy().transform(self._named).sql(Sql))

    def _named(self, node: Any) -> Any:
        if not isinstance(node, exp.AggFunc):
            return node
        text = node.sql(Sql)
        if text not in self.columns:
            self.columns[text] = f"aggregate_{len(self.columns)}"
            self.aggregates[self.columns[text]] = self._aggregate(node, text)
        return exp.column(self.columns[text])

    def _aggregate(self, node: exp.AggFunc, text: str) -> AnyAggregate:
        argument = node.this
        if isinstance(node, exp.Count):
            if isinstance(argument, exp.Distinct):
                return Distinct(self._column(argument.expressions[0]))
            return Count() if isinstance(argument, exp.Star) else _present(self._column(argument))
        if type(node) not in _AGGREGATES:
            names = "count, sum, min, max, avg, stddev, variance"
            raise NewnormalError("SQL_STANDING", f"the aggregate {text} is not supported", "query", names, _NOW)
        return _AGGREGATES[type(node)](self._column(argument))

    def _column(self, argument: exp.Expression) -> str:
        """The column of an argument: the argument itself if it is a column, else a new column made of it."""
        if isinstance(argument, exp.Column):
            return argument.name
        name = f"argument_{len(self.arguments)}"
        self.arguments[name] = argument.sql(Sql)
        return name


def _present(column: str) -> AnyAggregate:
    """The aggregate that counts the records with a value in a column."""
    name = f"{column}.present"
    return CustomAggregate({name: pl.col(column).count().cast(pl.Int64)}, {name: pl.col(name).sum()}, pl.col(name))


def _window(tree: exp.Select, query: str) -> tuple[str, str, Window]:
    """Returns (topic, time column, window) of a query."""
    table = (tree.args.get("from_") or tree.args.get("from") or exp.From()).this
    call = table.this if isinstance(table, exp.Table) else None
    if not isinstance(call, exp.Anonymous) or len(call.expressions) < 3:
        raise _refused("a standing query must read its topic through a window", query)
    topic, time, *lengths = call.expressions
    make = _WINDOWS.get((str(call.this).lower(), len(lengths)))
    texts = [length.name for length in lengths]
    if make is None or not all(length.is_string for length in lengths):
        raise _refused(call.sql(Sql), query)
    for text in texts:
        duration_ms(text, f"{call.this}()")
    return topic.sql(Sql).replace('"', ""), time.name, make(*texts)


def _source(name: str, time: str, settings: Settings) -> Source:
    record = tables.record_of(name)
    if record is None:
        typed = ", ".join([*tables.COLUMNAR, *tables.JSON])
        raise NewnormalError("SQL_LIVE_TOPIC", f"the topic {name} has no record type", "query", typed, _NOW)
    topic = settings.topic(name)
    columnar = name in tables.COLUMNAR
    decoder: Decoder = ColumnarDecoder(record) if columnar else JsonDecoder(record)
    return Source({topic: decoder}, record, time, watermark(settings, topic), bounds(settings), columnar=columnar)


def _refused(why: str, query: str) -> NewnormalError:
    return NewnormalError("SQL_STANDING", why, query, _EXAMPLE, _NOW)
