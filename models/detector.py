"""The Bayesian online novelty detector: pure scoring, separate learning, along series and across them.

Knows arrays only: no Spark, no Kafka, no clock. Its state is a dictionary of columns that it is handed each time. What
is judged and learned of one value is in `models.series.judging` and `models.series.learning`, compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from models.config import DetectorConfig
from models.evidence import change, departure, record, recurring
from models.evidence.config import EvidenceConfig
from models.evidence.frozen import Frozen
from models.evidence.lingering import Lingering
from models.evidence.point import series_calibration
from models.evidence.repeats import Repeats
from models.evidence.window import WindowMean
from models.experts import days, hour_of_day, level, log_level
from models.experts.hour_of_day import shift_hour
from models.experts.level import shift_level
from models.experts.log_level import shift_log_level
from models.experts.wall_clock import local_ms
from models.families import suited
from models.families.choice import Choice
from models.families.suited import About, shift_families
from models.numbers.arrays import Array, Columns, Flags, Ints, Rows, prefixed
from models.records import Layout, Table, constants
from models.regimes import again
from models.regimes import company as companies
from models.regimes import regimes as regime_models
from models.regimes.config import RegimesConfig
from models.series import birth, past
from models.series.before_outage import KEPT
from models.series.explanation import CONTEXT, EXPERTS
from models.series.feedback import FEW, Feedback
from models.series.judging import EVIDENCE, OBSERVATION, VERDICT
from models.series.one_value import STANDING, run
from models.series.peers import Newcomers
from models.series.predecessors import Predecessors
from models.verdicts import SeriesVerdicts, Standing


class Owners(NamedTuple):
    """The machines of n values, whose metrics say something of one another.

    Args:
        state: As from `Detector.new_machines`.
        rows: Row of the machine of each value, shape (n,).
    """

    state: Columns
    rows: Ints


class Detector:
    """Judges one value each of any number of series, or any number of values of one, then learns from it.

    Args:
        config: The constants.
        regimes: Those of kinds.
        choice: Those of families.
        feedback: Those of what operators say.
        evidence: Those of single kinds of evidence.
        departures: Those of departures from the recent values.

    >>> from models.verdicts import Kind
    >>> detector = Detector(DetectorConfig())
    >>> state, row = detector.new_state(1), np.array([0])
    >>> rng = np.random.default_rng(0)
    >>> for minute, value in enumerate([*rng.normal(50, 2, 500), 90.0]):
    ...     verdict = detector.step(state, row, np.array([minute * 60_000]), np.array([value]))
    >>> verdict.record_score.round(), list(Kind)[verdict.kind[0]].value
    (array([68.]), 'anomaly')
    >>> verdict.lower.round(), verdict.typical.round(), verdict.upper.round()
    (array([43.]), array([50.]), array([57.]))
    """

    def __init__(
        self,
        config: DetectorConfig,
        regimes: RegimesConfig | None = None,
        choice: Choice | None = None,
        feedback: Feedback | None = None,
        evidence: EvidenceConfig | None = None,
        departures: departure.Departures | None = None,
    ) -> None:
        self.config, evidence = config, evidence or EvidenceConfig()
        self.calibration = series_calibration(
            config.forget, config.calibration_tail, config.calibration_strength, config.calibration_early
        )
        self.window = WindowMean(config.window_pace, config.doubt)
        self.frozen = Frozen(config.frozen_half, evidence.frozen_forget, evidence.frozen_pace)
        self.repeats = Repeats(config.notable, config.rest, config.damping, config.calm)
        self.lingering = Lingering(
            config.notable, evidence.keep, evidence.knee, evidence.settled, evidence.grown, evidence.new
        )
        self.feedback, self.choice = feedback or Feedback(), choice or Choice()
        self.newcomers = Newcomers()
        self.predecessors = Predecessors(self.newcomers, config.learning)
        self.layout, self.machines = Layout(self._columns(0)), Layout(prefixed("company.", companies.new_state(0)))
        self._constants = constants(
            config=config,
            regimes=regimes or RegimesConfig(),
            calibration=self.calibration,
            window=self.window,
            frozen=self.frozen,
            repeats=self.repeats,
            lingering=self.lingering,
            feedback=self.feedback,
            choice=self.choice,
            departures=departures or departure.Departures(),
            edge=ndtri(1 - 0.5 * (1 - config.band)),
        )

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known; the first axis is the series.

        They share the memory of one table of records. Copies of columns that do not may be handed in too: then records
        are made of them, and written back.
        """
        return self.layout.joined(self._columns(n))

    def new_machines(self, n: int) -> Columns:
        """The columns for n machines whose metrics are all as usual, for `Owners`."""
        return self.machines.joined(prefixed("company.", companies.new_state(n)))

    def _columns(self, n: int) -> Columns:
        columns: Columns = {"seen": np.zeros(n), "time": np.zeros(n, np.int64)}
        for name, module in zip(EXPERTS, (level, log_level, hour_of_day), strict=True):
            columns |= prefixed(f"{name}.", module.new_state(n))
            columns[f"{name}.log_weight"] = np.full(n, -np.log(len(EXPERTS)), np.float32)
        columns |= prefixed("point.", self.calibration.new_state(n))
        columns |= prefixed("window.", self.window.new_state(n) | self.calibration.new_state(n))
        columns |= prefixed("change.", change.new_state(n))
        columns |= prefixed("change.tail.", self.calibration.new_state(n))
        columns |= prefixed("record.", record.new_state(n))
        columns |= prefixed("birth.", birth.new_state(n))
        columns |= prefixed("frozen.", self.frozen.new_state(n))
        columns |= prefixed("lingering.", self.lingering.new_state(n))
        columns |= prefixed("departure.", departure.new_state(n)) | prefixed("recurring.", recurring.new_state(n))
        columns |= prefixed("regime.", regime_models.new_state(n))
        columns |= prefixed("again.", again.new_state(n))
        columns |= prefixed("feedback.", self.feedback.new_state(n))
        columns |= prefixed("past.", past.new_state(n)) | prefixed("days.", days.new_state(n))
        columns |= prefixed("family.", suited.new_state(n))
        columns |= prefixed("peers.", self.newcomers.new_state(n))
        columns |= {f"before.{name}": columns[name].copy() for name in KEPT}
        columns["before.level.count"][:] = -1.0
        return columns | prefixed("repeats.", self.repeats.new_state(n))

    def score(
        self,
        state: Columns,
        rows: Ints,
        time: Ints,
        value: Array,
        day_off: Flags | None = None,
        about: About | None = None,
    ) -> SeriesVerdicts:
        """Verdicts on one value each of some series; pure.

        Args:
            state: As from `new_state`.
            rows: Rows of the state, shape (n,).
            time: End of the window, epoch milliseconds, shape (n,).
            value: NaN or infinite: missing; shape (n,).
            day_off: Whether its hour counts as one of a weekend although it is none; ``None``: nowhere, shape (n,).
            about: What is known beforehand of each series; ``None``: nothing.
        """
        table = self.layout.gather(state, rows)
        taught = np.zeros(len(rows), np.bool_)
        return self._run(table, np.arange(len(rows)), time, value, day_off, about, taught, None)[0]

    def learn(
        self,
        state: Columns,
        rows: Ints,
        time: Ints,
        value: Array,
        day_off: Flags | None = None,
        about: About | None = None,
    ) -> None:
        """Learns from values; changes those rows of the state. See `step` for the arguments."""
        self.step(state, rows, time, value, day_off, about)

    def step(
        self,
        state: Columns,
        rows: Ints,
        time: Ints,
        value: Array,
        day_off: Flags | None = None,
        about: About | None = None,
    ) -> SeriesVerdicts:
        """`score`, then `learn`, at the cost of one.

        See `score` for the arguments. A row may stand several times: each verdict rests on what was learned before it.
        """
        return self.steps(state, rows, time, value, day_off, about)[0]

    def steps(
        self,
        state: Columns,
        rows: Ints,
        time: Ints,
        value: Array,
        day_off: Flags | None = None,
        about: About | None = None,
        taught: Flags | None = None,
        owners: Owners | None = None,
    ) -> tuple[SeriesVerdicts, Standing]:
        """`step`, which also says how the series stand after each value.

        Args:
            state: As of `step`, like those that follow.
            rows: See `step`.
            time: See `step`.
            value: See `step`.
            day_off: See `step`.
            about: See `step`.
            taught: Whether the value may be learned from; ``None``: each may, shape (n,).
            owners: The machines of the series, the values of each in order of time; ``None``: each series is judged as
                if it were alone.
        """
        taught = np.ones(len(rows), np.bool_) if taught is None else taught
        with self.layout.opened(state, rows) as (table, places):
            if owners is None:
                return self._run(table, places, time, value, day_off, about, taught, None)
            with self.machines.opened(*owners) as machines:
                return self._run(table, places, time, value, day_off, about, taught, machines)

    def _run(
        self,
        table: Table,
        rows: Ints,
        time: Ints,
        value: Array,
        day_off: Flags | None,
        about: About | None,
        taught: Flags,
        machines: tuple[Table, Ints] | None,
    ) -> tuple[SeriesVerdicts, Standing]:
        company, owner = machines or (self.machines.table(0), np.full(len(rows), -1))
        about = about or About.unknown(len(rows))
        observations, records, after = (np.zeros(len(rows), kind) for kind in (OBSERVATION, VERDICT, STANDING))
        observations["row"], observations["machine"] = rows, owner
        observations["time"], observations["value"] = time, value
        observations["local"] = local_ms(time, self.config.timezone)
        observations["kind"], observations["family"], observations["samples"] = about.kind, about.family, about.samples
        observations["taught"] = taught
        if day_off is not None:
            observations["day_off"] = day_off
        run(self._constants, table, company, observations, records, after)
        verdicts = SeriesVerdicts(
            records["record_score"],
            records["probability"],
            records["typical"],
            records["lower"],
            records["upper"],
            records["kind"],
            records["since"],
            {name: records["evidence"][:, place] for place, name in enumerate(EVIDENCE)},
            experts={name: records["experts"][:, place] for place, name in enumerate((*EXPERTS, *suited.NAMES))},
            expected={name: records["expected"][:, place] for place, name in enumerate((*EXPERTS, *suited.NAMES))},
            onset=records["onset"],
            context={name: records["context"][:, place] for place, name in enumerate(CONTEXT)},
            incident=records["incident"],
            turned=records["turned"],
            state_score=records["state_score"],
            state=records["state"],
            lent=records["lent"],
        )
        return verdicts, Standing(after["onset"], after["values"], after["regime"], after["levels"])

    def learn_label(self, state: Columns, rows: Ints, true: Flags) -> None:
        """Learns that the last alarm of some series was true, or false; changes those rows of the state."""
        self.feedback.learn_label(Rows(state, rows, "feedback."), true)

    def accept(self, state: Columns, rows: Ints) -> Array:
        """Takes the present level of some series for typical and ends their incidents; changes those rows of the state.

        The next verdict on a series whose incident has been reported says that it is over: *new normal*.

        Returns:
            By how much each level was moved, shape (n,).
        """
        offset = self.feedback.accept(Rows(state, rows, "feedback."))
        shift_level(Rows(state, rows, "level."), offset, FEW)
        shift_log_level(Rows(state, rows, "log_level."), offset, FEW)
        shift_hour(Rows(state, rows, "hour."), offset, FEW)
        shift_families(Rows(state, rows, "family."), offset, FEW)
        state["peers.variance"][rows] = state["peers.log_variance"][rows] = 0.0
        steps = Rows(state, rows, "change.")
        steps["before"] = steps["before"] - offset
        state["window.mean"][rows] = 1.0
        regime = Rows(state, rows, "regime.")
        self.repeats.close(Rows(state, rows, "repeats."), self.onset(state, rows), regime_models.peak(regime))
        state["lingering.surprise"][rows] = 0.0
        state["again.nats"][rows] = 0.0
        regime_models.close(regime)
        return offset

    def onset(self, state: Columns, rows: Ints) -> Ints:
        """When the incident began that is open in each series, reported or not; -1: none is; shape (n,)."""
        return regime_models.onset(Rows(state, rows, "regime."))
