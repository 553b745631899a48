"""What the jobs that infer the topology cost: CPU time of a machine, and of a span."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.pipelines.placements.test_calls import Traces, spans
from tests.pipelines.placements.test_decoder import T, request
from tests.pipelines.placements.test_places import SLOT, Site, tick

SLOTS, PAIRS = 4, 64
"""Micro-batches in which each machine is seen, and calls in a message of traces."""


def run(machines: int = 20_000, traces: int = 20_000) -> dict[str, float]:
    """Coefficients of `newnormal plan`, by name, in core-microseconds."""
    site, pods = Site(), [{"k8s.pod.name": f"pod-{n}", "k8s.node.name": f"n{n % 100}"} for n in range(machines)]
    seen = [(at, request(*pods, time=at).SerializeToString()) for at in range(T, T + SLOTS * SLOT, SLOT)]
    waiting = Traces()
    called = [
        spans(*((n + i, span, span - 1, "ab"[span - 1], None) for i in range(1, PAIRS) for span in (1, 2)), at=T)
        for n in range(0, traces, PAIRS)
    ]

    def places() -> None:
        for at, value in seen:
            site.send((at, 0, value), *tick(at))

    sent, count = [(T, n % 2, value) for n, value in enumerate(called)], len(called) * (PAIRS - 1) * 2
    calls = _seconds(lambda: waiting.send(*sent)) + _seconds(waiting.end)
    return {"places.machine": _seconds(places) / machines / SLOTS * 1e6, "calls.span": calls / count * 1e6}


def _seconds(done: Callable[[], object]) -> float:
    began = time.process_time()
    done()
    return time.process_time() - began
