"""Series stay apart, counters are known in all formats, and one wrong series refuses itself alone."""

from __future__ import annotations

import json

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pipelines.contracts.settings.input import InputSettings
from pipelines.formats.catalogue import guess
from pipelines.formats.rules import Rules
from tests.pipelines.formats.decoding import decoded, rows


def read(value: bytes, **settings: str) -> tuple[dict[tuple[str, str], float], list[tuple[str, str]]]:
    """The value of each machine and metric of a message that is recognised; and codes and reasons."""
    rules = Rules.of(InputSettings.model_validate(settings))
    form = guess(value, rules=rules)
    assert form is not None
    found = decoded(form.build(rules), value)
    assert len({(row["entity"], row["metric"]) for row in rows(found)}) == len(rows(found)), "no series is there twice"
    told = [(code, why) for _, code, why in found.refused]
    return {(row["entity"], row["metric"]): row["value"] for row in rows(found)}, told


def kinds(value: bytes, **settings: str) -> list[str]:
    rules = Rules.of(InputSettings.model_validate(settings))
    form = guess(value, rules=rules)
    assert form is not None
    return [row["kind"] for row in rows(decoded(form.build(rules), value))]


@pytest.mark.parametrize(
    "value",
    [
        b'b{instance="x:1",region="n"} 10\nb{instance="x:1",region="u"} 90\nc{instance="x:1",region="n"} 1',
        b"b,host=x,rack=n v=10 1795220820\nb,host=x,rack=u v=90 1795220820\nc,host=x,rack=n v=1 1795220820",
        b"b;host=x;dc=n 10 1795220820\nb;host=x;dc=u 90 1795220820\nc;host=x;dc=n 1 1795220820",
    ],
)
def test_a_descriptive_label_stays_where_it_alone_distinguishes_series_and_this_is_told(value: bytes) -> None:
    found, told = read(value)
    assert sorted(found.values()) == [1.0, 10.0, 90.0]
    assert [("=n" in metric or "=u" in metric) for _, metric in found] == [True, True, False]
    ((code, why),) = told
    assert code == "LABEL_KEPT"
    assert "input.left_out" in why


@pytest.mark.parametrize(
    "form",
    [
        '# TYPE u gauge\nu{{instance="a:1",x="{}1"}} 1\nu{{instance="a:1",x="{}2"}} 3\nw{{instance="a:1",x="{}1"}} 7',
        "u,host=a,x={}1 v=1 1795220820\nu,host=a,x={}2 v=3 1795220820\nw,host=a,x={}1 v=7 1795220820",
    ],
)
def test_series_that_only_uuids_tell_apart_stay_apart_unless_their_label_is_to_be_folded(form: str) -> None:
    uuid = "0b6c1f2e-0f5a-4b7e-9d3c-1c2d3e4f5a6"
    value = form.format(uuid, uuid, uuid).encode()
    found, told = read(value)
    assert sorted(found.values()) == [1.0, 3.0, 7.0]
    assert [uuid in metric for _, metric in found] == [True, True, False]
    ((code, why),) = told
    assert code == "LABEL_KEPT"
    assert "UUID" in why
    found, told = read(value, folded="x")
    assert (sorted(found.values()), told) == ([2.0, 7.0], [])


def test_a_label_is_kept_only_where_it_distinguishes_and_folding_goes_on_beside_it() -> None:
    scrape = b"""# TYPE b gauge
b{instance="x:1",region="n"} 10
b{instance="x:1",region="u"} 90
c{instance="x:1",region="n",container_id="1"} 1
c{instance="x:1",region="n",container_id="2"} 3
d{instance="x:1",region="n"} 1
d{instance="x:1",region="n"} 2
"""
    rules = Rules()
    form = guess(scrape, rules=rules)
    assert form is not None
    found = decoded(form.build(rules), scrape)
    assert [(row["metric"], row["value"]) for row in rows(found)] == [
        *(("b{port=1,region=n}", 10), ("b{port=1,region=u}", 90)),
        *(("c{container_id=*,port=1}", 2), ("d{port=1}", 1), ("d{port=1}", 2)),
    ]
    assert [code for _, code, _ in found.refused] == ["LABEL_KEPT", "SAMPLE_TWICE"]


