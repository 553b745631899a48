"""The files for Prometheus: rules that mean something, and a keep-list with all that they record."""

from __future__ import annotations

import re
from typing import Any

import promql_parser
import pytest
import yaml

from engine.spec.decoder import Messages
from pipelines.formats.placements.decoder import PlacementsDecoder
from tests.deploy.prometheus import FOLDER, RULES, Labels, relabelled
from tests.pipelines.formats.decoding import samples
from tests.pipelines.formats.remote_writes import request, series

NOW = 1_795_806_000_000
_LEVELS = re.compile(r"(instance|kube|pod):[a-z0-9_]+:(ratio|rate|count|mean|p95|max|bytes)")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["record"])
def test_each_rule_parses_and_its_series_have_a_machine(rule: dict[str, Any]) -> None:
    """Every aggregation keeps the label instance, or pod and namespace: a series without them would be refused."""
    assert _LEVELS.fullmatch(rule["record"]) and rule.keys() == {"record", "expr"}
    modifiers = []

    def visit(node: Any) -> None:
        if isinstance(node, promql_parser.AggregateExpr):
            modifiers.append(node.modifier)

    promql_parser.walk(promql_parser.parse(rule["expr"]), visit)
    assert modifiers
    for modifier in modifiers:
        wanted = {"namespace", "pod"} if rule["record"].startswith("pod:") else {"instance"}
        assert modifier.type == promql_parser.AggModifierType.By and wanted <= set(modifier.labels)


def test_no_two_rules_record_the_same() -> None:
    names = [rule["record"] for rule in RULES]
    assert len(set(names)) == len(names) > 20


def recorded(rule: dict[str, Any], instance: str) -> Labels:
    if rule["record"].startswith("pod:"):
        return {"__name__": rule["record"], "namespace": "shop", "pod": instance.partition(":")[0]}
    labels = {"__name__": rule["record"], "instance": instance}
    if "mountpoint" in rule["expr"]:
        labels["mountpoint"] = "/var"
    return labels | ({"job": "shop"} if "job" in rule["expr"] else {})


def test_what_is_recorded_is_kept_and_becomes_a_gauge_of_its_machine() -> None:
    given = [recorded(rule, f"m{n}:9100") for n, rule in enumerate(RULES)]
    kept = relabelled(given)
    assert kept == given
    found = samples("remote-write", request(*(series(each, (0.5, NOW)) for each in kept)))
    assert [(machine, metric.partition("{")[0], kind) for _, machine, metric, _, kind in found] == [
        (f"shop/m{n}" if rule["record"].startswith("pod:") else f"m{n}", rule["record"], "gauge")
        for n, rule in enumerate(RULES)
    ]


def test_what_has_no_machine_or_is_not_on_the_list_is_not_sent() -> None:
    assert relabelled([{"__name__": "instance:cpu_used:ratio"}]) == []
    assert relabelled([{"__name__": "node_cpu_seconds_total", "instance": "a", "cpu": "7", "mode": "idle"}]) == []
    assert relabelled([{"__name__": "my_node_load1", "instance": "a"}]) == []


def test_that_a_node_is_cordoned_is_said_of_this_node_and_so_is_no_news_of_who_says_so() -> None:
    given = {"__name__": "kube_node_spec_unschedulable", "instance": "10.1.0.9:8080", "node": "node-1"}
    (kept,) = relabelled([given])
    value = request(series(kept, (1.0, NOW)))
    assert [(machine, metric) for _, machine, metric, _, _ in samples("remote-write", value)] == [
        ("node-1", "kube_node_spec_unschedulable")
    ]
    (said,) = PlacementsDecoder().decode(Messages.of([value], NOW)).records.to_pylist()
    assert (said["entity"], said["condition"]) == ("node-1", "cordoned")


def test_a_label_that_each_start_changes_is_dropped() -> None:
    given = {"__name__": "kube:node_pods:count", "instance": "a", "uid": "1b9d6bcd", "node": "a"}
    assert relabelled([given]) == [{"__name__": "kube:node_pods:count", "instance": "a", "node": "a"}]


def test_every_file_is_yaml_that_the_page_names() -> None:
    page = (FOLDER.parents[1] / "docs" / "prometheus.md").read_text(encoding="utf-8")
    for path in sorted(FOLDER.glob("*.yaml")):
        assert yaml.safe_load(path.read_text(encoding="utf-8"))
        assert path.name in page
