"""How recorded faults are read, and how what incidents say of their causes is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Incident
from pipelines.contracts.records.incident import AffectedMachine, Candidate
from pipelines.contracts.settings import load
from tests.benchmarks import causes
from tests.benchmarks.measures.causes import Answer, answers, calibration, hits
from tests.benchmarks.measures.faults import Fault, recordings

AT = 1_660_000_200_000
STEP = 300_000


def told(shares: dict[str, float], unknown: float) -> Incident:
    named = [Candidate(entity=name, metric="m", since=AT, share=share, reason="r") for name, share in shares.items()]
    machines = [AffectedMachine(entity=name, since=AT, series=1, record_score=60) for name in shares]
    return Incident(
        id="i", opened=AT, site="default", status="open", severity="major", severity_score=60, record_score=60,
        start=AT, updated=AT, message="m", machine_count=len(machines), series_count=1, open_series=1,
        machines=machines, candidates=named, unknown_share=unknown,
    )  # fmt: skip


def fault(cause: str) -> Fault:
    return Fault("f", cause, AT, AT)


def test_a_fault_without_an_incident_is_a_miss_and_quiet_times_do_not_count() -> None:
    simple = {"simple": ["b", "a"]}
    found = [
        Answer(fault("a"), told({"a": 0.6, "b": 0.2}, 0.2), simple),
        Answer(fault("a"), None, simple),
        Answer(None, told({"a": 0.2}, 0.8), {}),
    ]
    assert hits(found, (1, 2)) == {"incidents": [0.5, 0.5], "simple": [0.0, 1.0]}
    assert [each.none_first for each in found] == [False, False, True]


def test_shares_are_right_if_the_cause_is_named_and_none_is_right_if_the_cause_is_no_machine_of_the_incident() -> None:
    found = [
        Answer(fault("a"), told({"a": 0.6, "b": 0.2}, 0.2), {}),
        Answer(fault("c"), told({"a": 0.6}, 0.4), {}),
        Answer(None, told({"a": 0.4}, 0.6), {}),
    ]
    assert [(n, round(said, 3), round(right, 3)) for _, n, said, right in calibration(found)] == [
        (2, 0.2, 0.0),
        (2, 0.4, 0.5),
        (3, 0.6, 0.667),
    ]


def petshop(folder: Path, rows: int) -> None:
    """A web server that calls a database, both steady; then the database is slow, and so is the web server."""
    header = ["microservice,web,db", "metric,latency,latency", "statistic,Average,Average"]
    steady = [f"{AT // 1000 + n * STEP // 1000},{100 + n % 3},{10 + n % 2}" for n in range(rows)]
    slow = [f"{AT // 1000 + n * STEP // 1000},{900 if n > 1 else 100},{800 if n > 1 else 10}" for n in range(5)]
    (folder / "noissue").mkdir(parents=True)
    (folder / "test" / "issue_0").mkdir(parents=True)
    (folder / "graph.csv").write_text("microservice,web,db\nweb,0.0,1.0\ndb,0.0,0.0\n")
    (folder / "noissue" / "metrics.csv").write_text("\n".join([*header, *steady]) + "\n")
    (folder / "test" / "issue_0" / "metrics.csv").write_text("\n".join([*header, *slow]) + "\n")
    target = {"target": {"node": "web", "timestamp": AT // 1000 + 500}, "root_cause": {"node": "db", "metric": None}}
    (folder / "test" / "issue_0" / "target.json").write_text(json.dumps(target))


def test_a_fault_of_petshop_goes_on_where_the_normal_operation_ended_and_its_cause_is_named(tmp_path: Path) -> None:
    petshop(tmp_path / "petshop" / "low", 200)
    (recording,) = recordings(tmp_path)
    (only,) = recording.faults
    assert recording.places["web"].above == ("db",) and recording.quiet
    assert only.values is not None and only.values["time"].min() == AT + 200 * STEP
    assert (only.cause, only.at) == ("db", AT + 200 * STEP + 500_000)
    found = [each for each in answers(recording, load()) if each.fault]
    assert found[0].named[0] == "db" and found[0].rankings["deepest, then strongest"][0] == "db"


def test_a_day_of_nezha_has_hosts_and_calls_and_values_of_services_by_the_minute(tmp_path: Path) -> None:
    folder = tmp_path / "nezha" / "2022-08-22"
    (folder / "metric").mkdir(parents=True)
    pods = {"web-579b9bff58-t2dbm": 1.0, "cart-service-579f59597d-wc2lz": 2.0}
    for pod, value in pods.items():
        rows = [f"2022-08-22 03:5{n}:19.6 +0000 UTC m=+0.1,1,{pod},{value},NaN" for n in range(3)]
        (folder / "metric" / f"{pod}_metric.csv").write_text("\n".join(["Time,TimeStamp,PodName,Cpu,Net", *rows]))
    calls = "Source,Target,Weight\nweb,cart-service,1\nweb,33.33.33.1,1\nload,33.33.33.1,1\n"
    (folder / "metric" / "dependency.csv").write_text(calls)
    injected = {"inject_time": "2022-08-22 03:51:30", "inject_pod": "cart-service-579f59597d-wc2lz", "inject_type": "x"}
    (folder / "2022-08-22-fault_list.json").write_text(json.dumps({"03": [injected]}))
    (recording,) = recordings(tmp_path)
    assert recording.places["web"].above == ("33.33.33.1", "cart-service")
    assert recording.history.sort("entity", "time")["value"].to_list() == [2.0, 2.0, 2.0, 1.0, 1.0, 1.0]
    assert recording.faults[0].cause == "cart-service"
    assert recording.faults[0].at - recording.history["time"].min() == 90_000  # type: ignore[operator]


def test_without_recorded_faults_the_bench_says_what_is_absent(tmp_path: Path) -> None:
    with pytest.raises(NewnormalError) as caught:
        causes.run(tmp_path, tmp_path / "out")
    assert caught.value.code == "FILE_UNUSABLE"
