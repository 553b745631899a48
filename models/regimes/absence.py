"""Absence: of a series whose machine still sends other metrics, or of a whole machine. Compiled; no clock.

A series is absent if its window is missing when its machine has sent later ones; a machine is, once its own next window
is overdue. Which of both it is decides what is said: one machine is one piece of news, not one for each metric.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.evidence.repeats import NEVER
from models.kernels import kernel
from models.numbers.arrays import Columns, Ints, prefixed
from models.records import Layout, Record, Table, constants, record_type
from models.regimes.silence import NEVER_DUE, Silence, due, learn_silence, missing, nats_of_silence

NONE, SEVERAL = -1, -2
"""In place of a row: the machine of a series is not known yet; a machine has several series."""

ABSENCE = record_type(
    [*((name, np.int64) for name in ("series", "entity", "onset", "length", "last", "due")), ("evidence", np.float64)]
)
"""An absence to announce, as a record.

``series``: its row in the state, -1 if the whole machine is absent; ``entity``: row of the machine; ``onset``: end of
the first missing window, epoch milliseconds; ``length``: of a window, milliseconds; ``last``: end of the last window;
``due``: when the absence became certain; ``evidence``: nats.
"""


class Heard(NamedTuple):
    """Which absences n windows end, and which they reveal.

    Args:
        series: For each window the start of the absence of its series, which the window ends, epoch milliseconds; -1 if
            the series was not absent; shape (n,).
        machine: The same for the absence of its whole machine, shape (n,).
        absences: Absences that became certain as other windows came, records of `ABSENCE`.
    """

    series: Ints
    machine: Ints
    absences: Table


class Absence:
    """Learns at which intervals windows come, and finds those that are missing.

    It keeps columns of its own for series and for machines, which begin with ``heard.``.

    Args:
        silence: The constants.

    >>> absence = Absence(Silence(majority=10.0, forget=1 / 5000, bar=10.0))
    >>> series, machines, one = absence.new_series(1), absence.new_machines(1), np.zeros(1, np.int64)
    >>> for minute in range(100):
    ...     heard = absence.hear(series, machines, one, one, one, one + minute * 60_000, one + 60_000)
    >>> absence.first_due(machines, 1) // 60_000
    104
    >>> [len(absence.overdue(series, machines, (1, 1), minute * 60_000)) for minute in (103, 104, 105)]
    [0, 1, 0]
    """

    def __init__(self, silence: Silence) -> None:
        self.silence, self._constants = silence, constants(silence=silence).silence
        self._series, self._machines = Layout(self._of_series(0)), Layout(self._of_machines(0))

    def new_series(self, n: int) -> Columns:
        """The columns for n series; they share the memory of one table of records."""
        return self._series.joined(self._of_series(n))

    def new_machines(self, n: int) -> Columns:
        """The columns for n machines; they share the memory of one table of records."""
        return self._machines.joined(self._of_machines(n))

    def hear(
        self, series: Columns, machines: Columns, rows: Ints, owner: Ints, step: Ints, time: Ints, length: Ints
    ) -> Heard:
        """Learns from windows that came, in their order.

        Args:
            series: The columns of series, among others; changed.
            machines: Those of machines; changed.
            rows: Row of each window's series, shape (n,).
            owner: Row of the machine of each series, shape (n,).
            step: Number of each window's step, ascending: a step has one window end of each machine, and one window of
                each series; the windows of a machine are adjacent in it; shape (n,).
            time: End of each window, epoch milliseconds, shape (n,).
            length: Length of each window, milliseconds, shape (n,).
        """
        n = len(rows)
        ended, absences = np.empty((2, n), np.int64), np.zeros(2 * n, ABSENCE)
        rows, owner, step = np.ascontiguousarray(rows), np.ascontiguousarray(owner), np.ascontiguousarray(step)
        time, length = np.ascontiguousarray(time), np.ascontiguousarray(length)
        tables = self._tables(series, machines)
        count = _hear(self._constants, *tables, rows, owner, step, time, length, ended, absences)
        return Heard(ended[0], ended[1], absences[:count])

    def overdue(self, series: Columns, machines: Columns, sizes: tuple[int, int], until: int | None) -> Table:
        """Finds what is absent at an instant, and remembers that it was announced.

        Args:
            series: As for `hear`.
            machines: As for `hear`.
            sizes: How many series and machines there are.
            until: No window that ends before it is still to come, epoch milliseconds; ``None``: it is not known; then
                only series can be absent.

        Returns:
            Records of `ABSENCE`.
        """
        absences = np.zeros(sum(sizes), ABSENCE)
        instant = np.iinfo(np.int64).min if until is None else until
        count = _overdue(self._constants, *self._tables(series, machines), *sizes, instant, absences)
        return absences[:count]

    def first_due(self, machines: Columns, size: int) -> int:
        """The earliest instant at which `overdue` finds one of so many machines absent; `NEVER_DUE`: at none."""
        table = self._machines.records(machines)
        assert table is not None
        return _first_due(self._constants, table, size)

    def _of_series(self, n: int) -> Columns:
        own = {"owner": np.full(n, NONE, np.int64), "length": np.zeros(n, np.int64)}
        return prefixed("heard.", self.silence.new_state(n) | own)

    def _of_machines(self, n: int) -> Columns:
        own = {"only": np.full(n, NONE, np.int64), "length": np.zeros(n, np.int64), "back": np.full(n, NEVER, np.int64)}
        return prefixed("heard.", self.silence.new_state(n) | own)

    def _tables(self, series: Columns, machines: Columns) -> tuple[Table, Table]:
        tables = self._series.records(series), self._machines.records(machines)
        assert tables[0] is not None
        assert tables[1] is not None
        return tables  # type: ignore[return-value]


@kernel
def _announce(silence: Silence, heard: Record, series: int, entity: int, absence: Record) -> None:
    absence.series, absence.entity = series, entity
    absence.onset, absence.length = missing(heard), heard.length
    absence.last, absence.due = heard.last, due(silence, heard)
    absence.evidence = nats_of_silence(silence, heard)


@kernel
def _excuse(own: Record, back: int) -> None:
    """What a series did not send while its whole machine was absent is no silence of its own.

    Args:
        own: The columns of the series; changed.
        back: End of the window with which its machine last sent again, epoch milliseconds; -1: it was never absent.
    """
    if back != NEVER and own.last < back and not own.told:
        own.last = back


@kernel
def _hear(
    silence: Silence,
    series: Table,
    machines: Table,
    rows: Ints,
    owner: Ints,
    step: Ints,
    time: Ints,
    length: Ints,
    ended: Ints,
    absences: Table,
) -> int:
    """See `Absence.hear`; writes the absences that end, shape (2, n), and new ones; returns the number of new ones."""
    count, begin, n = 0, 0, len(rows)
    while begin < n:
        end, entity, now = begin + 1, owner[begin], time[begin]
        while end < n and step[end] == step[begin] and owner[end] == entity:
            end += 1
        machine = machines[entity].heard
        for i in range(begin, end):
            own = series[rows[i]].heard
            if own.owner == NONE:
                own.owner = entity
                machine.only = rows[i] if machine.only == NONE else SEVERAL
        before = machine.last
        gone = due(silence, machine) < now  # it was absent, and is back before that was announced
        away = gone or machine.told
        since = missing(machine) - machine.length if away else NEVER
        if gone:
            _announce(silence, machine, max(machine.only, NONE), entity, absences[count])
            count += 1
        for i in range(begin, end):
            own = series[rows[i]].heard
            if not away:
                _excuse(own, machine.back)
            lost = not away and due(silence, own) <= min(before, now)
            if lost:
                _announce(silence, own, rows[i], entity, absences[count])
                count += 1
            ended[0, i] = missing(own) - own.length if lost or own.told else NEVER
            if machine.only >= 0:
                ended[0, i] = since
            ended[1, i] = since
            learn_silence(silence, own, time[i], away)
            own.length = length[i]
        learn_silence(silence, machine, now, False)
        if away:
            machine.back = now
        machine.length = length[begin]
        begin = end
    return count


@kernel
def _overdue(
    silence: Silence, series: Table, machines: Table, many: int, machines_many: int, until: int, absences: Table
) -> int:
    """See `Absence.overdue`; writes the absences found, and returns their number."""
    count = 0
    for entity in range(machines_many):
        machine = machines[entity].heard
        if due(silence, machine) <= until:
            _announce(silence, machine, max(machine.only, NONE), entity, absences[count])
            machine.told = True
            count += 1
    for row in range(many):
        own = series[row].heard
        if own.owner == NONE:
            continue
        _excuse(own, machines[own.owner].heard.back)
        if due(silence, own) <= machines[own.owner].heard.last:
            _announce(silence, own, row, own.owner, absences[count])
            own.told = True
            count += 1
    return count


@kernel
def _first_due(silence: Silence, machines: Table, size: int) -> int:
    first = NEVER_DUE
    for entity in range(size):
        first = min(first, due(silence, machines[entity].heard))
    return first
