"""Aggregates lines of StatsD and DogStatsD over intervals, as a StatsD server does.

What an interval becomes is written as lines of StatsD with timestamps (`pipelines.formats.statsd` reads them):
counters as their sums, divided by the sample rates; gauges as the last value, with all changes; timers, histograms and
distributions as ``.count``, ``.mean``, ``.p50``, ``.p95`` and ``.max``; sets as the number of their members. The event
time is the end of the interval. Lines with timestamps of their own are passed on as they are.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from pipelines.formats import statsd_lines
from pipelines.formats.line_decoder import checked
from pipelines.formats.refusals import LINE_INVALID, Refusals, RefusedError
from pipelines.formats.rules import Rules
from pipelines.formats.samples import LONGEST
from pipelines.formats.statsd_events import StatsdEventsDecoder
from pipelines.formats.text_lines import lines

QUIET_MS = 300_000
"""How long a series of which nothing comes is still reported: a counter as 0, a gauge as it was."""
KEPT_MS = 86_400_000
"""How long the value of a gauge of which nothing comes is kept, so that a change of it can be applied."""
_MOST_VALUES = 1_000_000
"""The most values of timers, and the most members of sets, that are held of an interval."""
_MOST_BYTES = 4_000_000
"""The most bytes of events, and of lines with timestamps, that are held of an interval."""
_MESSAGE = 500_000
_SHARES = {"p50": 0.5, "p95": 0.95}
_SUFFIX = len(".count")

SERIES_LEFT_OUT = "STATSD_SERIES"


@dataclass(slots=True)
class _Series:
    """What is held of a series.

    Attributes:
        name: Its name without tags.
        tags: What follows the type in its lines.
        kind: Its type; ``ms`` for all durations.
        seen: When its last line came, epoch milliseconds.
        total: The sum of a counter; the value of a gauge; of a duration the sum of its values.
        count: Of a duration, how many values there were.
        most: The greatest value of a duration.
        values: The values of a duration and the weight of each, one after the other.
        members: Hashes of the members of a set.
    """

    name: str
    tags: str
    kind: str
    seen: int
    total: float = 0.0
    count: float = 0.0
    most: float = -np.inf
    values: array[float] = field(default_factory=lambda: array("d"))
    members: set[int] = field(default_factory=set)


class Aggregator:
    """Aggregates the lines of all senders.

    Args:
        rules: How tags are read.
        most: The most series that are held; lines of further ones are left out and counted.

    Attributes:
        left_out: How many lines could not be used, by the code of the reason.
        why: The reason of the last of them.
    """

    def __init__(self, rules: Rules, most: int = 100_000) -> None:
        self._rules, self._most = rules, most
        self._series: dict[tuple[str, str, str], _Series] = {}
        self._stamped: list[str] = []
        self._events: list[str] = []
        self._of_events = StatsdEventsDecoder(rules.labels)
        self._held = self._bytes = 0
        self.left_out: Counter[str] = Counter()
        self.why = ""

    def add(self, packets: Sequence[tuple[str, bytes]], now: int) -> None:
        """Takes lines.

        Args:
            packets: Senders' addresses, which name the machine where no tag does, and what they sent: lines.
            now: Epoch milliseconds.
        """
        refusals = Refusals()
        received = lines(pa.array([data for _, data in packets], pa.binary()), refusals)
        for code, why in refusals.whole.values():
            self._leave_out(code, why)
        peers = np.array([peer for peer, _ in packets], dtype=object)
        event = received["line"].str.contains(r"^(?:_e\{|_sc\|)")
        for row, line in received.filter(event).select("row", "line").iter_rows():
            self._take_event(line, peers[row], now)
        values = statsd_lines.fields(received.filter(~event))
        for why in values["wrong"].drop_nulls():
            self._leave_out(LINE_INVALID, why)
        values = values.filter(pl.col("wrong").is_null())
        sender = pl.Series("peer", peers[values["row"].to_numpy()].tolist(), pl.String)
        values = values.with_columns(
            sender,
            tags=pl.col("tags").fill_null(""),
            type=pl.col("type").replace(dict.fromkeys(statsd_lines.DURATIONS, "ms")),
        )
        for each in values.filter(pl.col("stamp").is_not_null()).iter_rows(named=True):
            self._pass_on(each)
        self._aggregate(values.filter(pl.col("stamp").is_null()), now)

    def flush(self, now: int) -> tuple[list[bytes], list[bytes]]:
        """The messages of an interval that ends: those of samples, and those of events.

        Args:
            now: The end of the interval, epoch milliseconds.
        """
        samples = [*self._stamped]
        for key, series in list(self._series.items()):
            quiet = now - series.seen
            if quiet <= QUIET_MS:
                samples += (f"{line}{series.tags}|T{now / 1000:.3f}" for line in _reported(series))
            elif series.kind != statsd_lines.GAUGE or quiet > KEPT_MS or len(self._series) >= self._most:
                del self._series[key]
        events = self._events
        self._stamped, self._events = [], []
        self._held = self._bytes = 0
        return list(_messages(samples)), list(_messages(events))

    def _aggregate(self, values: pl.DataFrame, now: int) -> None:
        key = ("name", "tags", "type", "peer")
        for *parts, numbers, rates, changes, members in (
            values.group_by(key, maintain_order=True).agg("value", "rate", "change", "raw").iter_rows()
        ):
            series = self._of(parts[0], parts[1], parts[2], parts[3], now)
            if series is None:
                continue
            series.seen = now
            if series.kind == statsd_lines.COUNTER:
                series.total += sum(value / rate for value, rate in zip(numbers, rates, strict=True))
            elif series.kind == statsd_lines.GAUGE:
                for value, change in zip(numbers, changes, strict=True):
                    series.total = series.total + value if change and self._rules.statsd_changes else value
            elif series.kind == statsd_lines.SET:
                before = len(series.members)
                series.members.update(map(hash, members[: max(0, _MOST_VALUES - self._held)]))
                self._held += len(series.members) - before
            else:
                self._time(series, numbers, rates)

    def _time(self, series: _Series, numbers: list[float], rates: list[float]) -> None:
        """Adds values of a duration; of those beyond the bound count, sum and maximum are kept."""
        for value, rate in zip(numbers, rates, strict=True):
            series.count += 1 / rate
            series.total += value / rate
            series.most = max(series.most, value)
            if self._held < _MOST_VALUES:
                series.values.extend((value, 1 / rate))
                self._held += 1

    def _of(self, name: str, tags: str, kind: str, peer: str, now: int) -> _Series | None:
        """The series of a line; ``None`` if it cannot be held."""
        machine, metric = statsd_lines.series(self._rules.labels, name, tags)
        key = (machine or peer, metric, kind)
        if (held := self._series.get(key)) is not None:
            return held
        if not metric or len(metric) + _SUFFIX > LONGEST or len(machine) > LONGEST:
            self._leave_out("FIELD_INVALID", f"the name of a series has more than {LONGEST} characters")
        elif len(self._series) >= self._most:
            self._leave_out(SERIES_LEFT_OUT, f"there are more than {self._most} series")
        else:
            alone, pairs = statsd_lines.named(name, tags)
            pairs += [] if machine else [(self._rules.labels.machine[0], peer)]
            labels = ",".join(f"{label}:{value}" for label, value in pairs)
            return self._series.setdefault(key, _Series(alone, f"|#{labels}", kind, now))
        return None

    def _pass_on(self, line: dict[str, Any]) -> None:
        """Keeps a line with a timestamp, with its machine."""
        if line["type"] == statsd_lines.SET:
            self._leave_out(LINE_INVALID, "a member of a set has a timestamp")
            return
        tail, machine = line["tail"], statsd_lines.series(self._rules.labels, line["name"], line["tags"])[0]
        if not machine:
            host = f"{self._rules.labels.machine[0]}:{line['peer']}"
            tail = tail.replace("#", f"#{host},", 1) if line["tags"] else f"{tail}|#{host}"
        self._keep(self._stamped, f"{line['name']}:{line['raw']}|{line['type']}|{tail}")

    def _take_event(self, line: str, peer: str, now: int) -> None:
        """Keeps an event or a check, with its machine."""
        before, mark, after = line.partition("|m:") if line.startswith("_sc|") else (line, "", "")
        why = LINE_INVALID, ""
        for candidate in (line, f"{before}|h:{peer}{mark}{after}"):  # a check's message is its last field
            try:
                checked(partial(self._of_events.lines, [candidate.encode()], now), "StatsD")
            except RefusedError as error:
                why = error.code, str(error)
            else:
                self._keep(self._events, candidate)
                return
        self._leave_out(*why)

    def _keep(self, held: list[str], line: str) -> None:
        self._bytes += len(line)
        if self._bytes <= _MOST_BYTES:
            held.append(line)
        else:
            self._leave_out(
                SERIES_LEFT_OUT, f"events and lines with timestamps of an interval exceed {_MOST_BYTES} bytes"
            )

    def _leave_out(self, code: str, why: str) -> None:
        self.left_out[code] += 1
        self.why = why


def _reported(series: _Series) -> Iterator[str]:
    """The lines of a series without its tags; what is held of the interval is forgotten."""
    name = series.name
    if series.kind == statsd_lines.GAUGE:
        yield f"{name}:{series.total!r}|g"
        return
    if series.kind == statsd_lines.SET:
        yield f"{name}:{len(series.members)}|g"
        series.members = set()
    elif series.kind == statsd_lines.COUNTER:
        yield f"{name}:{series.total!r}|c"
    else:
        yield f"{name}.count:{series.count!r}|c"
        if series.count:
            yield f"{name}.mean:{series.total / series.count!r}|ms"
            yield f"{name}.max:{series.most!r}|ms"
        if series.values:
            for part, value in _quantiles(series.values):
                yield f"{name}.{part}:{value!r}|ms"
        series.count, series.most, series.values = 0.0, -np.inf, array("d")
    series.total = 0.0


def _quantiles(values: array[float]) -> Iterator[tuple[str, float]]:
    """The least values that at least a share of all do not exceed, as `distributions.weighted` defines them."""
    pairs = np.frombuffer(values, np.float64).reshape(-1, 2)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    up_to = np.cumsum(pairs[:, 1])
    for part, share in _SHARES.items():
        yield part, float(pairs[min(int(np.searchsorted(up_to, share * up_to[-1])), len(pairs) - 1), 0])


def _messages(of: list[str]) -> Iterator[bytes]:
    """Lines as messages of a bounded size."""
    begin = size = 0
    for at, line in enumerate(of):
        size += len(line) + 1
        if size > _MESSAGE:
            yield "\n".join(of[begin : at + 1]).encode()
            begin, size = at + 1, 0
    if begin < len(of):
        yield "\n".join(of[begin:]).encode()
