"""What kube-state-metrics says of ends and cordons becomes changes, once each, whatever the micro-batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from engine.spec.decoder import Messages
from engine.state.segments import ShardState, pack, unpack
from engine.testing.driven import Driven
from pipelines.contracts.records import Change
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.placements.decoder import PlacementsDecoder
from pipelines.jobs.places.conditions import AGAIN, GONE, LAPSED
from pipelines.jobs.places.job import places
from pipelines.jobs.places.logic import DAY
from tests.pipelines.detectors.shard import T0, Event, run
from tests.pipelines.detectors.test_ended import absent, lives, pod
from tests.pipelines.formats import remote_writes
from tests.pipelines.placements.test_decoder import T
from tests.pipelines.placements.test_places import MINUTE, SETTINGS, Sent, Site, tick

POD, REPORT, NODE = "shop/cart-7d4b9c6f5-x2x7p", "shop/report-29384700", "node-1"
SCRAPE = 30_000
Labels = dict[str, str]


def of_pod(name: str, **more: str) -> Labels:
    space, _, short = name.rpartition("/")
    return {"namespace": space, "pod": short, "uid": "8c4b", **more}


def line(name: str, labels: Labels, value: float, at: int) -> bytes:
    inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value!r} {at}".encode()


def unschedulable(value: float, at: int, node: str = NODE) -> bytes:
    return line("kube_node_spec_unschedulable", {"node": node}, value, at)


def phase(name: str, at: int, is_in: str = "Succeeded") -> bytes:
    """All five series of a pod, as kube-state-metrics has them."""
    phases = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
    each = (line("kube_pod_status_phase", of_pod(name, phase=p), float(p == is_in), at) for p in phases)
    return b"\n".join(each)


def deleted(name: str, until: int, at: int) -> bytes:
    return line("kube_pod_deletion_timestamp", of_pod(name), until / 1000, at)


def changes(run: Driven) -> list[tuple[str, str, int]]:
    """Kind, machine and time of what was told, in the order of their times; each is a valid change with an own id."""
    told = [Change.model_validate(row) for row in run.side.get("changes", ())]
    assert len({each.id for each in told}) == len(told)
    assert all(each.source == "kube-state-metrics" and len(each.machines) == 1 for each in told)
    return sorted(((each.kind, each.machines[0], each.time) for each in told), key=lambda row: row[::-1])


def site(*sent: Sent, until: int = T + 60 * MINUTE) -> Site:
    """All that is sent, in micro-batches of 30 s, in which others are seen."""
    found = Site()
    for at in range(T, until + 1, SCRAPE):
        found.send(*(each for each in sent if at <= each[0] < at + SCRAPE), *tick(at))
    return found


SAID = {
    "cordoned": ("kube_node_spec_unschedulable", {"node": NODE}, 1.0, (NODE, "cordoned", None)),
    "schedulable": ("kube_node_spec_unschedulable", {"node": NODE}, 0.0, (NODE, "schedulable", None)),
    "succeeded": ("kube_pod_status_phase", of_pod(POD, phase="Succeeded"), 1.0, (POD, "ended", None)),
    "complete": (
        "kube_job_complete",
        {"namespace": "shop", "job_name": "report-29384700", "condition": "true"},
        1.0,
        (REPORT, "ended", None),
    ),
    "deleted": ("kube_pod_deletion_timestamp", of_pod(POD), T / 1000 + 30, (POD, "ending", T + 30_000)),
}
"""Samples with the labels of kube-state-metrics' documentation, and what each says."""


def facts(*values: bytes, rule: LabelRule = LABELS) -> list[tuple[Any, ...]]:
    rows = PlacementsDecoder(rule).decode(Messages.of(values, T)).records.to_pylist()
    return [(row["entity"], row["condition"], row["seen"], row["time"]) for row in rows if row["condition"]]


