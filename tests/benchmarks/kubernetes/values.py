"""The values of the simulated Kubernetes: four metrics of each pod and four of each node, a window of a minute each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tests.benchmarks.kubernetes.site import BEGIN, DAY, HOUR, MINUTE, Event, KubernetesSite

Floats = npt.NDArray[np.float64]
POD = {"container.cpu": "gauge", "container.memory": "gauge", "http.requests": "counter", "http.latency": "latency"}
NODE = {"cpu.used": "gauge", "load.1m": "gauge", "net.tx": "counter", "disk.used": "gauge"}
_CLOCK = 0.7
"""How much of the noise of a window is still there in the next one."""
_EFFECTS: dict[str, dict[str, float]] = {
    "bad_release": {"http.latency": 1.0, "container.cpu": 0.4},
    "surge": {"http.requests": 1.0, "container.cpu": 0.8, "http.latency": 0.4},
    "slow_pod": {"http.latency": 1.0},
    "node_hot": {"http.latency": 1.0, "cpu.used": 0.7, "load.1m": 1.2},
    "everywhere": {"http.requests": 1.0, "container.cpu": 0.7, "net.tx": 1.0},
}
"""By which power of its size an event multiplies each metric."""


class Values:
    """The features of all windows, some at a time.

    Args:
        site: What happens.
    """

    def __init__(self, site: KubernetesSite) -> None:
        self._site, self._random = site, np.random.default_rng(site.seed + 1)
        self._machines = [pod.name for pod in site.pods] + site.node_names
        names = [each.name for each in site.workloads] + site.node_names
        place = {name: number for number, name in enumerate(names)}
        self._of = np.array([place[pod.workload] for pod in site.pods] + [place[name] for name in site.node_names])
        self._alive = self._lives()
        count = len(names)
        self._levels = np.exp(self._random.normal(0, 1.0, (count, 4))) * np.array([0.3, 5e8, 40.0, 30.0])
        self._levels[-site.nodes :] = np.exp(self._random.normal(0, 0.1, (site.nodes, 4))) * [0.3, 4.0, 5e6, 40.0]
        self._daily = self._random.uniform(0.1, 0.4, count)
        self._own = np.exp(self._random.normal(0, 0.05, (len(self._machines), 4)))
        self._noise = np.zeros((len(self._machines), 4))

    def _lives(self) -> list[tuple[str, int, int]]:
        """Each machine with the times in which it sends something; several of one that is silent between them."""
        spans = [(pod.name, pod.start, pod.end) for pod in self._site.pods]
        spans += [(name, BEGIN, self._site.end) for name in self._site.node_names]
        for name, since, until, _ in self._site.silent:
            parts = []
            for each in spans:
                if each[0] == name and each[1] < until and each[2] > since:
                    parts += [(name, each[1], min(each[2], since)), (name, max(each[1], until), each[2])]
                else:
                    parts.append(each)
            spans = [each for each in parts if each[1] < each[2]]
        return spans

    def chunks(self, windows: int) -> Iterator[tuple[int, pl.DataFrame]]:
        """Up to which instant the windows of a chunk go, and their features."""
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(self._machines):
            rows.setdefault(name, []).append(row)
        # a pod of a stateful set has the name of its predecessor, but is a row of its own
        spans = []
        for name, since, until in self._alive:
            row = next((r for r in rows[name] if r >= len(self._site.pods) or self._covers(r, since)), rows[name][0])
            spans.append((row, since, until))
        row, since, until = (np.array(column) for column in zip(*spans, strict=True))
        for first in range(BEGIN, self._site.end, windows * MINUTE):
            frames = []
            for start in range(first, min(first + windows * MINUTE, self._site.end), MINUTE):
                self._noise = _CLOCK * self._noise + self._random.normal(0, 0.06, self._noise.shape)
                frames.append(self._window(start, np.unique(row[(since <= start) & (start < until)])))
            yield min(first + windows * MINUTE, self._site.end), pl.concat(frames)

    def _covers(self, row: int, at: int) -> bool:
        pod = self._site.pods[row]
        return pod.start <= at < pod.end

    def _window(self, start: int, rows: npt.NDArray[np.int64]) -> pl.DataFrame:
        is_node = rows >= len(self._site.pods)
        of, hour = self._of[rows], (start % DAY) / HOUR
        curve = 1 + self._daily[of] * np.sin(2 * np.pi * (hour - 9) / 24)
        values = self._levels[of] * self._own[rows] * np.exp(self._noise[rows])
        values[:, [0, 2]] *= curve[:, None]
        values[:, 1] = np.where(is_node, values[:, 1] * curve, values[:, 1] * self._warming(rows, start))
        values[is_node, 3] = 40 + self._own[rows[is_node], 3] * 5 + 0.02 * self._noise[rows[is_node], 3]
        self._happen(values, rows, is_node, start)
        values[is_node, 0] = np.minimum(values[is_node, 0], 1.0)
        machines = np.array(self._machines, object)[rows]
        return pl.concat(
            _features(machines[mine], values[mine], metrics, start)
            for mine, metrics in ((~is_node, POD), (is_node, NODE))
        )

    def _warming(self, rows: npt.NDArray[np.int64], start: int) -> Floats:
        """Caches of a new pod fill up within half an hour."""
        pods = self._site.pods
        age = np.array([start - pods[row].start if row < len(pods) else DAY for row in rows]) / (10 * MINUTE)
        return 1 - 0.3 * np.exp(-age)

    def _happen(self, values: Floats, rows: npt.NDArray[np.int64], is_node: npt.NDArray[np.bool_], start: int) -> None:
        for event in self._site.events:
            if event.start <= start < event.end and event.kind in _EFFECTS:
                touched = self._touched(event, rows)
                for names, mine in ((list(POD), touched & ~is_node), (list(NODE), touched & is_node)):
                    for metric, power in _EFFECTS[event.kind].items():
                        if metric in names:
                            values[mine, names.index(metric)] *= event.size**power

    def _touched(self, event: Event, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        if not event.machines:
            return np.ones(len(rows), bool)
        machines = set(event.machines)
        return np.array([self._machines[row] in machines for row in rows])


def _features(machines: npt.NDArray[Any], values: Floats, metrics: dict[str, str], start: int) -> pl.DataFrame:
    count, kinds = len(machines), list(metrics.values())
    value = pl.Series("mean", values.ravel())
    rate = pl.when(pl.col("kind") == "counter").then(pl.col("mean"))
    return pl.DataFrame(
        {
            "entity": np.repeat(machines, len(metrics)).tolist(),
            "metric": list(metrics) * count,
            "kind": kinds * count,
            "mean": value,
            **dict.fromkeys(("min", "max", "last", "p50", "p95", "p99"), value),
        }
    ).with_columns(
        window_start=pl.lit(start, pl.Int64), window_end=pl.lit(start + MINUTE, pl.Int64), count=pl.lit(6, pl.Int64),
        std=pl.lit(1.0), rate=rate, revision=pl.lit(0, pl.Int64),
    )  # fmt: skip