@pytest.mark.parametrize(
    ("label", "one", "other"), [("dc", "n", "u"), ("x", *(f"{at}b6c1f2e-0f5a-4b7e-9d3c-1c2d3e4f5a6b" for at in (0, 1)))]
)
def test_what_a_label_tells_apart_is_not_folded_to_one_where_each_side_has_several_samples(
    label: str, one: str, other: str
) -> None:
    samples = enumerate([(one, "c1"), (one, "c2"), (other, "c1"), (other, "c2")], start=1)
    lines = [f'c{{instance="x",{label}="{it}",container_id="{container}"}} {at}' for at, (it, container) in samples]
    found, told = read("\n".join(["# TYPE c counter", *lines]).encode())
    assert found == {("x", f"c{{container_id=*,{label}={it}}}"): value for it, value in ((one, 3.0), (other, 7.0))}
    assert [code for code, _ in told] == ["LABEL_KEPT"]


def test_two_values_of_one_series_at_one_time_are_told_and_the_same_value_twice_is_not() -> None:
    rules, twice = Rules(), b"b,host=x v=10 1795220820\nb,host=x v=90 1795220820"
    form = guess(twice)
    assert form is not None
    found = decoded(form.build(rules), twice, b"b,host=x v=1 1795220820\nb,host=x v=1 1795220820")
    assert [row["value"] for row in rows(found)] == [10.0, 90.0, 1.0, 1.0]
    ((row, code, why),) = found.refused
    assert (row, code) == (0, "SAMPLE_TWICE")
    assert "b.v of x" in why


def test_lasting_uuids_are_not_folded() -> None:
    ids = ("0b6c1f2e-0f5a-4b7e-9d3c-1c2d3e4f5a6b", "1b6c1f2e-0f5a-4b7e-9d3c-1c2d3e4f5a6b")
    text = "\n".join(f'node_btrfs_size{{instance="a",uuid="{uuid}"}} {at}' for at, uuid in enumerate(ids))
    found, told = read(text.encode())
    assert len(found) == 2
    assert told == []


def test_numbers_of_memory_nodes_and_hosts_of_an_ingress_are_no_machines() -> None:
    numa = b'm{node="0"} 1\nm{node="1"} 2\nnode_uname_info{nodename="web-1",release="6"} 1'
    assert {machine for machine, _ in read(numa)[0]} == {"web-1"}
    scrape = b'm{instance="web-1:9100",node="0"} 1\nr{instance="10.0.0.5:1",host="shop.example.com"} 2'
    assert set(read(scrape)[0]) == {
        ("web-1", "m{node=0,port=9100}"),
        ("10.0.0.5", "r{host=shop.example.com,port=1}"),
    }
    assert set(read(scrape, machine="host,instance")[0]) == {
        ("web-1", "m{node=0,port=9100}"),
        ("shop.example.com", "r{instance=10.0.0.5:1}"),
    }, "an order that the user says holds"


def test_objects_of_windows_performance_counters_are_series_each() -> None:
    def document(name: str) -> bytes:
        perfmon = {"object": name, "instance": "_Total", "metrics": {"%_processor_time": 18.2}}
        about = {"@timestamp": "2026-11-21T00:27:00Z", "metricset": {"name": "perfmon"}, "host": {"name": "w"}}
        return json.dumps(about | {"windows": {"perfmon": perfmon}}).encode()

    one, two = (read(document(name)) for name in ("Process", "Processor Information"))
    assert one[1] == two[1] == []
    assert set(one[0]).isdisjoint(two[0])


@pytest.mark.parametrize(
    "value",
    [
        b"snmp,host=a,ifName=e0 ifHCInOctets=5i", b"docker_container_net,host=a rx_bytes=5i", b"cpu,host=a time_user=5",
        b"redis,host=a keyspace_hits=5i", b"mysql,host=a queries=5i", b"nginx,host=a requests=5i",
        b"net,host=a tcp_insegs=5i", b'# TYPE node_netstat_Tcp_InSegs untyped\nnode_netstat_Tcp_InSegs{host="a"} 5',
        b'{"name":"snmp","tags":{"host":"a"},"fields":{"ifOutOctets":5},"timestamp":1795220820}',
    ],
)  # fmt: skip
def test_the_well_known_counters_are_counters(value: bytes) -> None:
    assert kinds(value) == ["counter"]


@pytest.mark.parametrize(
    "value",
    [
        b"app,host=a hits=5", b'{"name":"app","tags":{"host":"a"},"fields":{"hits":5},"timestamp":1795220820}',
        b"app.hits;host=a 5 1795220820", b'{"name":"hits","namespace":"app","tags":{"host":"a"},"kind":"absolute",'
        b'"gauge":{"value":5}}',
    ],
)  # fmt: skip
def test_a_counter_can_be_declared_in_any_format(value: bytes) -> None:
    assert kinds(value) == ["gauge"]
    assert kinds(value, counters="app.*") == ["counter"]