@pytest.mark.parametrize(("name", "labels", "value", "fact"), SAID.values(), ids=SAID)
def test_each_way_of_sending_says_the_same_condition(
    name: str, labels: Labels, value: float, fact: tuple[Any, ...]
) -> None:
    """With the exact time: within ten seconds a node may be cordoned and no longer be."""
    at = T + 1_234
    series = {"__name__": name, **labels, "instance": "10.1.0.9:8080", "job": "kube-state-metrics"}
    first = remote_writes.request(remote_writes.series(series, (value, at)))
    second = remote_writes.Second()
    second.add(series, (value, at))
    made = ExportMetricsServiceRequest()
    metric = made.resource_metrics.add().scope_metrics.add().metrics.add(name=name)
    point = metric.gauge.data_points.add(time_unix_nano=at * 1_000_000, as_double=value)
    for key, text in labels.items():
        point.attributes.add(key=key).value.string_value = text
    values = [line(name, labels, value, at), first, second.bytes(), made.SerializeToString()]
    for each in (*values, json_format.MessageToJson(made, indent=None).encode()):
        assert facts(each) == [(*fact, at)], each
    point.flags = 1
    stale = remote_writes.request(remote_writes.series(series, (remote_writes.STALE, at)))
    assert facts(made.SerializeToString(), stale, line(name, labels, float("nan"), at)) == []


HOSTILE = ("*", "cart-?", "", "a" * 300, "Cart", "a\u0007b", "a b", "a/b", "-a", "ä", "x' OR 1")


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_name_of_kubernetes_ends_nothing(name: str) -> None:
    """Above all no glob: it would say of all machines at once that they were ended."""
    for key in ("namespace", "pod"):
        labels = {**of_pod(POD, phase="Succeeded"), key: name}
        for metric, value in (("kube_pod_status_phase", 1.0), ("kube_pod_deletion_timestamp", T / 1000)):
            series = remote_writes.series({"__name__": metric, **labels}, (value, T))
            assert facts(remote_writes.request(series)) == []
    for metric, labels in (
        ("kube_node_spec_unschedulable", {"node": name}),
        ("kube_job_complete", {"namespace": "shop", "job_name": name, "condition": "true"}),
    ):
        assert facts(remote_writes.request(remote_writes.series({"__name__": metric, **labels}, (1.0, T)))) == []


@pytest.mark.parametrize("value", [0.0, -5.0, 1e300, float("inf"), -float("inf"), 2.0**63])
def test_a_deletion_at_no_time_is_none(value: float) -> None:
    assert facts(line("kube_pod_deletion_timestamp", of_pod(POD), value, T)) == []


def test_pods_whose_metrics_are_of_other_machines_are_not_ended() -> None:
    """With `input.pods = false` and a default machine it would be this one that is said to have ended."""
    rule = LabelRule(pods=False, default="gateway")
    assert facts(phase(POD, T), deleted(POD, T + 30_000, T), rule=rule) == []


def scrapes(first: int, last: int) -> range:
    return range(T + first * MINUTE, T + last * MINUTE, SCRAPE)


def test_a_node_is_cordoned_and_usable_again_once_however_often_it_is_said() -> None:
    sent = [(at, 0, unschedulable(float(10 * MINUTE <= at - T < 25 * MINUTE), at)) for at in scrapes(0, 50)]
    found = site(*sent)
    assert changes(found.run) == [("cordon", NODE, T + 10 * MINUTE), ("uncordon", NODE, T + 25 * MINUTE)]


def test_a_node_that_is_cordoned_when_the_job_starts_is_so_since_it_was_first_seen_and_no_restart_tells_it_again() -> (
    None
):
    found = site(*[(at, 0, unschedulable(1.0, at)) for at in scrapes(0, 20)], until=T + 20 * MINUTE)
    again = Site()
    again.run.states, again.offset = found.run.states, found.offset
    for at in scrapes(21, 40):
        again.send((at, 0, unschedulable(1.0, at)), *tick(at))
    assert (changes(found.run), changes(again.run)) == ([("cordon", NODE, T)], [])


def test_what_an_earlier_version_held_back_says_nothing_of_conditions() -> None:
    """Its sightings have no such column; with two shards one of them meets no newer ones."""
    before, again = Site(2), Site(2)
    before.send((T, 0, b"\n".join(phase(f"shop/{name}-0", T) for name in "abcdefgh")), *tick(T))
    held = 0
    for segments in before.run.states:
        state = ShardState(segments)
        for log in [name for name in segments.values if "held/" in name]:
            records = unpack(state.get(log) or b"")["records"]
            held += records.height
            state.put(log, pack({"records": records.drop("condition")}))
    assert held >= 8
    again.run.states, again.offset = before.run.states, before.offset
    for minute in range(1, 8):
        again.send(*tick(T + minute * MINUTE))
    assert changes(again.run) == []


