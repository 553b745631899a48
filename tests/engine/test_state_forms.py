"""Every operator says all that its state depends on."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields
from typing import Any

from engine import (
    Broadcast,
    Correlation,
    Count,
    CountWindows,
    Deduplicate,
    EachKey,
    IntervalJoin,
    KeepLast,
    Max,
    Pattern,
    Process,
    Session,
    Sliding,
    Stream,
    TemporalJoin,
    Tumbling,
    WindowJoin,
)
from engine.operators.chain import Chain, PassThrough, Transform
from engine.operators.sequence_windows import SequenceWindows
from engine.operators.turn import Logic
from engine.spec.duration import Duration
from engine.spec.operator import Operator
from engine.windows import Window
from tests.engine.readings import Reading
from tests.engine.test_changed_jobs import EARLY, A, C, KeptOtherwise, Same, once, read


def test_every_field_of_every_operator_is_in_the_form_of_its_state_or_is_said_to_be_free() -> None:
    """The boundary: an operator or a field that somebody adds without a thought of its state."""

    @dataclass(frozen=True)
    class Added(Operator):
        limit: int

    forms = [Added(limit).state_form(None) for limit in (1, 2)]
    assert forms[0] is not None and forms[1] is not None
    assert list(forms[1].changes(forms[0])) == ["limit is 2, was 1"]
    assert PassThrough().state_form(None) is None and Transform(()).state_form(None) is None
    assert Chain((PassThrough(), Added(1))).state_forms(None).keys() == {"1"}


OTHER: dict[type, Any] = {int: 7, str: "other", bool: True, tuple: ("other",), dict: {"other": Max("s")}}
OPERATORS: dict[str, Operator] = {
    type(operator).__name__: operator
    for operator in (
        once().trigger(EARLY).aggregate(n=Count()).processor,
        read().window(CountWindows(3)).aggregate(n=Count()).processor,
        *(
            read().process(operator).processor
            for operator in (
                Deduplicate(by=("s",), within="1h"),
                Pattern((A, C), within="10m", columns=("v",)),
                Process(EachKey(Same(), ("v",))),
            )
        ),
        *(
            read().join(Stream.read_json("u", Reading), how).processor
            for how in (
                IntervalJoin("0s", "1m"),
                WindowJoin(Tumbling("1m")),
                Correlation("v", "v", Sliding("1m", every="10s")),
                Broadcast(identity=("s",)),
                TemporalJoin(),
            )
        ),
    )
}
SAID_BY_THEM = {
    "WindowAggregate": {"aggregates", "ahead"},  # the time column says the second
    "Process": {"logic", "loops", "idle_after", "most", "slots"},  # what it keeps is in the columns
}
"""Fields that may change and are not in `free`, since these operators say the form of their state themselves."""


def test_every_operator_of_the_engine_says_all_that_its_state_depends_on() -> None:
    """The boundary: an operator that somebody adds and that nobody adds here, or a field that is in no form."""

    def below(kind: type) -> set[type]:
        return {kind, *(deeper for subclass in kind.__subclasses__() for deeper in below(subclass))}

    names = {kind.__name__ for kind in below(Operator) if kind.__module__.startswith("engine.operators")}
    assert names - {"EventTimeOrdered", "TwoSided", "PassThrough", "Transform", "Chain"} == OPERATORS.keys()
    for name, operator in OPERATORS.items():
        form = operator.state_form(None)
        assert form is not None
        for field in fields(operator):  # type: ignore[arg-type]
            if field.name in ("left", "right"):  # columns of a join evolve, each under its name in pairs
                continue
            changed = copy(operator)
            object.__setattr__(changed, field.name, _another(getattr(operator, field.name)))
            free = {*operator.free, *SAID_BY_THEM.get(name, ())}
            now = changed.state_form(None)
            assert now is not None
            assert bool(list(now.changes(form))) == (field.name not in free), f"{name}.{field.name}"


def _another(value: Any) -> Any:
    """A value of the same kind that means something else."""
    if isinstance(value, Window):
        return Session("77s") if isinstance(value, Session) else Sliding("70s", every="7s")
    if isinstance(value, SequenceWindows):
        return CountWindows(77)
    if isinstance(value, Logic):
        return KeptOtherwise()
    if value is None:
        return KeepLast(7)
    if isinstance(value, Duration):
        return Duration(f"{int(value) + 7}ms")
    return OTHER.get(type(value), ("other",))
