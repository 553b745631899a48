"""Which machines of an incident explain which others: failures go from a service to those that call it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import exp


class Calls:
    """The calls between the machines of an incident; those that are not in it are passed through.

    Hosts are left out: load goes from a VM to its host, so that either may explain the other.

    Args:
        began: When each machine of the incident began, epoch milliseconds.
        evidence: The evidence of each of them.
        above: For machines with a place in the topology: what each depends on.
        runs: Those of them that run on another: on which.
        together: Milliseconds within which machines begin together.
    """

    def __init__(
        self,
        began: Mapping[str, int],
        evidence: Mapping[str, float],
        above: Mapping[str, Sequence[str]],
        runs: Mapping[str, str],
        together: int,
    ) -> None:
        self._began, self._evidence, self._together = began, evidence, together
        needs = {name: [each for each in some if each != runs.get(name)] for name, some in above.items()}
        self._up: dict[str, set[str]] = {entity: _next(entity, needs, began) for entity in began}
        self._down: dict[str, set[str]] = defaultdict(set)
        for entity, called in self._up.items():
            for each in called:
                self._down[each].add(entity)

    def explained(self, entity: str) -> tuple[float, frozenset[str]]:
        """How many of the machines that call one are explained by it, each by its evidence; and these machines."""
        callers = _all(entity, self._down)
        parts = [self._after(entity, each) * self._ratio(each, entity) for each in sorted(callers)]
        return sum(parts), frozenset(callers)

    def effect(self, entity: str) -> tuple[float, str]:
        """How far a machine is explained by one that it calls, from 0 to 1, and by which; nothing in a circle."""
        called = _all(entity, self._up) - _all(entity, self._down)
        return max(
            ((self._after(each, entity) * self._ratio(each, entity), each) for each in called), default=(0.0, "")
        )

    def _after(self, cause: str, effect: str) -> float:
        """1 if a machine did not begin before what may explain it; less by the factor e for each `together`."""
        return exp(min(0.0, (self._began[effect] - self._began[cause]) / self._together))

    def _ratio(self, one: str, other: str) -> float:
        return min(1.0, self._evidence[one] / max(self._evidence[other], 1e-9))


def _next(entity: str, needs: Mapping[str, Sequence[str]], inside: Mapping[str, int]) -> set[str]:
    """The next machines of the incident that a machine depends on, over any number of machines that are not in it."""
    found, reached, left = set(), {entity}, [entity]
    while left:
        for each in needs.get(left.pop(), ()):
            if each not in reached:
                reached.add(each)
                if each in inside:
                    found.add(each)
                else:
                    left.append(each)
    return found


def _all(entity: str, graph: Mapping[str, set[str]]) -> set[str]:
    """All machines that can be reached, without that where the way begins."""
    reached, left = {entity}, [entity]
    while left:
        fresh = graph.get(left.pop(), set()) - reached
        reached |= fresh
        left += fresh
    return reached - {entity}
