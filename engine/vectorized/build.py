"""The logic of an operator, found by the type of its specification."""

from __future__ import annotations

from functools import singledispatch

from engine.spec.errors import NewnormalError
from engine.spec.operator import Operator
from engine.vectorized.processor import Processor


@singledispatch
def build(operator: Operator) -> Processor:
    """The vectorised logic of an operator.

    An operator of one's own is made known with ``build.register(MyOperator, MyProcessor)`` in the module that defines
    it, so that a worker which unpickles the one also knows the other.

    Raises:
        NewnormalError: ``PROCESSOR_UNKNOWN`` if none is registered for its type.
    """
    name = type(operator).__name__
    raise NewnormalError("PROCESSOR_UNKNOWN", f"{name} has no logic", accepted=f"build.register({name}, ...)")
