"""What the stored state of an operator depends on: the one description from which a changed job is found.

Each operator is a value; by default its state depends on all that it consists of, so a new operator cannot be
forgotten. An operator names the fields that may change (`engine.spec.operator.Operator.free`). Columns evolve: one that
is added or taken away changes nothing that is stored, one of another type does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import pyarrow as pa

from engine.spec.duration import Duration, duration_ms


@dataclass(frozen=True)
class StateForm:
    """What a state depends on; both sides are text, by name.

    Attributes:
        fixed: What must stay as it is.
        columns: The types of stored columns. Only a column that both have must have the same type.
        takes: What a state may have depended on before, if the operator can take it over; empty: only what it
            depends on now.
    """

    fixed: Mapping[str, str]
    columns: Mapping[str, str] = field(default_factory=dict)
    takes: Mapping[str, str] = field(default_factory=dict)

    def changes(self, before: StateForm) -> Iterator[str]:
        """What differs from an earlier form in a way that the stored state cannot follow."""
        names = [] if before.fixed == self.takes else dict.fromkeys([*before.fixed, *self.fixed])
        for name in names:
            now, then = self.fixed.get(name, "nothing"), before.fixed.get(name, "nothing")
            if now != then:
                yield f"{name} is {now}, was {then}"
        for name in self.columns.keys() & before.columns.keys():
            if self.columns[name] != before.columns[name]:
                yield f"column {name} is {self.columns[name]}, was {before.columns[name]}"


def described(value: Any) -> str:
    """A value as text that says what it means: the same for equal values, in every process.

    >>> described(Duration("1m")), described(Duration("60s")), described((1, "a"))
    ('1m', '1m', "(1, 'a')")
    """
    if isinstance(value, Duration):
        unit = next(unit for unit in ("h", "m", "s", "ms") if value % duration_ms(f"1{unit}") == 0)
        return f"{value // duration_ms(f'1{unit}')}{unit}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(described, value))})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {described(part)}" for key, part in value.items()) + "}"
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)
    kind = value if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")) else type(value)
    inner = {}
    if is_dataclass(value) and not isinstance(value, type):
        inner = {member.name: getattr(value, member.name) for member in fields(value)}
    elif kind is type(value):
        inner = vars(value) if hasattr(value, "__dict__") else {}
    return f"{kind.__qualname__}({', '.join(f'{name}={described(part)}' for name, part in inner.items())})"


def types(columns: pa.Schema | None, *names: str) -> dict[str, str]:
    """The types of columns as text; of all columns if none are named. Text is text, however it is encoded."""
    kinds = {} if columns is None else {field.name: field.type for field in columns}
    return {name: str(kinds[name]) for name in names or kinds if name in kinds}
