"""Finds the reference of an operator by the type of its specification."""

from __future__ import annotations

from functools import singledispatch

from engine.reference.meaning import Reference
from engine.spec.errors import NewnormalError
from engine.spec.operator import Operator


@singledispatch
def reference(operator: Operator) -> Reference:
    """The meaning of an operator in plain Python; ``reference.register(MyOperator, MyReference)`` adds one.

    Raises:
        NewnormalError: ``PROCESSOR_UNKNOWN`` if none is registered for its type.
    """
    name = type(operator).__name__
    raise NewnormalError("PROCESSOR_UNKNOWN", f"{name} has no reference", accepted=f"reference.register({name}, ...)")
