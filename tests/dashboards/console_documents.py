"""A site with incidents, as the sink stores it, for the tests of the console."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, product
from typing import Any

from elasticsearch import Elasticsearch, NotFoundError

from dashboards.console import Store
from pipelines.contracts.records import Change, Incident, Novelty
from pipelines.contracts.records.incident import AffectedMachine, Candidate, EarlierChange, LogChange
from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument

SECOND, WINDOW = 1_000, 10_000
END = int(time.time() * 1000) // WINDOW * WINDOW
ONSET = END - 20 * WINDOW
HOSTILE = "<img src=x onerror='window.hacked=1'>\"<script>window.hacked=1</script>\u202etxt.exe" + "w" * 300


def novelty(entity: str, metric: str, end: int, kind: Any, score: float) -> Novelty:
    """One verdict on the window that ends at ``end``, epoch ms."""
    return Novelty(
        entity=entity, metric=metric, window_start=end - WINDOW, window_end=end, kind=kind, record_score=score,
        probability=1e-4, actual=9.0, typical=5.0, lower=4.0, upper=6.0,
        since=end - WINDOW if kind in ("anomaly", "absence") else None,
    )  # type: ignore[call-arg]  # fmt: skip


def incident(identity: str, status: Any, score: int, machines: list[str], **more: Any) -> Incident:
    """An incident that began at `ONSET`, or at ``start``; the first machine is the likeliest to be where it began."""
    start = more.pop("start", ONSET)
    severity: Any = ("warning", "minor", "major", "critical")[min(3, score // 25)]
    values: dict[str, Any] = {
        "opened": start + WINDOW, "site": "default", "severity": severity, "severity_score": score, "record_score": 93,
        "updated": END, "message": f"{identity}: {len(machines)} machines", "machine_count": len(machines),
        "series_count": 3, "open_series": 3, "revision": 1, "start": start,
        "machines": [AffectedMachine(entity=name, since=start, series=1, record_score=88) for name in machines],
        "candidates": [
            Candidate(entity=machines[0], metric="cpu", since=start, share=0.75, reason="it began first")
        ],
        "unknown_share": 0.25,
    }  # fmt: skip
    return Incident(**{"id": identity, "status": status, **values, **more})


DEPLOYED = LogChange(
    template="release <*> was started", example="release 2.4 was started", entity="vm-1", since=ONSET, machines=2
)

RELEASED = EarlierChange(id="r1", kind="feature_flag", message="new checkout on", since=ONSET - WINDOW, entity="vm-1")

INCIDENTS = [
    incident("small", "open", 40, ["db-1"], start=ONSET + WINDOW),
    incident("rack", "open", 90, ["rack-7", "vm-1", "vm-2"], log_changes=[DEPLOYED], changes=[RELEASED]),
    incident("again", "reopened", 60, ["web-1", "web-2"], reopenings=2),
    incident(
        "ours",
        "acknowledged",
        60,
        [HOSTILE],
        acknowledged_by=HOSTILE,
        message=HOSTILE,
        start=ONSET - WINDOW,
        log_changes=[LogChange(template=HOSTILE, entity=HOSTILE, since=ONSET, machines=1)],
        changes=[EarlierChange(id=HOSTILE, kind="other", message=HOSTILE, since=ONSET, entity=HOSTILE)],
    ),
    incident("past", "resolved", 99, ["web-9"], end=END - WINDOW, open_series=0),
    incident("older", "resolved", 99, ["web-8"], end=END - 5 * WINDOW, open_series=0),
    incident("part", "merged", 80, ["vm-1"], merged_into="rack"),
]

NOVELTIES = [
    novelty("rack-7", "cpu", ONSET + WINDOW, "absence", 88.0),
    novelty("vm-1", JOINED, ONSET + WINDOW, "anomaly", 70.0),  # left out: a single metric of vm-1 is novel too
    novelty("vm-1", "cpu", ONSET + 2 * WINDOW, "anomaly", 77.0),
    novelty("vm-2", "disk", ONSET + 3 * WINDOW, "anomaly", 71.0),
    novelty("vm-2", "disk", ONSET + 4 * WINDOW, "anomaly", 93.0),
    novelty("vm-2", "disk", ONSET + 5 * WINDOW, "recovered", 99.0),
    novelty("vm-2", "net", ONSET + 5 * WINDOW, "normal", 98.0),
    novelty("vm-2", "fan", ONSET - 60 * WINDOW, "anomaly", 97.0),  # long before
    novelty("db-1", "cpu", ONSET + 2 * WINDOW, "anomaly", 75.0),  # another machine
    novelty("web-8", JOINED, END - 6 * WINDOW, "anomaly", 75.0),
    novelty(HOSTILE, HOSTILE, ONSET + WINDOW, "anomaly", 75.0),
]
"""Of these, rack-7 cpu, vm-1 cpu and vm-2 disk are the series of the incident `rack`, in this order."""


MACHINE = "rack/9 <b>50%</b>\u202e?#x"
DAY = 86_400_000
LENGTH, AT = 100, 60
"""Windows of the series cpu of `MACHINE`, and which of them is the first of three anomalies."""


def _cpu(end: int, shift: float, anomalies: range = range(0)) -> Iterator[Novelty]:
    for i in range(LENGTH):
        kind = "anomaly" if i in anomalies else "normal"
        score = 90.0 + i % 10 if i in anomalies else 5.0
        yield novelty(MACHINE, "cpu", end - (LENGTH - 1 - i) * WINDOW, kind, score).model_copy(
            update={"actual": i + shift}
        )


MACHINE_NOVELTIES = [
    *_cpu(END, 0.0, range(AT, AT + 3)),
    *_cpu(END - DAY, 1_000.0),
    *(novelty(MACHINE, "fan", END - i * WINDOW, "normal", 40.0 + i) for i in range(3)),
    novelty(MACHINE, "disk", END - WINDOW, "anomaly", 97.0),
    novelty(MACHINE, "disk", END, "recovered", 99.0),  # no alarm: its score does not count
    novelty(MACHINE, "logs", END - 2 * WINDOW, "anomaly", 80.0).model_copy(update={"template": "<*> failed"}),
    novelty(MACHINE, "old", END - 3 * DAY, "anomaly", 99.0),
    novelty("rack/8", "cpu", END, "anomaly", 99.5),
]
MACHINE_INCIDENTS = [
    incident("nine", "open", 95, [MACHINE, "vm-5"]),
    incident("nine-past", "resolved", 50, [MACHINE], end=END - 5 * WINDOW, open_series=0),
    incident("nine-part", "merged", 50, [MACHINE], merged_into="nine"),
    incident("eight", "open", 30, ["rack/8"]),
]


PODS, WORKLOADS = 200, 12


def _replica(number: int, letters: str) -> Novelty:
    workload = f"shop/app{number % WORKLOADS:02}"
    made = novelty(f"{workload}-7d4b9c6f5-{letters}", "cpu", END - number % 5 * WINDOW, "anomaly", 50.0 + number % 50)
    return made.model_copy(update={"workload": workload})


REPLICAS = [_replica(i, "".join(letters)) for i, letters in enumerate(islice(product("bcdfghj", repeat=5), PODS))]
"""One alarm of each of 200 pods that belong to twelve workloads."""


@contextmanager
def stored_site(
    url: str,
    novelties: list[Novelty] = NOVELTIES,
    incidents: list[Incident] = INCIDENTS,
    changes: Sequence[Change] = (),
) -> Iterator[Store]:
    """The documents above in indices of their own; they are deleted at the end."""
    name = f"c{uuid.uuid4().hex[:10]}"
    records: tuple[tuple[str, type[Novelty | Incident | Change], Sequence[Any]], ...] = (
        (name, Novelty, novelties), (f"{name}-incidents", Incident, incidents), (f"{name}-changes", Change, changes),
    )  # fmt: skip
    for index, kind, found in records:
        sink = Sink(SinkConfig(url, index=index, alias=index), kind)
        assert sink.write([SinkDocument(each.to_json()) for each in found]).indexed == len(found)
        sink.close()
    with Elasticsearch(url) as client:
        client.indices.refresh(index=f"{name}*")
    store = Store(url, name, f"{name}-incidents", f"{name}-changes")
    yield store
    store.close()
    with Elasticsearch(url) as client:
        for index in client.indices.get(index=f"{name}*"):
            client.indices.delete(index=index)
        with contextlib.suppress(NotFoundError):
            client.indices.delete_index_template(name=f"newnormal-{name}*")
