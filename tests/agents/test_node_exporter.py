"""Prometheus' node exporter, running here: the names, kinds, units and rates of a scrape, against the kernel."""

from __future__ import annotations

import os
import time
from urllib.error import URLError
from urllib.request import urlopen

import promql_parser
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.agents.agents import free_port, installed, memory, read, running, switches, taken, until
from tests.deploy.prometheus import RULES, relabelled
from tests.pipelines.formats.decoding import samples as read_samples
from tests.pipelines.formats.remote_writes import request, series

SWITCHES = "node_context_switches_total"


@pytest.fixture(scope="module")
def scrapes(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bytes], list[int]]:
    """Two scrapes, and the kernel's context switches before and after each of them."""
    program = installed("prometheus-node-exporter", "prometheus-node-exporter")
    log, url = tmp_path_factory.mktemp("exporter") / "log", f"127.0.0.1:{free_port()}"

    def scrape() -> bytes:
        try:
            with urlopen(f"http://{url}/metrics", timeout=20) as answer:
                return bytes(answer.read())
        except (URLError, ConnectionError):
            return b""

    with running([program, f"--web.listen-address={url}"], log):
        until(lambda: b"node_load1" in scrape(), log)
        found, marks = [], []
        for pause in (1, 0):
            marks.append(switches())
            found.append(scrape())
            marks.append(switches())
            time.sleep(pause)
    return found, marks


def test_a_scrape_is_one_message_whose_machine_the_exporter_names(scrapes: tuple[list[bytes], list[int]]) -> None:
    samples = taken(read(scrapes[0][0]), "prometheus")
    assert {sample["entity"] for sample in samples} == {os.uname().nodename}
    lines = [line for line in scrapes[0][0].decode().splitlines() if line and not line.startswith("#")]
    assert len(samples) == sum(not line.endswith("NaN") for line in lines)


def test_counters_and_their_rates_are_those_of_the_kernel(scrapes: tuple[list[bytes], list[int]]) -> None:
    (first, second), (before_1, after_1, before_2, after_2) = scrapes
    values = []
    for scrape in (first, second):
        (sample,) = [each for each in taken(read(scrape), "prometheus") if each["metric"] == SWITCHES]
        assert sample["kind"] == "counter"
        values.append(sample["value"])
    assert before_1 <= values[0] <= after_1
    assert before_2 - after_1 <= values[1] - values[0] <= after_2 - before_1


def test_kinds_are_those_that_the_exporter_tells(scrapes: tuple[list[bytes], list[int]]) -> None:
    told = {
        line.split()[2]: line.split()[3] for line in scrapes[0][0].decode().splitlines() if line.startswith("# TYPE")
    }
    kinds = {sample["metric"].partition("{")[0]: sample["kind"] for sample in taken(read(scrapes[0][0]), "prometheus")}
    compared = {name: kind for name, kind in kinds.items() if told.get(name) in ("counter", "gauge")}
    assert len(compared) > 100
    assert compared == {name: told[name] for name in compared}


def test_memory_is_in_bytes(scrapes: tuple[list[bytes], list[int]]) -> None:
    samples = {sample["metric"]: sample["value"] for sample in taken(read(scrapes[0][0]), "prometheus")}
    assert samples["node_memory_MemTotal_bytes"] == memory()


NOW = 1_795_806_000_000
MOST = 40
"""How many series of a node are sent at the most, with those that are recorded, and one file system."""


def scraped(scrape: bytes) -> list[dict[str, str]]:
    """The labels of each series of a scrape, as Prometheus has them: with the address that it scraped."""
    families = text_string_to_metric_families(scrape.decode())
    target = {"instance": "web-1:9100", "job": "node"}
    return [{"__name__": each.name, **each.labels, **target} for family in families for each in family.samples]


def test_the_keep_list_leaves_few_series_of_the_exporter_and_each_is_read(
    scrapes: tuple[list[bytes], list[int]],
) -> None:
    all_series = scraped(scrapes[0][0])
    kept = relabelled(all_series)
    recorded = [rule for rule in RULES if "node_" in rule["expr"] and rule["record"].startswith("instance:")]
    assert len(all_series) > 300
    assert len(kept) >= 8 and len(kept) + len(recorded) <= MOST
    found = read_samples("remote-write", request(*(series(each, (1.0, NOW)) for each in kept)))
    assert len(found) == len(kept)
    assert {machine for _, machine, *_ in found} == {"web-1"}


def test_the_rules_for_nodes_ask_for_what_the_exporter_has(scrapes: tuple[list[bytes], list[int]]) -> None:
    """But for what this machine lacks: disks, sensors of temperature."""
    there = {each["__name__"]: each for each in scraped(scrapes[0][0])}
    asked: dict[str, set[str]] = {}

    def visit(node: object) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            asked.setdefault(node.name, set()).update(matcher.name for matcher in node.matchers.matchers)

    for rule in RULES:
        if rule["record"].startswith("instance:") and "node_" in rule["expr"]:
            promql_parser.walk(promql_parser.parse(rule["expr"]), visit)
    needed = {name for name in asked if not name.startswith(("node_disk_", "node_hwmon_"))}
    assert len(needed) >= 10
    assert needed <= there.keys()
    assert all(asked[name] <= there[name].keys() for name in needed)
