"""The logic of an operator, found by the type of its specification."""

from __future__ import annotations

from functools import singledispatch

from engine.spec.errors import NewnormalError
from engine.spec.operator import Operator
from engine.vectorized.processor import Processor


@singledispatch
def build(operator: Operator) -> Processor:
    """Returns the vectorised logic of an operator.

    Register a user's own operator with ``build.register(MyOperator, MyProcessor)`` where it is defined. Then a
    worker that unpickles the operator also knows its logic.

    Raises:
        NewnormalError: ``PROCESSOR_UNKNOWN`` if none is registered for its type.
    """
    name = type(operator).__name__
    raise NewnormalError("PROCESSOR_UNKNOWN", f"{name} has no logic", accepted=f"build.register({name}, ...)")
