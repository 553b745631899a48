"""A machine unlike its peers is told, the same whatever the micro-batches, the shards, and what came late."""

from __future__ import annotations

from itertools import count
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from engine.formats import columnar
from engine.runtime.intake import KAFKA
from engine.testing import Driven
from pipelines.contracts import topics
from pipelines.contracts.explanations import explained
from pipelines.contracts.records import Label, Rule
from pipelines.contracts.settings import DetectorSettings, load
from pipelines.jobs.detectors.job import detector
from pipelines.jobs.detectors.metrics.detection import Detection
from tests.pipelines.detectors.test_any_number_of_shards import Entry, message, message_table, row
from tests.pipelines.detectors.test_operator import PARTITIONS, at, heartbeats
from tests.pipelines.test_rescaling import said

STEPS, FROM, UNTIL = 130, 80, 110
HOSTS = [f"web-{number}" for number in range(40)]
ODD = next(host for host in HOSTS if crc32(host.encode()) % PARTITIONS == 0)
PEERS_OF_ODD = sum(crc32(host.encode()) % PARTITIONS == 0 for host in HOSTS) - 1


def log(corrections: bool) -> list[list[Entry]]:
    """For each step the messages of all partitions; one machine has three times the value of its peers for a time."""
    rng, made = np.random.default_rng(5), []
    for n in range(STEPS):
        load_of_all = 100 * np.exp(np.sin(n / 30))
        rows = [row(host, n, float(load_of_all * np.exp(rng.normal(0, 0.05)))) for host in HOSTS]
        for each in rows:
            if each["entity"] == ODD and FROM <= n < UNTIL:
                each.update({name: 3 * each[name] for name in ("mean", "p95", "rate", "last") if each.get(name)})
        if corrections and n in (40, 86, 100):  # late windows of peers, and of the odd one
            late = [host for host in HOSTS if crc32(host.encode()) % PARTITIONS == 0]
            rows += [row(host, n - 4, 900.0, revision=1) for host in late]
        messages = [message(rows, p, n) for p in range(PARTITIONS)]
        if corrections and n == 90:
            rule = Rule(id="quiet", time=at(85), end=at(95), entity=ODD, metric="cpu", skip_result=True)
            label = Label(entity=ODD, metric="cpu", start=at(80), time=at(83), verdict="false_alarm")
            messages += [(topics.RULES, 1, rule.to_json(), at(n)), (topics.LABELS, 3, label.to_json(), at(n))]
        made.append([*messages, *heartbeats(at(n + 1))])
    end = [(topics.FEATURES, p, columnar.encode(message_table([], p), at(STEPS)), at(STEPS)) for p in range(PARTITIONS)]
    return [*made, end]


def run(shards: int, steps_a_batch: int, corrections: bool = True, emit: str = "novel") -> list[dict[str, Any]]:
    settings = load(**{"detector.emit": emit, "window.allowed_lateness": "50s"})
    driven, offsets, steps = Driven(detector(settings), shards), count(), log(corrections)
    for start in range(0, len(steps), steps_a_batch):
        some = [entry for step in steps[start : start + steps_a_batch] for entry in step]
        rows = [(value, topic, p, next(offsets), arrived) for topic, p, value, arrived in some]
        driven.kafka([pa.Table.from_pylist([dict(zip(KAFKA.names, r, strict=True)) for r in rows], schema=KAFKA)])
    return list(driven.rows)


