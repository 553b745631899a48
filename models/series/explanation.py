"""What a verdict on a value of a series says of its reasons: the experts that were believed, and what words rest on."""

from __future__ import annotations

import math

from models.evidence.repeats import NEVER
from models.experts.base import Step
from models.experts.days import several_days
from models.families.choice import Family
from models.families.student_t import expand
from models.kernels import kernel
from models.records import Record
from models.regimes.axis import value
from models.regimes.incident import CurrentValue
from models.regimes.regimes import Decision
from models.series.mixture import Mixture
from models.series.past import Lived
from models.verdicts import Kind

_TRACE = 1e-100
"""A bound below this is a trace of the prior of a series that was always 0: it is 0."""

EXPERTS = ("level", "log_level", "hour")
CONTEXT = (
    *("values", "watched", "lowest", "highest", "run", "run_for", "ordinary", "same_for", "days"),
    *("before", "level", "known", "inherited"),
)
"""Names in the context of a verdict, see `write_context`."""

_MIXTURE, _FAMILIES = Family.MIXTURE.value, len(Family)
_NORMAL, _LEARNING = Kind.NORMAL.code, Kind.LEARNING.code
_STATE_CHANGE, _NEW_NORMAL = Kind.STATE_CHANGE.code, Kind.NEW_NORMAL.code


@kernel
def shown(edge: float, is_known: bool) -> float:
    """A figure as it is shown: NaN where nothing is known, and 0 for a trace of the prior."""
    if not is_known:
        return math.nan
    return 0.0 if abs(edge) < _TRACE else edge


@kernel
def write_experts(verdict: Record, family: int, mixture: Mixture, typical: float) -> None:
    """How much each expert was believed; where another family than the mixture speaks, that one is believed alone."""
    experts = len(EXPERTS)
    for k in range(experts):
        verdict.experts[k] = mixture.weights[k] if family == _MIXTURE else 0.0
        verdict.expected[k] = expand(mixture.parts[k], mixture.parts[k].location)
    for other in range(1, _FAMILIES):
        verdict.experts[experts + other - 1] = 1.0 if family == other else 0.0
        verdict.expected[experts + other - 1] = typical


@kernel
def write_context(
    verdict: Record,
    series: Record,
    observation: Record,
    step: Step,
    past: Lived,
    current: CurrentValue,
    decision: Decision,
    kind: int,
    unit: float,
) -> None:
    """What words on a verdict rest on beside its figures; NaN where it is no news.

    ``values`` that came before this one and ``watched``, the milliseconds since the first of them; the ``lowest``
    and ``highest`` of them; ``run``, values in a row, this one included, above what was typical (as a negative
    number: below), ``run_for``, milliseconds since the first of these, and whether all of them were ``ordinary``:
    within their bands; ``same_for``, milliseconds since the first value in a row that was exactly this one; ``days``:
    whether that hour is known of two such days. Of a change: the value ``before`` it and the ``level`` since, and
    ``known``: 1 where that is one of a regime before. ``inherited``: how many values those of its predecessors are
    worth to a replica that goes on where they are.
    """
    context = verdict.context
    for at in range(len(CONTEXT)):
        context[at] = math.nan
    if (kind in (_NORMAL, _LEARNING)) and not decision.inside:
        return
    context[0], context[1] = step.known - series.birth.worth, 0.0
    if series.past.extent[0] != NEVER:
        context[1] = observation.time - series.past.extent[0]
        context[2], context[3] = series.past.extent[1], series.past.extent[2]
    context[4], context[5], context[6] = past.run, observation.time - past.run_since, 1.0 if past.ordinary else 0.0
    context[7] = observation.time - past.same_since
    if series.birth.worth > 0:
        context[12] = series.birth.worth
    context[8] = 1.0 if several_days(series.days, step.local, step.weekend) else 0.0
    if decision.concerned and (decision.turned == _STATE_CHANGE or kind == _NEW_NORMAL):
        context[9] = value(current.place - decision.expected.off, unit)
        context[10], context[11] = value(decision.level, unit), 1.0 if decision.recalled else 0.0
