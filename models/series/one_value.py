"""Judges the values of series one after the other, and learns from each before the next; compiled for any number."""

from __future__ import annotations

import math

import numpy as np

from models.evidence.repeats import NEVER
from models.kernels import kernel
from models.records import Record, Table, record_type
from models.regimes.company import Company, begin, count, listen, nobody
from models.regimes.kept import SLOTS, level_in
from models.regimes.regimes import Decision, left_before, open_since
from models.series.judging import judge
from models.series.learning import fade, learn

STANDING = record_type(
    [*((name, np.int64) for name in ("onset", "regime")), ("values", np.float64), ("levels", np.float64, (SLOTS,))]
)
"""How a series stands after a value, as a record; the fields are those of `Standing`."""


@kernel
def run(
    constants: Record, table: Table, machines: Table, observations: Table, verdicts: Table, standings: Table
) -> None:
    """Judges values one after the other, and learns from each before the next.

    Args:
        constants: Those of the detector.
        table: The state of series; changed where a value may be learned from.
        machines: The state of machines; changed likewise.
        observations: Records of `OBSERVATION`, shape (n,).
        verdicts: Records of `VERDICT`, shape (n,); written.
        standings: Records of `STANDING`, shape (n,); written.
    """
    for i in range(len(observations)):
        series, owner = table[observations[i].row], observations[i].machine
        learns = observations[i].taught and math.isfinite(observations[i].value)
        company = nobody()
        if owner >= 0:
            if learns:
                begin(machines[owner].company, observations[i].time)
            company = _listen(constants, machines[owner].company, series.regime)
        judgement = judge(constants, series, company, observations[i], verdicts[i])
        if learns:
            left = left_before(series.regime, judgement.decision, series.seen)
            learn(constants, series, observations[i], judgement)
            if owner >= 0:
                _tell(machines[owner].company, series.regime, judgement.decision, left)
        elif judgement.valid:
            fade(constants, series, judgement)
        standings[i].onset, standings[i].values = open_since(series.regime), series.seen
        standings[i].regime = series.regime.active
        for slot in range(SLOTS):
            standings[i].levels[slot] = level_in(series.regime, series.log_level.unit, slot)


@kernel
def _listen(constants: Record, machine: Record, regime: Record) -> Company:
    return listen(machine, open_since(regime) if regime.abrupt else NEVER, constants.regimes.patience)


@kernel
def _tell(machine: Record, regime: Record, decision: Decision, left: float) -> None:
    inside = decision.inside and regime.abrupt
    count(machine, regime.counted, inside, decision.since, decision.switch, left)
    regime.counted = inside
