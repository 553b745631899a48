"""Documents of Metricbeat and Elastic Agent, against expectations worked out by hand from the field definitions."""

from __future__ import annotations

import json
from typing import Any

from pipelines.contracts.settings import load
from pipelines.formats.catalogue import BY_NAME, guess
from pipelines.formats.rules import Rules
from tests.pipelines.formats.decoding import decoded, decoder, refusals, rows, samples
from tests.pipelines.formats.examples_times import T0

ABOUT: dict[str, Any] = {
    "@timestamp": "2026-11-21T00:27:00.013Z",
    "@metadata": {"beat": "metricbeat", "type": "_doc", "version": "8.19.0"},
    "agent": {"name": "a", "type": "metricbeat", "version": "8.19.0", "ephemeral_id": "x"},
    "ecs": {"version": "8.0.0"},
    "event": {"dataset": "system.cpu", "module": "system", "duration": 115000},
    "metricset": {"name": "cpu", "period": 10000},
    "service": {"type": "system"},
    "host": {"name": "a", "ip": ["10.0.0.1"], "os": {"kernel": "6.1"}, "containerized": False},
    "data_stream": {"type": "metrics", "dataset": "system.cpu", "namespace": "default"},
    "cloud": {"availability_zone": "b", "machine": {"type": "c"}},
}


def message(**module: Any) -> bytes:
    return json.dumps(ABOUT | module).encode()


def read(**module: Any) -> list[tuple[str, float, str]]:
    """(metric, value, kind) of the samples of a document of the machine a."""
    found = samples("metricbeat", message(**module))
    assert {(time, machine) for time, machine, *_ in found} == {(T0, "a")}
    return [(metric, value, kind) for _, _, metric, value, kind in found]


def test_numbers_of_the_module_are_samples_and_what_is_about_the_agent_is_none() -> None:
    cpu = {"cores": 2, "user": {"pct": 0.1, "norm": {"pct": 0.05}, "ticks": 77}}
    assert read(system={"cpu": cpu}) == [
        ("system.cpu.cores", 2.0, "gauge"),
        ("system.cpu.user.pct", 0.1, "gauge"),
        ("system.cpu.user.norm.pct", 0.05, "gauge"),
        ("system.cpu.user.ticks", 77.0, "counter"),
    ]


def test_the_counters_of_the_field_definitions_are_counters() -> None:
    disk = {"name": "sda", "serial_number": "X1", "read": {"bytes": 1, "count": 2, "time": 3}, "io": {"time": 4}}
    disk |= {"iostat": {"busy": 0.5}}
    instance = "{system.diskio.name=sda}"
    assert read(system={"diskio": disk}) == [
        (f"system.diskio.read.bytes{instance}", 1.0, "counter"),
        (f"system.diskio.read.count{instance}", 2.0, "counter"),
        (f"system.diskio.read.time{instance}", 3.0, "counter"),
        (f"system.diskio.io.time{instance}", 4.0, "counter"),
        (f"system.diskio.iostat.busy{instance}", 0.5, "gauge"),
    ]


def test_ids_and_names_tell_instances_apart_and_are_no_samples() -> None:
    assert read(system={"core": {"id": 1, "user": {"pct": 0.2}}}) == [
        ("system.core.user.pct{system.core.id=1}", 0.2, "gauge")
    ]
    process = {"name": "nginx", "pid": 7, "ppid": 1, "executable": "/x", "cpu": {"pct": 0.3}}
    found = read(process=process, system={"process": {"state": "sleeping", "cpu": {"total": {"value": 9}}}})
    assert found == [
        ("process.cpu.pct{process.name=nginx,process.pid=7}", 0.3, "gauge"),
        ("system.process.cpu.total.value{process.name=nginx,process.pid=7}", 9.0, "counter"),
    ]


def test_what_the_host_did_since_the_document_before_is_a_count() -> None:
    host = ABOUT["host"] | {"network": {"ingress": {"bytes": 5}}, "cpu": {"usage": 0.1}}
    assert read(host=host) == [("host.network.ingress.bytes", 5.0, "count"), ("host.cpu.usage", 0.1, "gauge")]