def test_gauges_beside_well_known_counters_stay_gauges() -> None:
    gauges = ("redis total_system_memory", "kernel boot_time", "mem used", "netstat tcp_established")
    lines = "\n".join(f"{name.replace(' ', ',host=a ')}=5i" for name in gauges)
    assert kinds(lines.encode()) == ["gauge"] * 4


@pytest.mark.parametrize("name", ["node_network_transmit_queue_length", "node_netstat_Tcp_InSegs", "node_intr"])
def test_what_a_format_tells_counts_for_more_than_a_name_that_is_well_known(name: str) -> None:
    scrape = f'# TYPE {name} gauge\n{name}{{host="a"}} 5'.encode()
    point = {"gauge": {"dataPoints": [{"timeUnixNano": "1795220820000000000", "asInt": "5"}]}, "name": name}
    resource = {"attributes": [{"key": "host.name", "value": {"stringValue": "a"}}]}
    otlp = {"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": [point]}]}]}
    for message in (scrape, json.dumps(otlp).encode()):
        assert kinds(message) == ["gauge"]
        assert kinds(message, counters=name) == ["counter"], "but what the user says counts for most"


OPENMETRICS = r"""# TYPE disk_reads counter
disk_reads_total{instance="web-1",n="a"} 5 1.795800000123e+09
disk_reads_total{instance="web-1",n="build # 7"} 1 # {trace="x # y"} 0.5
disk_reads_total{instance="web-1",n="} 9 # {"} 2.0 # {trace="}"} 1.5 1.795800000123e9
# TYPE took histogram
took_bucket{instance="web-1",le="+Inf"} 7.0
took_count{instance="web-1"} 7.0
took_sum{instance="web-1"} 1.5
# EOF
"""


def test_openmetrics_is_read_as_its_reference_parser_reads_it() -> None:
    expected = {}
    for family in text_string_to_metric_families(OPENMETRICS):  # type: ignore[no-untyped-call]
        for sample in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()) if k != "instance")
            expected["web-1", f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    assert read(OPENMETRICS.encode()) == (expected, [])


def test_names_of_prometheus_3_and_a_value_without_a_blank_before_it_are_read() -> None:
    text = b'# TYPE "http.requests" counter\n{"http.requests","http.method"="GET",instance="web-1"} 5\n'
    text += b'up{instance="web-1"}1'
    assert read(text) == ({("web-1", "http.requests{http.method=GET}"): 5.0, ("web-1", "up"): 1.0}, [])
    assert kinds(text) == ["counter", "gauge"]


def test_one_bad_or_too_long_series_refuses_itself_with_its_line_and_name_and_never_the_scrape() -> None:
    long = b'istio_requests_total{host="a",path="' + b"x" * 1100 + b'"} 7'
    found, told = read(b'up{host="a"} 1\nbad{host="a"} one\n' + long + b'\nnobody{job="x",z="p"} 1\nload{host="a"} 2')
    assert found == {("a", "up"): 1.0, ("a", "load"): 2.0}
    ((code, why), (other, name)) = sorted(told, reverse=True)
    assert (code, other) == ("LINE_INVALID", "FIELD_INVALID")
    assert "line 2" in why
    assert "bad" in why
    assert "line 3" in name
    assert "istio_requests_total" in name


def test_istios_standard_labels_fit() -> None:
    labels = ",".join(f'label_number_{at}="{"v" * 20}"' for at in range(25))  # 25 labels, some 900 characters
    found, told = read(f'istio_requests_total{{instance="10.0.0.7:15020",{labels}}} 7'.encode())
    assert told == []
    ((_, metric),) = found
    assert len(metric) > 850


def test_a_sample_without_a_machine_is_told_the_labels_at_hand_and_a_default_holds_for_a_topic() -> None:
    ((code, why),) = read(b'up{job="x",z="p"} 1')[1]
    assert code == "MACHINE_UNKNOWN"
    assert "job, z" in why
    ((_, why),) = read(b"up 1")[1]
    assert "no label" in why
    assert "input.default_machine" in why
    assert read(b"up 1", default_machine="app-1") == ({("app-1", "up"): 1.0}, [])
    assert read(b"cpu usage=1", default_machine="app-1") == ({("app-1", "cpu.usage"): 1.0}, [])


def test_paths_of_graphite_name_their_machine_behind_the_usual_prefixes_or_by_a_tag() -> None:
    lines = b"disk.used;datacenter=d;server=web01 1 1795220820\nservers.web-1.cpu 2 1795220820\nh.ping nan 1795220820"
    assert read(lines) == ({("web01", "disk.used"): 1.0, ("web-1", "cpu"): 2.0}, [])
    ((code, _),) = read(b"stats.timers.api 1 1795220820")[1]
    assert code == "MACHINE_UNKNOWN"
