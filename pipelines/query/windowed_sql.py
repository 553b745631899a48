"""Takes the event-time windows out of a query's text, so that plain SQL over columns is left.

    SELECT entity, window_start, avg(value) FROM tumble(telemetry, time, '10s') GROUP BY entity, window_start
    SELECT entity, window_start, max(value) FROM hop(telemetry, time, '10s', '1m') GROUP BY entity, window_start
    SELECT tumble(time, '10s') AS window_start, count(*) FROM telemetry GROUP BY tumble(time, '10s')

After FROM or JOIN, ``tumble`` and ``hop`` are tables: they hold each row once per window that it lies in, with the
columns ``window_start`` and ``window_end``. Elsewhere, ``tumble`` is the start of the row's window. Times are integers,
UTC epoch milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Tokenizer

from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError

_OPERATORS = frozenset("+-*/%|<>=")


def headings(tokens: Sequence[str]) -> dict[int, str]:
    """The aliases that must be added to the expressions of the outermost SELECT.

    Args:
        tokens: The tokens of the query, with white space.

    Returns:
        Aliases, by the index of the token before which the alias is inserted.

    >>> tokens = ["SELECT", " ", "a", ", ", "min", "(", "x", ")", " ", "FROM", " ", "t"]
    >>> headings([*tokens[:3], ",", " ", *tokens[4:]])
    {9: 'min(x)'}
    """
    places, depth, begun, item = dict[int, str](), 0, False, list[int]()
    for place, token in enumerate([*tokens, "FROM"]):
        depth += (token == "(") - (token == ")")
        word = token.upper() if depth == 0 else ""
        if not begun:
            begun = word == "SELECT"
            continue
        if word in ("FROM", ",", ";"):
            if _needs_name([tokens[at] for at in item]):
                places[item[-1] + 1] = "".join(tokens[item[0] : item[-1] + 1])
            item = []
            if word != ",":
                break
        elif token.strip() and not (word in ("DISTINCT", "ALL") and not item):
            item.append(place)
    return places


def _needs_name(item: Sequence[str]) -> bool:
    """True if an expression is a call or a calculation without an alias; columns and ``*`` need no alias."""
    depth, calculated = 0, False
    for token in item:
        depth += (token == "(") - (token == ")")
        if depth == 0:
            if token.upper() == "AS":
                return False
            calculated = calculated or token in _OPERATORS
    if len(item) < 2 or item[-1] == "*":
        return False
    return item[-1] == ")" or (calculated and item[-2] in _OPERATORS)


START, END = "window_start", "window_end"
_NAME, _PART = re.compile(r"[A-Za-z_][\w.\-]*"), re.compile(r"[\w.\-]+")
_EXAMPLE = "e.g. tumble(telemetry, time, '10s'), hop(telemetry, time, '10s', '1m')"
_FUNCTIONS = ("tumble", "hop", "session")


@dataclass(frozen=True)
class Spec:
    """An event-time window of a query.

    Attributes:
        table: The topic; ``None`` for ``tumble`` as an expression, which applies to all tables.
        column: The event-time column.
        every: Milliseconds from one window to the next.
        size: Length of a window, milliseconds.
    """

    table: str | None
    column: str
    every: int
    size: int


@dataclass(frozen=True)
class Query:
    """A query whose window functions have been taken out.

    Attributes:
        text: The SQL that Polars executes; the table of the i-th window is named `placeholder` (i).
        specs: The windows.
        words: All names in the text; some of them are tables.
    """

    text: str
    specs: tuple[Spec, ...]
    words: frozenset[str]

    def topics(self, names: Iterable[str]) -> list[str]:
        """Which of the known topics the query may read."""
        wanted = {*self.words, *(spec.table for spec in self.specs)}
        return sorted(topic for topic in names if topic in wanted)


def placeholder(number: int) -> str:
    """The name of the table of the i-th window."""
    return f"__windows_{number}"


def parse(text: str) -> Query:
    """Takes the windows out of a query.

    Raises:
        NewnormalError: ``SQL_WINDOW`` if a window function does not have the form of the examples above, or is a
            session, which only standing queries have (`pipelines.query.standing`); ``SQL_INVALID`` if a quoted text or
            a comment has no end.

    >>> parse("SELECT tumble(time, '10s') AS w FROM x").text
    'SELECT (time - time % 10000) AS w FROM x'
    >>> parse("SELECT * FROM hop(x, time, '1s', '1m')").specs
    (Spec(table='x', column='time', every=1000, size=60000),)
    """
    tokens = _tokens(text)
    out: list[str] = []
    specs: list[Spec] = []
    words: set[str] = set()
    names = headings(tokens)
    at, before = 0, ""
    while at < len(tokens):
        token = tokens[at]
        out.append(_alias(names.get(at)))
        if token.lower() in _FUNCTIONS and "".join(tokens[at + 1 : at + 3]).strip().startswith("("):
            arguments, at = _arguments(tokens, at + 1)
            out.append(_window(token.lower(), arguments, before.lower() in ("from", "join"), specs))
            before = ")"
            continue
        if token[0].isalpha() or token[0] in '_"':
            words.add(token.strip('"'))
        out.append(token)
        before = token if token.strip() else before
        at += 1
    out.append(_alias(names.get(len(tokens))))
    return Query("".join(out), tuple(specs), frozenset(words))


def _alias(name: str | None) -> str:
    return "" if name is None else ' AS "' + name.replace('"', '""') + '"'


def windowed(frame: pl.DataFrame, spec: Spec) -> pl.DataFrame:
    """Repeats each row for each window that it lies in; sets the columns ``window_start`` and ``window_end``."""
    time = pl.col(spec.column)
    pieces = []
    for step in range(-(-spec.size // spec.every)):
        start = time - time % spec.every - step * spec.every
        inside = frame.filter(time < start + spec.size)
        pieces.append(inside.with_columns(start.alias(START), (start + spec.size).alias(END)))
    return pl.concat(pieces)


def _tokens(text: str) -> list[str]:
    """The tokens of a query as written; a name with dots and dashes is one token, white space and comments a blank."""
    pieces: list[str] = []
    end = 0
    try:
        tokens = Tokenizer().tokenize(text)
    except SqlglotError as error:
        what = str(error).splitlines()[0]
        raise NewnormalError("SQL_INVALID", what, text, "quotes and comments that are closed") from None
    for token in tokens:
        piece = text[token.start : token.end + 1]
        if token.start > end:
            pieces.append(" ")
        if pieces and token.start == end and _NAME.fullmatch(pieces[-1]) and _PART.fullmatch(piece):
            pieces[-1] += piece
        else:
            pieces.append(piece)
        end = token.end + 1
    return pieces


def _arguments(tokens: list[str], at: int) -> tuple[list[str], int]:
    """The arguments of the call whose parenthesis opens at or after a token; and the index of the token after it."""
    arguments, depth = [""], 0
    for place in range(at, len(tokens)):
        token = tokens[place]
        depth += (token == "(") - (token == ")")
        if depth == 0 and token == ")":
            return [argument.strip() for argument in arguments], place + 1
        if token == "," and depth == 1:
            arguments.append("")
        elif not (token == "(" and depth == 1 and not arguments[-1]):
            arguments[-1] += token if token.strip() or arguments[-1] else ""
    raise NewnormalError("SQL_WINDOW", "a window function has no closing parenthesis", "query", _EXAMPLE)


def _window(name: str, arguments: list[str], is_table: bool, specs: list[Spec]) -> str:
    if name == "session":
        what = f"session({', '.join(arguments)}) in a query that does not run as a job"
        accepted = "tumble or hop; or newnormal sql QUERY --into TOPIC, which runs the query as a job"
        raise NewnormalError("SQL_WINDOW", what, "query", accepted)
    count = {("tumble", True): 3, ("hop", True): 4, ("tumble", False): 2}.get((name, is_table))
    if len(arguments) != count:
        what = f"{name}({', '.join(arguments)}) {'as a table' if is_table else 'as an expression'}"
        raise NewnormalError("SQL_WINDOW", what, "query", _EXAMPLE)
    plain = [argument.strip("'\"") for argument in arguments]
    lengths = [duration_ms(text, f"{name}()") for text in plain[2 if is_table else 1 :]]
    every, size = lengths[0], lengths[-1]
    if not 0 < every <= size:
        raise NewnormalError("SQL_WINDOW", f"{name}({', '.join(arguments)})", "query", "0 < every <= size")
    if is_table:
        specs.append(Spec(plain[0], plain[1], every, size))
        return placeholder(len(specs) - 1)
    specs.append(Spec(None, plain[0], every, size))
    return f"({arguments[0]} - {arguments[0]} % {every})"