def test_a_node_is_cordoned_while_one_of_two_clusters_says_so() -> None:
    """Each of them is asked twice a minute: a change at each sample would be thousands a day."""
    sent = [(at, 0, unschedulable(float(at - T < 20 * MINUTE), at)) for at in scrapes(0, 40)]
    other = [(at + 7_000, 1, unschedulable(0.0, at + 7_000)) for at in scrapes(0, 40)]
    told = changes(site(*sent, *other).run)
    last = max(at for at in scrapes(0, 20))
    assert told == [("cordon", NODE, T), ("uncordon", NODE, last + 7_000)]


def test_a_pod_that_has_succeeded_is_told_once_and_once_more_when_it_is_gone() -> None:
    """Its gauges go on until Kubernetes deletes it, an hour later or days: then it falls silent, and is no absence."""
    sent = [(at, 0, phase(POD, at, "Running")) for at in scrapes(0, 5)]
    sent += [(at, 0, phase(POD, at)) for at in scrapes(5, 5 + AGAIN // MINUTE + 5)]
    last = sent[-1][0]
    assert changes(site(*sent, until=last + GONE + 2 * MINUTE).run) == [
        ("ended", POD, T + 5 * MINUTE),
        ("ended", POD, last),
    ]


@pytest.mark.parametrize("other", ["Pending", "Running", "Failed", "Unknown"])
def test_a_pod_in_any_other_phase_has_not_ended_on_purpose(other: str) -> None:
    assert changes(site(*[(at, 0, phase(POD, at, other)) for at in scrapes(0, 10)]).run) == []


@pytest.mark.parametrize("condition", ["true", "false", "unknown"])
def test_a_job_has_ended_only_if_it_is_complete(condition: str) -> None:
    labels = {"namespace": "shop", "job_name": "report-29384700", "condition": condition}
    told = changes(site((T, 0, line("kube_job_complete", labels, 1.0, T))).run)
    assert told == ([("ended", REPORT, T)] if condition == "true" else [])


@pytest.mark.parametrize(("grace", "seen", "told"), [(30, 0, 0), (30, 25, 0), (600, 25, 25), (1, 0, -29)])
def test_a_pod_was_told_to_end_its_grace_period_before_its_deletion(grace: int, seen: int, told: int) -> None:
    """Seconds: the default is 30, so a longer one is told when it is seen, and a shorter one that much too early."""
    begin = T + 10 * MINUTE
    sent = [(begin + s * 1000, 0, deleted(POD, begin + grace * 1000, begin + s * 1000)) for s in (seen, seen + 30)]
    assert changes(site(*sent).run) == [("ending", POD, begin + told * 1000)]


def test_a_pod_of_a_stateful_set_is_ended_in_each_of_its_lives_and_what_is_stale_tells_nothing() -> None:
    first, second = T + 5 * MINUTE, T + 9 * MINUTE
    sent = [(first, 0, deleted("shop/db-0", first + 30_000, first))]
    sent += [(second, 0, deleted("shop/db-0", second + 30_000, second))]
    sent += [(second + 4_000, 1, deleted("shop/db-0", first + 30_000, second + 4_000))]
    assert changes(site(*sent).run) == [("ending", "shop/db-0", first), ("ending", "shop/db-0", second)]


def test_a_deletion_of_days_ago_that_never_came_to_an_end_is_not_told() -> None:
    assert changes(site((T, 0, deleted(POD, T - 2 * DAY, T))).run) == []


def test_a_sample_that_comes_within_the_disorder_of_agents_is_in_its_place() -> None:
    begin = T + 5 * MINUTE
    late = (begin + 3_000, 1, unschedulable(1.0, begin))
    sent = [(begin + 2_000, 0, unschedulable(1.0, begin + 2_000)), late]
    assert changes(site(*sent).run) == [("cordon", NODE, begin)]


STEPS = st.lists(
    st.tuples(st.integers(0, 80), st.integers(0, 1), st.sampled_from(["node-1", "node-2", "shop/a-0"]), st.booleans()),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.lists(st.integers(0, 80), max_size=6), st.sampled_from([1, 2]))
def test_micro_batches_order_and_shards_change_no_change(
    steps: Sequence[tuple[int, int, str, bool]], cuts: list[int], shards: int
) -> None:
    def message(name: str, on: bool, at: int) -> bytes:
        if "/" not in name:
            return unschedulable(float(on), at, name)
        return phase(name, at) if on else deleted(name, at - at % (7 * SCRAPE) + 20_000, at)

    sent = sorted((T + n * SCRAPE, p, message(name, on, T + n * SCRAPE)) for n, p, name, on in steps)
    ticks = [each for n in range(81) for each in tick(T + n * SCRAPE)]
    everything, end = sorted([*sent, *ticks]), T + 81 * SCRAPE + GONE + 5 * MINUTE
    one, other = Site(), Site(shards)
    one.send(*everything)
    one.until(end)
    for begin, stop in pairwise([T, *sorted(T + cut * SCRAPE for cut in cuts), end]):
        other.send(*reversed([each for each in everything if begin <= each[0] < stop]))
    other.until(end)
    found = changes(one.run)
    assert found == changes(other.run)
    for node in ("node-1", "node-2"):
        said = [(T + n * SCRAPE, on) for n, _, name, on in steps if name == node]
        assert [(kind, at) for kind, name, at in found if name == node] == drains(said)


def drains(said: Iterable[tuple[int, bool]]) -> list[tuple[str, int]]:
    """By the definition: a cordon goes on over what was said to the contrary for less than `LAPSED` after each word."""
    told: list[tuple[str, int]] = []
    on = sorted({at for at, is_on in said if is_on})
    off = sorted({at for at, is_on in said if not is_on})
    begun = False
    for n, at in enumerate(on):
        told += [] if begun else [("cordon", at)]
        following = on[n + 1] if n + 1 < len(on) else None
        contrary = [each for each in off if each >= at and (following is None or each < following)]
        begun = not contrary or (following is not None and following < at + LAPSED)
        told += [] if begun else [("uncordon", contrary[0])]
    return told


def test_nodes_that_are_invented_within_a_minute_do_not_grow_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.jobs.places.job.MOST_MACHINES", 100)
    found = Site()
    found.run = Driven(places(SETTINGS), 1)
    for n in range(20):
        at = T + n * 1_200
        found.send((at, 0, b"\n".join(unschedulable(1.0, at, f"n{n}-{i}") for i in range(50))), *tick(at))
    found.until(T + 5 * MINUTE)
    assert 90 <= len(changes(found.run)) <= 100
    letters = [letter for letter in found.run.dead if letter["error.code"] == "TOO_MANY_KEYS"]
    assert sum(letter["records"] for letter in letters) >= 900


@pytest.mark.parametrize("size", [1, 7, 120])
def test_what_has_succeeded_or_was_deleted_is_no_absence_and_what_has_crashed_is_one(size: int) -> None:
    """From kube-state-metrics to verdicts: four pods fall silent at minute 60, and no event of Kubernetes comes."""
    done, gone, crashed, lost = pod(0), pod(1), pod(2), pod(3)
    until = T0 + 60 * MINUTE + 30_000
    messages: list[Sent] = []
    for at in range(T0 + 50 * MINUTE + 11_000, T0 + 90 * MINUTE, SCRAPE):
        ended = at > T0 + 60 * MINUTE
        values = [
            phase(done, at, "Succeeded" if ended else "Running"),
            phase(crashed, at, "Failed" if ended else "Running"),
        ]
        values += [deleted(gone, until, at)] if T0 + 60 * MINUTE < at < until else []
        evicted = T0 + 66 * MINUTE  # five minutes after its node was not ready, by the taint manager
        values += [deleted(lost, evicted + 30_000, at)] if at > evicted else []
        messages.append((at, 0, b"\n".join(values)))
    found = Site()
    batches = [messages[n : n + size] for n in range(0, len(messages), size)]
    for batch in batches:
        found.send(*batch, *(each for at, _, _ in batch for each in tick(at)))
    found.until(T0 + 95 * MINUTE)
    assert {(kind, name) for kind, name, _ in changes(found.run)} == {
        ("ended", done),
        ("ending", gone),
        ("ending", lost),
    }
    told = [Change.model_validate(row) for row in found.run.side["changes"]]
    said: list[Event] = [{"window_end": each.time, "change": each.to_json().decode()} for each in told]
    windows = [event for name in (done, gone, crashed, lost) for event in lives(name, 1, 60)]
    judged = run([*windows, *lives(pod(4), 1, 120), *said], [58, 62, 80, 120], MINUTE)
    assert absent(judged) == {(crashed, 61), (lost, 61)}
