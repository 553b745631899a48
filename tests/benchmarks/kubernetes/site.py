"""A simulated Kubernetes: nodes, workloads and their pods over time, and what happens to them.

Pods roll with a surge, scale with the hour, crash, are drained from their nodes and go down with them; releases go
wrong, nodes are overloaded, requests surge. Events say what Kubernetes would say. All follows from the seed; nothing is
shared with what is judged by it.

Sources: the Kubernetes documentation of rolling updates (``maxSurge``), of HorizontalPodAutoscaler, of ``kubectl
drain`` and of eviction by taints (five minutes after a node is not ready); reasons are kubelet's and the controllers'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal
from zlib import crc32

import numpy as np

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
BEGIN = 1_767_571_200_000
"""Monday, 5 January 2026, 0:00 UTC."""
GRACE = 30_000
"""Within so many milliseconds a pod that is told to end does so."""
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SPACE = "shop"

Fault = Literal["bad_release", "crash", "node_down", "node_hot", "surge", "slow_pod", "everywhere"]


@dataclass
class Pod:
    """One pod.

    Attributes:
        name: ``namespace/name``.
        workload: ``namespace/name`` of what it is a replica of.
        node: Where it runs.
        start: From when on, epoch milliseconds.
        end: Until when; the end of the simulation if it goes on.
        planned: Whether its end was planned.
    """

    name: str
    workload: str
    node: str
    start: int
    end: int
    planned: bool = True


@dataclass(frozen=True)
class Workload:
    """What replicas have in common.

    Attributes:
        name: ``namespace/name``.
        replicas: How many there are by night.
        by_day: How many more there are from 8:00 to 19:00.
        stateful: Whether a pod that is replaced keeps its name.
    """

    name: str
    replicas: int
    by_day: int = 0
    stateful: bool = False


@dataclass(frozen=True)
class Event:
    """Something that operators should be told, once.

    Attributes:
        kind: What happened.
        start: Since when, epoch milliseconds.
        end: Until when.
        machines: The machines that it befalls; empty: all.
        name: The node or the workload that incidents should name.
        change: Id of the change that caused it; empty: none did.
        size: By what values are multiplied.
        beside: Further machines on which it is seen, as they differ from those.
    """

    kind: Fault
    start: int
    end: int
    machines: tuple[str, ...]
    name: str
    change: str = ""
    size: float = 1.0
    beside: tuple[str, ...] = ()


@dataclass
class KubernetesSite:
    """All that happens in some days.

    Args:
        seed: Seed of all random numbers.
        days: How many.
        nodes: How many there are.
        quiet: Days at the beginning without faults.
    """

    seed: int = 1
    days: int = 7
    nodes: int = 12
    quiet: int = 1
    pods: list[Pod] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    said: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    silent: list[tuple[str, int, int, bool]] = field(default_factory=list)
    """Machines that send nothing for some time though they exist: from when, until when, and whether it was planned."""
    deletions: list[tuple[str, int, int]] = field(default_factory=list)
    """Pods that are being deleted: from when, and until when they are there."""
    cordons: list[tuple[str, int, int]] = field(default_factory=list)
    """Nodes on which nothing may be placed: from when, until when."""

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._number = 0
        self.end = BEGIN + self.days * DAY
        self.node_names = [f"node-{number:02}" for number in range(self.nodes)]
        self.workloads = [*self._deployments(), *(Workload(f"{_SPACE}/{n}", 3, stateful=True) for n in ("db", "queue"))]
        self._live: dict[str, list[Pod]] = {each.name: [] for each in self.workloads}
        self._away: set[str] = set()
        self._busy: dict[str, int] = {}
        for workload in self.workloads:
            for ordinal in range(workload.replicas):
                self._start(workload, BEGIN, ordinal)
        for at, act in sorted(self._plan(), key=lambda planned: planned[0]):
            act(at)
        self.pods.sort(key=lambda pod: (pod.start, pod.name))
        self.said.sort(key=lambda each: each[0])

    def _deployments(self) -> list[Workload]:
        sizes = self._random.integers(4, 14, 22)
        return [Workload(f"{_SPACE}/service-{n}", int(size), 3 if n % 5 == 0 else 0) for n, size in enumerate(sizes)]

    # what is planned, and when

    def _plan(self) -> Iterator[tuple[int, Any]]:
        deployments = [each for each in self.workloads if not each.stateful]
        for day in range(self.days):
            midnight = BEGIN + day * DAY
            for workload in deployments:
                if workload.by_day:
                    yield midnight + 8 * HOUR, lambda at, w=workload: self._scale(w, at, w.by_day)
                    yield midnight + 19 * HOUR, lambda at, w=workload: self._scale(w, at, -w.by_day)
            for nth in self._random.choice(len(deployments), 10, replace=False):
                yield self._at(midnight, 9, 17), lambda at, w=deployments[nth]: self._release(w, at)
            if day < self.quiet:
                continue
            faults = [self._bad_release, self._crash, self._crash, self._surge, self._slow_pod, self._node_hot]
            faults += [self._node_down] if day % 2 else [self._drain, self._bad_release]
            faults += [self._everywhere] if day % 3 == 2 else []
            hours = self._random.permutation(22)[: len(faults)]  # so that each can be told from the others
            for hour, fault in zip(hours, faults, strict=True):
                yield midnight + int(hour) * HOUR + int(self._random.integers(0, 20)) * MINUTE, fault

    def _at(self, midnight: int, first: int, last: int) -> int:
        return midnight + int(self._random.integers(first * 60, last * 60)) * MINUTE

    # what is done

    def _name(self, workload: Workload, ordinal: int) -> str:
        if workload.stateful:
            return f"{workload.name}-{ordinal}"
        self._number += 1
        end = "".join(self._random.choice(list(_LETTERS), 5))
        return f"{workload.name}-{self._hash(workload)}-{end}"

    def _hash(self, workload: Workload) -> str:
        template = 1_193_046_471 + self._busy.get(workload.name, 0) * 7_919_123
        return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(template))

    def _start(self, workload: Workload, at: int, ordinal: int = 0, node: str = "") -> Pod:
        free = [name for name in self.node_names if name not in self._away]
        load = dict.fromkeys(free, 0)
        for pods in self._live.values():
            for pod in pods:
                if pod.node in load:
                    load[pod.node] += 1
        lightest = min(free, key=lambda name: (load[name], name))
        pod = Pod(self._name(workload, ordinal), workload.name, node or lightest, at, self.end)
        self.pods.append(pod)
        self._live[workload.name].append(pod)
        return pod

    def _stop(self, pod: Pod, at: int, planned: bool = True) -> None:
        pod.end, pod.planned = min(at, self.end), planned
        self._live[pod.workload].remove(pod)

    def _say(self, at: int, reason: str, kind: str, name: str, text: str) -> str:
        """An event, as Kubernetes' API gives it; returns its uid."""
        self._number += 1
        space, _, short = name.rpartition("/")
        uid = f"event-{self._number}"
        told = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": f"{short}.{self._number:x}", "namespace": space or "default", "uid": uid},
            "involvedObject": {"kind": kind, "name": short, **({"namespace": space} if space else {})},
            "reason": reason,
            "message": text,
            "type": "Normal",
            "count": 1,
            "lastTimestamp": str(np.datetime64(at, "ms")) + "Z",
        }
        if at < self.end:
            self.said.append((at, told))
        return uid

    def _deleted(self, pod: Pod, at: int, owner: str = "") -> None:
        short = pod.name.rpartition("/")[2]
        if owner:
            self._say(at, "SuccessfulDelete", "ReplicaSet", owner, f"Deleted pod: {short}")
        self._say(at, "Killing", "Pod", pod.name, "Stopping container app")
        self.deletions.append((pod.name, at, at + 1_000 + crc32(pod.name.encode()) % GRACE))

    def _roll(self, workload: Workload, at: int) -> tuple[str, int, list[Pod]]:
        """Replaces all pods one by one: a new one a minute before an old one ends; id, end, and the new pods."""
        self._busy[workload.name] = self._busy.get(workload.name, 0) + 1
        short = workload.name.rpartition("/")[2]
        uid = self._say(
            at, "ScalingReplicaSet", "Deployment", workload.name,
            f"Scaled up replica set {short}-{self._hash(workload)} to 1",
        )  # fmt: skip
        new = []
        for nth, old in enumerate(list(self._live[workload.name])):
            new.append(self._start(workload, at + nth * MINUTE))
            gone = at + (nth + 1) * MINUTE
            self._deleted(old, gone, f"{workload.name}-{old.name.split('-')[-2]}")
            self._stop(old, gone)
        return uid, at + (len(new) + 1) * MINUTE, new

    def _release(self, workload: Workload, at: int) -> None:
        self._roll(workload, at)

    def _scale(self, workload: Workload, at: int, by: int) -> None:
        count = len(self._live[workload.name]) + by
        self._say(
            at, "SuccessfulRescale", "HorizontalPodAutoscaler", workload.name,
            f"New size: {count}; reason: {'cpu' if by > 0 else 'All metrics below target'}",
        )  # fmt: skip
        for _ in range(by):
            self._start(workload, at + MINUTE)
        for pod in list(self._live[workload.name])[:-by] if by < 0 else []:
            self._deleted(pod, at + MINUTE, f"{workload.name}-{pod.name.split('-')[-2]}")
            self._stop(pod, at + MINUTE)

    def _drain(self, at: int) -> None:
        """A node is emptied within some minutes, is restarted, and is used again."""
        node = str(self._random.choice(self.node_names))
        self._away.add(node)
        self._say(at, "NodeNotSchedulable", "Node", node, f"Node {node} status is now: NodeNotSchedulable")
        for nth, pod in enumerate([p for pods in self._live.values() for p in pods if p.node == node]):
            moved = at + (nth + 1) * 20_000 // MINUTE * MINUTE + MINUTE
            workload = self._workload(pod)
            self._deleted(pod, moved)
            self._stop(pod, moved)
            self._start(workload, moved + MINUTE, _ordinal(pod))
        down = at + 15 * MINUTE
        self.cordons.append((node, at, down + 10 * MINUTE))
        self.silent.append((node, down, down + 8 * MINUTE, True))
        self._say(down + 8 * MINUTE, "Rebooted", "Node", node, f"Node {node} has been rebooted")
        self._say(down + 10 * MINUTE, "NodeSchedulable", "Node", node, f"Node {node} status is now: NodeSchedulable")
        self._away.discard(node)

    # what goes wrong

    def _bad_release(self, at: int) -> None:
        """Requests take three times as long with the new version, until the old one is back."""
        workload = self._any([w for w in self.workloads if not w.stateful])
        old = list(self._live[workload.name])
        uid, done, new = self._roll(workload, at)
        back = done + 25 * MINUTE
        again = self._roll(workload, back)[2]
        machines, others = (tuple(pod.name for pod in pods) for pods in (new, [*old, *again]))
        end = back + MINUTE * len(new)
        self.events.append(Event("bad_release", at, end, machines, workload.name, uid, 3.0, others))

    def _crash(self, at: int) -> None:
        """A pod crashes, and comes back under its name a quarter of an hour later."""
        pod = self._any([p for w in self.workloads for p in self._live[w.name]])
        end = at + 15 * MINUTE
        self.silent.append((pod.name, at, end, False))
        self._say(at + 5 * MINUTE, "BackOff", "Pod", pod.name, "Back-off restarting failed container app")
        self.events.append(Event("crash", at, end, (pod.name,), pod.workload))

    def _surge(self, at: int) -> None:
        workload = self._any([w for w in self.workloads if len(self._live[w.name]) > 3])
        machines = tuple(pod.name for pod in self._live[workload.name])
        self.events.append(Event("surge", at, at + 25 * MINUTE, machines, workload.name, size=3.0))

    def _slow_pod(self, at: int) -> None:
        pod = self._any([p for w in self.workloads if not w.stateful for p in self._live[w.name]])
        self.events.append(Event("slow_pod", at, at + 30 * MINUTE, (pod.name,), pod.workload, size=4.0))

    def _node_hot(self, at: int) -> None:
        node = self._any(self.node_names)
        on_it = [p.name for pods in self._live.values() for p in pods if p.node == node]
        self.events.append(Event("node_hot", at, at + 25 * MINUTE, (node, *on_it), node, size=2.5))

    def _node_down(self, at: int) -> None:
        """A node and its pods fall silent; five minutes later the pods are started elsewhere."""
        node = self._any(self.node_names)
        self._away.add(node)
        end = at + 40 * MINUTE
        self.silent.append((node, at, end, False))
        fell = [p for pods in self._live.values() for p in pods if p.node == node]
        for pod in fell:
            self._stop(pod, at, planned=False)
            again = at + 6 * MINUTE
            self._say(again, "TaintManagerEviction", "Pod", pod.name, f"Marking for deletion Pod {pod.name}")
            self.deletions.append((pod.name, again, end))
            self._start(self._workload(pod), again, _ordinal(pod))
        self._say(at + MINUTE, "NodeNotReady", "Node", node, f"Node {node} status is now: NodeNotReady")
        self._away.discard(node)
        self.events.append(Event("node_down", at, end, (node, *(p.name for p in fell)), node))

    def _everywhere(self, at: int) -> None:
        self.events.append(Event("everywhere", at, at + 20 * MINUTE, (), "", size=0.35))

    def _any(self, choices: list[Any]) -> Any:
        return choices[int(self._random.integers(len(choices)))]

    def _workload(self, pod: Pod) -> Workload:
        return next(each for each in self.workloads if each.name == pod.workload)


def _ordinal(pod: Pod) -> int:
    end = pod.name.rpartition("-")[2]
    return int(end) if end.isdigit() else 0
