"""Which machines of an incident explain which others: failures go from a service to those that call it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import exp

from pipelines.jobs.incidents.components import components

_STEPS, _FEW = 1_000_000, 30
"""Calls that are followed for one incident; when so many were, only so few for each further machine, the next ones."""


class Calls:
    """The calls between the machines of an incident; those that are not in it are passed through.

    The work has a bound (`_STEPS`), which only incidents of many hundred machines on a cycle or in a dense graph reach.
    The machines that are asked for first are then seen whole, and of the others those that are next to them.

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
        needs = {name: [callee for callee in names if callee != runs.get(name)] for name, names in above.items()}
        self._left = _STEPS
        self._up = {entity: self._next(entity, needs) for entity in began}
        self._down: dict[str, list[str]] = defaultdict(list)
        for entity, called in sorted(self._up.items()):
            for callee in called:
                self._down[callee].append(entity)
        self._left = _STEPS
        found = components(began, self._up.__getitem__)
        self._component = {name: number for number, names in enumerate(found) for name in names}

    def explained(self, entity: str) -> tuple[float, frozenset[str]]:
        """How many of the machines that call one are explained by it, each by its evidence; and these machines."""
        callers = set(self._walk(entity, self._down))
        parts = [self._after(entity, each) * self._ratio(each, entity) for each in sorted(callers)]
        return sum(parts), frozenset(callers)

    def effect(self, entity: str) -> tuple[float, str]:
        """How far a machine is explained by one that it calls, from 0 to 1, and by which; none of its own cycle."""
        called = [each for each in self._walk(entity, self._up) if self._component[each] != self._component[entity]]
        return max(
            ((self._after(each, entity) * self._ratio(each, entity), each) for each in called), default=(0.0, "")
        )

    def _after(self, cause: str, effect: str) -> float:
        """1 if a machine did not begin before what may explain it; less by the factor e for each `together`."""
        return exp(min(0.0, (self._began[effect] - self._began[cause]) / self._together))

    def _ratio(self, one: str, other: str) -> float:
        return min(1.0, self._evidence[one] / max(self._evidence[other], 1e-9))

    def _next(self, entity: str, needs: Mapping[str, Sequence[str]]) -> list[str]:
        """The next machines of the incident that a machine depends on, over any number that are not in it."""
        return sorted(each for each in self._walk(entity, needs, self._began) if each in self._began)

    def _walk(self, entity: str, graph: Mapping[str, Sequence[str]], ends: Collection[str] = ()) -> Iterator[str]:
        """The machines on the ways from one, the next ones first; a way goes no further than one of its ends."""
        reached, left, few = {entity}, deque([entity]), _FEW
        while left and (self._left > 0 or few > 0):
            following = graph.get(left.popleft(), ())
            if self._left > 0:
                self._left -= len(following) + 1
            else:
                following = following[:few]
                few -= len(following) + 1
            for machine in following:
                if machine not in reached:
                    reached.add(machine)
                    yield machine
                    if machine not in ends:
                        left.append(machine)