def test_types_of_prometheus_are_counters_counts_and_quantiles() -> None:
    histogram = {"histogram": {"values": [1.0, 4.0], "counts": [3, 1]}}
    given = {"labels": {"job": "x"}, "n_total": {"counter": 5, "rate": 2}, "took": histogram}
    assert read(prometheus=given) == [
        ("prometheus.n_total.counter{prometheus.labels.job=x}", 5.0, "counter"),
        ("prometheus.n_total.rate{prometheus.labels.job=x}", 2.0, "count"),
        ("prometheus.took.histogram.count{prometheus.labels.job=x}", 4.0, "count"),
        ("prometheus.took.histogram.sum{prometheus.labels.job=x}", 7.0, "count"),
        ("prometheus.took.histogram.min{prometheus.labels.job=x}", 1.0, "gauge"),
        ("prometheus.took.histogram.max{prometheus.labels.job=x}", 4.0, "gauge"),
        *(
            (f"prometheus.took.histogram{{prometheus.labels.job=x,quantile={share}}}", value, "gauge")
            for share, value in (("0.5", 1.0), ("0.95", 4.0), ("0.99", 4.0))
        ),
    ]


def test_text_that_only_describes_is_left_out_and_other_text_is_a_dead_letter_beside_the_numbers() -> None:
    found = decoded(BY_NAME["metricbeat"].build(Rules()), message(mysql={"status": {"state": "up", "threads": 3}}))
    assert [row["metric"] for row in found.records.to_pylist()] == ["mysql.status.threads"]
    ((_, code, why),) = found.refused
    assert code == "TEXT_FIELD"
    assert "mysql.status.state" in why
    quiet = Rules.of(load(**{"input.text_left_out": "mysql.*.state"}).input)
    found = decoded(BY_NAME["metricbeat"].build(quiet), message(mysql={"status": {"state": "up", "threads": 3}}))
    assert found.refused == []


def test_the_settings_name_counters_that_the_definitions_do_not() -> None:
    rules = Rules.of(load(**{"input.counters": "mysql.*.questions"}).input)
    found = decoded(BY_NAME["metricbeat"].build(rules), message(mysql={"status": {"questions": 3, "threads": 2}}))
    assert [row["kind"] for row in found.records.to_pylist()] == ["counter", "gauge"]


def test_a_document_without_a_number_says_what_the_agent_reports() -> None:
    found = decoded(BY_NAME["metricbeat"].build(Rules()), message(error={"message": "connection refused"}))
    ((_, code, why),) = found.refused
    assert code == "MESSAGE_EMPTY"
    assert "connection refused" in why


def test_a_document_without_a_machine_or_a_time_is_a_dead_letter() -> None:
    module = {"system": {"load": {"1": 0.5}}}
    nobody = {key: value for key, value in ABOUT.items() if key not in ("agent", "host")} | module
    timeless = {key: value for key, value in ABOUT.items() if key != "@timestamp"} | module
    assert refusals("metricbeat", json.dumps(nobody).encode(), json.dumps(timeless).encode()) == [
        *((0, "MACHINE_UNKNOWN"), (1, "FIELD_INVALID")),
    ]
    assert samples("metricbeat", json.dumps({**nobody, "agent": {"name": "b"}}).encode())[0][1] == "b"


def test_a_line_of_filebeat_is_no_metricset() -> None:
    form = guess(b'{"@timestamp":"2026-11-21T00:27:00Z","host":{"name":"a"},"message":"no"}')
    assert form is not None
    assert form.name == "shipped-logs"


def test_a_part_of_a_document_holds_the_refused_numbers_with_their_instance_and_no_other_text() -> None:
    network = {"name": "eth0", "in": {"bytes": 5, "packets": 1}, "out.bytes": 7, "state": "up"}
    value = message(system={"network": network, "core": {"id": 1, "user": {"pct": 0.2}}})
    whole = decoded(decoder("metricbeat"), value)
    assert [code for _, code, _ in whole.refused] == ["TEXT_FIELD"]
    again = decoded(decoder("metricbeat"), decoder("metricbeat").only(value, [0, 3]))
    assert rows(again) == [rows(whole)[0], rows(whole)[3]]
    assert again.refused == []


def test_a_histogram_is_sent_whole_or_not_at_all() -> None:
    value = message(prometheus={"up": {"value": 1}, "took": {"histogram": {"values": [1.5, 3], "counts": [2, 1]}}})
    whole = samples("metricbeat", value)
    every = range(1, len(whole))
    assert decoder("metricbeat").only(value, [1]) is None
    assert samples("metricbeat", decoder("metricbeat").only(value, every)) == whole[1:]
    assert samples("metricbeat", decoder("metricbeat").only(value, [0])) == whole[:1]