def beside(verdicts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [verdict for verdict in verdicts if verdict["metric"].startswith("_peers.")]


def test_a_machine_unlike_its_peers_is_an_outlier_until_it_is_like_them_again() -> None:
    begins, *_, ends = sorted(beside(run(1, 7, corrections=False)), key=lambda v: v["@timestamp"])
    assert (begins["host.name"], begins["metric"], begins["kind"]) == (ODD, "_peers.cpu", "outlier")
    assert begins["incident.state"] == "open"
    assert at(FROM) < begins["@timestamp"] <= at(FROM + 6)
    assert begins["message"].startswith(f"{ODD}: cpu is ")
    assert f"× that of its {PEERS_OF_ODD} peers, which it used to equal." in begins["message"]
    assert begins["upper"] < begins["actual"]
    assert (ends["kind"], ends["incident.state"], ends["since"]) == ("recovered", "closed", begins["since"])
    assert at(UNTIL) < ends["@timestamp"] <= at(UNTIL + 25)


@pytest.mark.parametrize(("shards", "steps_a_batch"), [(1, 131), (2, 3), (4, 1)])
def test_verdicts_beside_peers_depend_on_the_log_alone(shards: int, steps_a_batch: int) -> None:
    wanted = beside(run(1, 7))
    assert {verdict["kind"] for verdict in wanted} == {"outlier", "recovered"}
    assert said(beside(run(shards, steps_a_batch))) == said(wanted)


def test_what_comes_late_and_corrections_take_nothing_back() -> None:
    late, verdicts = run(4, 3, emit="all"), beside(run(1, 7))
    assert all(verdict["revision"] == 0 for verdict in verdicts)
    assert said(beside(late)) == said(verdicts)
    assert any(verdict["revision"] > 0 for verdict in late)  # there were corrections


def test_without_partitions_no_machine_is_compared() -> None:
    rng, n = np.random.default_rng(0), 200
    rows = {"entity": HOSTS[:8] * n, "metric": ["cpu"] * 8 * n}
    start = np.repeat(np.arange(n) * 60_000, 8)
    value = rng.normal(100, 5, 8 * n)
    value[8 * 150 :: 8] *= 3
    frame = pl.DataFrame(rows | {"window_start": start, "window_end": start + 60_000, "value": value})
    for partitions, told in ((0, 0), (1, 1)):
        detection = Detection(DetectorSettings(), partitions=partitions)
        found = detection.process(frame, detection.new_state())[0]
        outliers = found.filter(kind="outlier")
        assert (outliers.height > 0) == told
        assert set(outliers["metric"]) <= {"_peers.cpu"}


@pytest.mark.parametrize(("shards", "steps_a_batch"), [(1, 131), (4, 1)])
def test_the_machines_of_each_partition_are_counted_whatever_the_batches_and_shards(
    shards: int, steps_a_batch: int
) -> None:
    settings = load(**{"detector.emit": "novel", "window.allowed_lateness": "50s"})
    driven, offsets, steps = Driven(detector(settings), shards), count(), log(corrections=False)
    for start in range(0, len(steps), steps_a_batch):
        some = [entry for step in steps[start : start + steps_a_batch] for entry in step]
        rows = [(value, topic, p, next(offsets), arrived) for topic, p, value, arrived in some]
        driven.kafka([pa.Table.from_pylist([dict(zip(KAFKA.names, r, strict=True)) for r in rows], schema=KAFKA)])
    news = [one for written in driven.written for one in written.side.get("news", [])]
    found = {(one["entity"], one["window_end"]): one["actual"] for one in news if one["metric"] == "_living"}
    times = sorted({end for _, end in found})
    assert times
    assert all(end % 600_000 == 0 and at(0) < end <= at(STEPS) for end in times)
    of_partition = [sum(crc32(host.encode()) % PARTITIONS == p for host in HOSTS) for p in range(PARTITIONS)]
    wanted = {(f"_partition-{p}", end): n for p, n in enumerate(of_partition) if n for end in times}
    assert found == wanted


def of_roles(metric: str, labels: str, n: int = 200) -> pl.DataFrame:
    """Eight machines of unlike names with one metric, one of which is three times the others from a time on."""
    rng, names = np.random.default_rng(0), ["mail", "zeus", "hera", "ares", "pan", "nyx", "eos", "gaia"]
    start = np.repeat(np.arange(n) * 60_000, 8)
    value = rng.normal(100, 5, 8 * n)
    value[8 * 150 :: 8] *= 3
    rows = {"entity": names * n, "metric": [f"{metric}{labels}"] * 8 * n}
    return pl.DataFrame(rows | {"window_start": start, "window_end": start + 60_000, "value": value})


@pytest.mark.parametrize(
    ("labels", "by", "told"),
    [
        ("{env=live,role=db}", None, True),
        ("{service.name=cart}", None, True),
        ("{env=live,role=db}", "", False),
        ("{tier=db}", None, False),
        ("{tier=db}", "tier", True),
        ("", None, False),
        ("{role=*}", None, False),
    ],
)
def test_a_label_of_metrics_makes_machines_of_any_names_peers(labels: str, by: str | None, told: bool) -> None:
    settings = DetectorSettings() if by is None else DetectorSettings(peers_by=by)
    detection = Detection(settings, partitions=1)
    found = detection.process(of_roles("cpu", labels), detection.new_state())[0].filter(kind="outlier")
    assert found["entity"].to_list() == (["mail"] if told else [])


@pytest.mark.parametrize("batch", [1800, 37, 1])
def test_an_outlier_whose_peers_have_gone_for_good_ends_after_a_day(batch: int) -> None:
    frame = of_roles("cpu", "{role=db}", 1800).with_columns(kind=pl.lit("gauge"))
    frame = frame.filter((pl.col("window_end") <= 170 * 60_000) | pl.col("entity").is_in(["mail", "zeus"]))
    detection = Detection(DetectorSettings(), partitions=1)
    state, said = detection.new_state(), []
    for start in range(0, 1800, batch):
        inside = pl.col("window_end").is_between(start * 60_000 + 1, (start + batch) * 60_000)
        said.append(detection.process(frame.filter(inside), state)[0])
    told = explained(pl.concat(said)).filter(pl.col("metric").str.starts_with("_peers.")).to_dicts()
    assert [(each["entity"], each["kind"], each["incident_state"]) for each in told] == [
        ("mail", "outlier", "open"),
        ("mail", "normal", "closed"),
    ]
    begins, over = told
    assert over["since"] == begins["since"]
    assert over["window_end"] == 170 * 60_000 + 86_400_000, "a day after it was last compared"
    assert {each["key"]: each["value"] for each in over["context"] if each["key"] == "peers"} == {"peers": 0.0}
    assert over["message"].startswith("mail: cpu{role=db} has had too few peers to be compared with for a day.")


def test_an_outlier_about_the_sixth_hour_is_told_alike_whatever_the_micro_batches() -> None:
    """From the sixth hour on the usual time between two values counts, and it counts in the order of windows."""
    frame = of_roles("cpu", "{role=db}", 500).with_columns(kind=pl.lit("gauge"))
    odd = (pl.col("entity") == "mail") & (pl.col("window_end") > 150 * 60_000)
    frame = frame.with_columns(value=pl.when(odd).then(pl.col("value") / 3).otherwise("value"))
    for first in (355, 359):
        unlike = (pl.col("entity") == "mail") & (pl.col("window_end") > first * 60_000)
        given = frame.with_columns(value=pl.when(unlike).then(pl.col("value") * 1.6).otherwise("value"))
        told = []
        for batch in (500, 50, 1):
            detection = Detection(DetectorSettings(), partitions=1)
            state, said = detection.new_state(), []
            for start in range(0, 500, batch):
                inside = pl.col("window_end").is_between(start * 60_000 + 1, (start + batch) * 60_000)
                said.append(detection.process(given.filter(inside), state)[0])
            told.append(explained(pl.concat(said)).filter(pl.col("metric").str.starts_with("_peers.")).to_dicts())
        assert told[0], "nothing is told, so this shows nothing"
        assert told[0] == told[1] == told[2]


def test_another_setting_of_labels_forgets_what_was_learned_beside_other_peers() -> None:
    frame = of_roles("cpu", "{role=db}")
    early, late = frame.filter(pl.col("window_end") <= 140 * 60_000), frame.filter(pl.col("window_end") > 140 * 60_000)

    def counts(settings: DetectorSettings, tables: dict[str, pa.Table] | None, rows: pl.DataFrame) -> tuple[Any, Any]:
        detection = Detection(settings, partitions=1)
        state = detection.from_tables(tables) if tables else detection.new_state()
        detection.process(rows, state)
        return state.to_tables(), state.series.columns["fleet.count"][:8].tolist()

    tables, before = counts(DetectorSettings(), None, early)
    assert before == [140] * 8
    assert counts(DetectorSettings(), tables, late)[1] == [pytest.approx(200, abs=60)] * 8
    other, none = counts(DetectorSettings(peers_by=""), tables, late)
    assert none == [0] * 8
    assert counts(DetectorSettings(), other, late)[1][1:] == [60] * 7


def changed(before: str, after: str) -> pl.DataFrame:
    """What is said beside peers after `peers_by` was changed while a machine was an outlier."""
    frame = of_roles("cpu", "{role=db,tier=db}").with_columns(kind=pl.lit("gauge"))
    early, late = frame.filter(pl.col("window_end") <= 180 * 60_000), frame.filter(pl.col("window_end") > 180 * 60_000)
    detection = Detection(DetectorSettings(peers_by=before), partitions=1)
    state = detection.new_state()
    assert detection.process(early, state)[0].filter(kind="outlier")["entity"].to_list() == ["mail"]
    detection = Detection(DetectorSettings(peers_by=after), partitions=1)
    found = detection.process(late, detection.from_tables(state.to_tables()))[0]
    return found.filter(pl.col("metric").str.starts_with("_peers."))


@pytest.mark.parametrize("after", ["", "tier"], ids=["no peers", "others"])
def test_an_outlier_beside_its_former_peers_ends_when_the_setting_is_changed(after: str) -> None:
    (over,) = explained(changed("role", after)).to_dicts()
    assert (over["entity"], over["metric"], over["kind"]) == ("mail", "_peers.cpu{role=db,tier=db}", "normal")
    assert (over["incident_state"], over["window_end"], over["record_score"]) == ("closed", 181 * 60_000, 0.0)
    assert 145 * 60_000 <= over["since"] <= 155 * 60_000
    assert over["message"].startswith(
        "mail: cpu{role=db,tier=db} has other peers, or none, since settings were changed"
    )


def test_no_other_setting_is_taken_for_the_same() -> None:
    """These two have the same number of eight bits, by which versions before told settings apart."""
    assert crc32(b"role") % 256 == crc32(b"a360") % 256
    assert changed("role", "a360")["incident_state"].to_list() == ["closed"]


def test_a_setting_that_finds_the_same_peers_ends_nothing() -> None:
    assert changed("role", "absent,role").is_empty()
