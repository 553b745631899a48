"""Which machines are peers: replicas of a workload, those with the same label, or with names but for numbers."""

from __future__ import annotations

import re
from functools import lru_cache

from engine.columns.replicas import replicas_of

_NUMBERS = re.compile(r"[0-9]+")


@lru_cache(maxsize=1 << 17)
def role_of(name: str) -> str | None:
    """The role of a machine, by its name: its peers have the same. ``None``: by its name it has none.

    >>> role_of("shop/cart-7d4b9c6f5-x2x7p"), role_of("web-17"), role_of("eu2.db01"), role_of("mail")
    ('shop/cart', 'web-#', 'eu#.db#', None)
    """
    replicas = replicas_of(name)
    if replicas is not None:
        return replicas
    role = _NUMBERS.sub("#", name)
    return role if role != name else None


def role_of_series(machine: str, metric: str, labels: tuple[str, ...]) -> str | None:
    """The role of a machine in a metric: its workload, or else what a label of the metric says, or else by its name.

    Args:
        machine: The name of the machine.
        metric: The metric, with its labels in braces.
        labels: Names of labels that say a role; the first that the metric has counts.

    >>> role_of_series("zeus", "load1{env=live,role=db}", ("service", "role"))
    'role=db'
    >>> role_of_series("web-1", "load1", ("role",))
    'web-#'
    >>> role_of_series("shop/cart-7d4b9c6f5-x2x7p", "load1{role=db}", ("role",))
    'shop/cart'
    """
    replicas = replicas_of(machine)
    if replicas is not None:
        return replicas
    _, brace, inside = metric.partition("{")
    if brace and labels:
        pairs = [pair.partition("=") for pair in inside.removesuffix("}").split(",")]
        given = {name: value for name, mark, value in pairs if mark and value not in ("", "*")}
        for label in labels:
            if label in given:
                return f"{label}={given[label]}"
    return role_of(machine)
