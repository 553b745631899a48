"""Machines beside their peers: verdicts on metrics that have become unlike those of the others of their role.

The peers of a machine are those of its role (`pipelines.contracts.roles`) in its partition, metric by metric. A
partition is in one shard, so that the number of shards does not matter. A window end is judged when the watermark has
passed it, from the windows that had come in time in the log of their partition: which these are does not depend on
micro-batches. What comes later changes nothing here, neither a verdict nor what is learned, nor do corrections by
rules; a label that comes later holds from then on.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection

import numpy as np
import polars as pl

from engine.columns.packing import LARGEST, ordered
from engine.columns.partitioning import slots
from models.config import DetectorConfig
from models.evidence.repeats import NEVER
from models.fleet.config import FleetConfig
from models.fleet.outliers import SIX_HOURS, Outliers
from models.fleet.windows import Members, Outcome
from models.numbers.arrays import Array, Columns, Flags, Ints
from models.records import Table
from models.series.course import Course
from models.verdicts import Kind
from pipelines.contracts.records import Label
from pipelines.contracts.records.label import WEIGHED
from pipelines.contracts.records.news import LIVING, LIVING_EVERY, PARTITION
from pipelines.contracts.records.novelty import JOINED, PEERS
from pipelines.contracts.roles import role_of_series
from pipelines.jobs.detectors.metrics.context import KEYS, named
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.detectors.metrics.verdict_frames import CHANNELS, SCHEMA, completed, with_nulls
from pipelines.jobs.detectors.state_table import StateTable

OUTLIER = "outlier"
_KINDS = {
    Outcome.BEGINS: (OUTLIER, Course.OPEN),
    Outcome.GROWS: (OUTLIER, Course.OPEN),
    Outcome.BACK: (Kind.RECOVERED.value, Course.CLOSED),
    Outcome.ACCEPTED: (Kind.NEW_NORMAL.value, Course.CLOSED),
    Outcome.ALONE: (Kind.NORMAL.value, Course.CLOSED),
}
"""The kind of verdict for each `Outcome`, and where its incident stands then."""

_ALONE, _UNUSED = 1, 8
"""The group of a series whose machine has no role; how many of a group's lowest bits say nothing of its role: versions
without the column ``fleet.by`` had a number of the settings there."""

_HOUR = 3_600_000 // LIVING_EVERY
"""For how many counts a machine that has sent something is counted."""


class Fleet:
    """Judges series beside those of their peers; holds no state.

    Args:
        config: The constants.
        series: Those of series.
        partitions: Into how many partitions machines are divided; 0: none is compared with others.
        labels: Names of labels of metrics that say a role, see `role_of_series`.
    """

    def __init__(
        self, config: FleetConfig, series: DetectorConfig, partitions: int, labels: tuple[str, ...] = ()
    ) -> None:
        self.outliers, self.least, self.partitions = Outliers(config, series), config.peers + 1, partitions
        self.labels, self._by = labels, np.uint32(zlib.crc32(",".join(labels).encode()) | 1).astype(np.int32)

    def new_series(self, n: int) -> Columns:
        """The state columns for n series: those of `Outliers`, and by which labels its group was found, as a number."""
        return self.outliers.new_state(n) | {"fleet.by": np.zeros(n, np.int32)}

    def judge(self, state: DetectionState, windows: pl.DataFrame, rows: Ints, taught: Flags | None) -> pl.DataFrame:
        """The verdicts on windows beside those of peers; learns from the windows.

        Args:
            state: The state; changed.
            windows: Columns ``entity``, ``metric``, ``kind``, ``window_start``, ``window_end`` and ``prompt``: the
                value that had come in time, not finite if none had.
            rows: The row of each window's series in the state, shape (n,).
            taught: Whether a window may be learned from, shape (n,); ``None``: each.
        """
        if not self.partitions:
            return pl.DataFrame(schema=SCHEMA)
        left = self._find_groups(state, rows)
        over = _left(windows, rows, *left) if len(left[0]) else pl.DataFrame(schema=SCHEMA)
        at, cell = self._cells(state, rows, windows["prompt"].to_numpy(), windows["window_end"].to_numpy())
        if not len(at):
            return over
        own, columns = rows[at], state.series.columns
        clock = columns["departure.clock"][own].astype(np.float64)
        start, end, value = (windows[name].to_numpy()[at] for name in ("window_start", "window_end", "prompt"))
        may = np.ones(len(at), np.bool_) if taught is None else taught[at]
        events = self.outliers.step(columns, Members(own, cell, start, end, value, clock, may))
        place = at[events["place"]]
        return pl.concat([over, _verdicts(windows[place], events, clock[events["place"]])])

    def apply_label(self, state: DetectionState, label: Label, series: Ints) -> None:
        """Applies a label to what some series are beside their peers.

        ``false_alarm`` and ``true``: such evidence counts less, or more; the others: the distance is usual from now on.

        Args:
            state: The state; changed.
            label: The label; of ``false_alarm`` and ``true`` one on a whole machine says nothing of single metrics.
            series: Rows of the series, shape (n,).
        """
        if label.verdict not in WEIGHED:
            self.outliers.accept(state.series.columns, series)
        elif label.metric != JOINED:
            self.outliers.learn_label(state.series.columns, series, np.full(len(series), label.verdict == "true"))
        state.series.touch(series)

    def release(self, state: DetectionState, series: Ints) -> Ints:
        """Ends what makes some series unlike their peers; returns those of which that was said.

        Args:
            state: The state; changed.
            series: Rows of series, shape (n,).
        """
        columns = state.series.columns
        unlike: Ints = series[columns["fleet.since"][series] != NEVER]
        self.outliers.release(columns, unlike)
        state.series.touch(unlike)
        return unlike

    def new_entities(self, n: int) -> Columns:
        """The state columns for n machines: the last `LIVING_EVERY` in which it sent something; its partition."""
        return {"fleet.seen": np.full(n, NEVER, np.int64), "fleet.place": np.full(n, NEVER, np.int64)}

    def kept(self, state: DetectionState, entities: Collection[str]) -> list[tuple[StateTable, Ints, Columns]]:
        """What is known of some machines beside their peers, for `restore`."""
        found = []
        for table in (state.series, state.entities):
            rows = table.rows_of(entities)
            own = {name: column[rows] for name, column in table.columns.items() if name.startswith("fleet.")}
            found.append((table, rows, own))
        return found

    @staticmethod
    def restore(kept: list[tuple[StateTable, Ints, Columns]]) -> None:
        """Puts back what is as from `kept`: no correction changes it."""
        for table, rows, own in kept:
            for name, column in own.items():
                table.columns[name][rows] = column

    def living(self, state: DetectionState, windows: pl.DataFrame, before: int, now: int) -> pl.DataFrame:
        """Counts the machines that sent something in the last hour, at each multiple of `LIVING_EVERY`.

        Args:
            state: The state, which knows the machines of the windows; changed.
            windows: All windows that end in (before, now], epoch milliseconds.
            before: The watermark before.
            now: The watermark now.

        Returns:
            Records of `News`, one for each instant in (before, now] and partition with such machines.
        """
        last, place = (state.entities.columns[f"fleet.{name}"] for name in ("seen", "place"))
        known = len(state.entities)
        new = np.flatnonzero(place[:known] == NEVER)
        if len(new):
            place[new] = slots(state.entities.index.keys[new]["entity"], max(self.partitions, 1))
        rows = np.flatnonzero(last[:known] != NEVER)
        turn: Ints = last[rows].astype(np.int64)
        if windows.height:
            came = windows.filter(pl.col("prompt").is_not_null())
            came = came.select("entity", turn=-(-pl.col("window_end") // LIVING_EVERY)).unique()
            own = state.entities.index.find(came.select(pl.col("entity").cast(pl.String)))
            turns = came["turn"].to_numpy()
            met = own >= 0
            np.maximum.at(last, own[met], turns[met])
            state.entities.touch(own[met])
            if not met.all():  # forgotten since, in this micro-batch
                gone = came["entity"].cast(pl.String).filter(pl.Series(~met))
                own[~met] = known + gone.rank("dense").to_numpy().astype(np.int64) - 1
                place = np.append(place[:known], slots(gone.unique().sort(), max(self.partitions, 1)))
            rows, turn = np.append(rows, own), np.append(turn, turns)
        at = (turn[:, None] + np.arange(_HOUR)).ravel()
        seen = pl.DataFrame({"row": np.repeat(rows, _HOUR), "at": at}).unique()
        seen = seen.filter(pl.col("at") > before // LIVING_EVERY, pl.col("at") <= now // LIVING_EVERY)
        if not seen.height:
            return pl.DataFrame()
        seen = seen.with_columns(place=pl.Series(place[seen["row"].to_numpy()].astype(np.int64)))
        counts = seen.group_by("at", "place").len().sort("at", "place")
        end_of = pl.col("at") * LIVING_EVERY
        return counts.select(
            entity=pl.lit(PARTITION) + pl.col("place").cast(pl.String),
            metric=pl.lit(LIVING),
            window_start=end_of - _HOUR * LIVING_EVERY,
            window_end=end_of,
            kind=pl.lit(Kind.NORMAL.value),
            record_score=pl.lit(0.0),
            actual=pl.col("len").cast(pl.Float64),
            revision=pl.lit(0, pl.Int64),
        )

    def _cells(self, state: DetectionState, rows: Ints, value: Array, end: Ints) -> tuple[Ints, Ints]:
        """The windows that may have enough peers, or of an outlier, by end and role, and numbers of these two."""
        group: Ints = state.series.columns["fleet.group"]  # type: ignore[assignment]
        few = len(rows) < len(state.series)
        codes, members = np.unique(group[rows] if few else group[: len(state.series)], return_inverse=True)
        large = (np.bincount(members, minlength=len(codes)) >= self.least) & (codes >> _UNUSED != _ALONE)
        of = members if few else members[rows]
        unlike = state.series.columns["fleet.since"][rows] != NEVER
        at = np.flatnonzero((large[of] | unlike) & np.isfinite(value)) if large.any() or unlike.any() else rows[:0]
        if not len(at):
            return at, at
        of, end = of[at], end[at] - end[at].min()
        if (int(end.max()) + 1) * len(codes) <= LARGEST:
            order, cells = ordered((end * len(codes) + of).astype(np.uint64))
            begins = np.append(True, cells[1:] != cells[:-1])
        else:
            order = np.lexsort((of, end))
            begins = np.append(True, (np.diff(end[order]) != 0) | (np.diff(of[order]) != 0))
        return at[order], np.cumsum(begins)

    def _find_groups(self, state: DetectionState, rows: Ints) -> tuple[Ints, Ints]:
        """Gives series a number of their partition, role and metric, `_ALONE` if their machine has no role.

        What a series was beside others than its peers of now, before settings were changed, is forgotten.

        Returns:
            The series of which an outlier was open that is forgotten, and its onset, epoch milliseconds.
        """
        columns = state.series.columns
        group: Ints = columns["fleet.group"]  # type: ignore[assignment]
        new = np.unique(rows[columns["fleet.by"][rows] != self._by])
        if not len(new):
            return new, new
        keys = state.series.index.keys[new]
        places = slots(keys["entity"], self.partitions).tolist()
        roles = [
            _ALONE
            if (role := role_of_series(machine, metric, self.labels)) is None
            else _number(f"{place}\0{role}\0{metric}")
            for place, (machine, metric) in zip(places, keys.rows(), strict=True)
        ]
        now = np.array(roles, np.int64)
        others = new[(group[new] != 0) & (group[new] >> _UNUSED != now)]
        since = columns["fleet.since"][others].astype(np.int64)
        for name, column in self.new_series(len(others)).items():
            columns[name][others] = column
        group[new], columns["fleet.by"][new] = now << _UNUSED, self._by
        return others[since != NEVER], since[since != NEVER]


def _number(text: str) -> int:
    """A number of 55 bits for a text, neither 0 nor `_ALONE`."""
    data = text.encode("utf-8", "surrogatepass")
    return ((zlib.crc32(data) << 22) | (zlib.adler32(data) >> 10)) + 2


def _left(windows: pl.DataFrame, rows: Ints, series: Ints, since: Ints) -> pl.DataFrame:
    """Closes, with its first window, the outlier that a series was beside others than its peers of now.

    Args:
        windows: Windows, in the order of their ends.
        rows: The series of each.
        series: Those of outliers that are over, ascending.
        since: Their onsets, epoch milliseconds.

    Returns:
        The verdicts, with the columns of `SCHEMA`.
    """
    met, first = np.unique(rows, return_index=True)
    place = first[np.searchsorted(met, series)]
    n = len(series)
    none = named(np.arange(n), pl.repeat("peers", n, eager=True), np.zeros(n), n)
    known = windows[place].select(
        "entity", "window_start", "window_end", metric=PEERS + pl.col("metric"), metric_kind="kind"
    )
    return completed(
        known.with_columns(
            kind=pl.lit(Kind.NORMAL.value),
            incident_state=pl.lit(Course.CLOSED.value),
            since=pl.Series(since),
            record_score=0.0,
            state_score=0.0,
            probability=1.0,
            evidence=pl.struct([pl.lit(0.0).alias(name) for name in CHANNELS]),
            context=none,
            revision=0,
        )
    )


def _verdicts(windows: pl.DataFrame, events: Table, clock: Array) -> pl.DataFrame:
    """The verdicts, with the columns of `SCHEMA`."""
    n = len(events)
    if not n:
        return pl.DataFrame(schema=SCHEMA)
    said = [_KINDS[Outcome(int(code))] for code in events["outcome"]]
    values = events["values"]
    numbers = {
        "values": values,
        "watched": np.where(values * clock >= SIX_HOURS, values * clock, np.nan),
        "peers": events["peers"].astype(np.float64),
        "theirs": events["theirs"],
        "early": np.where(events["early"] == 1, 1.0, np.nan),
    }
    keys = [KEYS.index(name) for name in numbers]
    names = pl.Series(KEYS, dtype=pl.String).gather(np.tile(keys, n))
    context = named(np.repeat(np.arange(n), len(keys)), names, np.column_stack(list(numbers.values())).ravel(), n)
    evidence = dict.fromkeys(CHANNELS, np.zeros(n)) | {"point": events["nats"]}
    known = windows.select(
        "entity",
        "window_start",
        "window_end",
        metric=pl.lit(PEERS) + pl.col("metric"),
        metric_kind="kind",
    )
    known = known.with_columns(
        actual=windows["prompt"],
        kind=pl.Series([kind for kind, _ in said], dtype=pl.String),
        incident_state=pl.Series([course.value for _, course in said], dtype=pl.String),
        since=pl.Series(events["since"]),
        record_score=pl.Series(events["score"]),
        state_score=pl.Series(events["score"]),
        probability=pl.Series(np.exp(-events["nats"])),
        typical=pl.Series(events["expected"]),
        **{name: pl.Series(events[name]) for name in ("lower", "upper")},
        evidence=pl.DataFrame(evidence).to_struct(),
        context=context,
        revision=pl.lit(0, pl.Int64),
    )
    return with_nulls(completed(known))
