"""`newnormal plan` as a user runs it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from pipelines.plan.coefficients import SHIPPED
from tests.pipelines.cli.conftest import Run

LINE = ("plan", "--events", "1e6", "--series", "1e6", "--window", "10s", "--retention", "7d")


def test_the_plan_says_what_each_part_needs_what_limits_it_and_what_to_set(run: Run) -> None:
    code, shown, _ = run(*LINE)
    tree = json.loads(run(*LINE, "--json")[1])
    partitions, shards = tree["partitions"], tree["shards"]
    # one shard is one task on one core, of which 60 % are used; the smallest power of two that suffices
    busiest = max(need["cores"] for need in tree["needs"] if need["part"] in ("extractor", "detector"))
    assert shards / 2 < busiest / 0.6 <= shards
    assert code == 0
    for word in (
        "normalizer",
        "extractor",
        "detector",
        "sink",
        "elasticsearch",
        "checkpoints",
        f"{partitions} partitions",
        f"{shards} shards",
    ):
        assert word in shown
    block = shown[shown.index("[kafka]") : shown.index("Coefficients: ")]
    settings = tomllib.loads(block)
    assert settings["kafka"] == {"partitions": partitions, "replication": 1, "retention": "7d"}
    assert settings["engine"]["shards"] == shards


def test_json_has_the_whole_plan_and_the_cost_only_with_prices(run: Run) -> None:
    code, shown, _ = run(*LINE, "--json")
    tree = json.loads(shown)
    assert code == 0 and tree["partitions"] % tree["shards"] == 0 and "cost" not in tree
    assert tree["total"]["cores"] == pytest.approx(sum(need["cores"] for need in tree["needs"]))
    priced = json.loads(run(*LINE, "--json", "--core-price", "20", "--disk-price", "0.1")[1])
    expected = tree["total"]["cores"] / 0.6 * 20 + tree["total"]["disk"] / 2**30 * 0.1
    assert priced["cost"] == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--events", "-1"), ("--events", "nan"), ("--events", "many"), ("--events", "inf"), ("--series", "0"),
        ("--window", "ten"), ("--window", "0s"), ("--retention", "1 fortnight"), ("--index-retention", "0d"),
        ("--emit", "some"), ("--stored", "1.5"), ("--replication", "0"), ("--replication", "2.5"), ("--metrics", "0"),
        ("--log-lines", "-3"), ("--partitions", "0"), ("--partitions", "2000"), ("--utilization", "0"),
        ("--node-cores", "0"), ("--node-disk", "0"), ("--index-replicas", "-1"), ("--core-price", "free"),
        ("--gib-price", "-1"), ("--disk-price", "x"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_by_the_name_of_its_option(run: Run, option: str, value: str) -> None:
    code, shown, error = run(*LINE, option, value)
    assert code == 2 and not shown
    assert error.split(":")[0] in ("PLAN_INVALID", "DURATION_INVALID") and option in error


@pytest.mark.parametrize("what", ["absent", "no JSON", "{}", "[]", "negative", "infinite"])
def test_a_file_that_holds_no_coefficients_is_refused(run: Run, tmp_path: Path, what: str) -> None:
    path, tree = tmp_path / "mine.json", json.loads(SHIPPED.read_text())
    if what in ("negative", "infinite"):
        tree["coefficients"]["sink.document"]["value"] = -1 if what == "negative" else float("inf")
    if what != "absent":
        path.write_text(json.dumps(tree) if what in ("negative", "infinite") else what)
    code, _, error = run(*LINE, "--coefficients", str(path))
    assert code == 2 and error.startswith("PLAN_COEFFICIENTS") and str(path) in error.replace("\n", "")


def test_a_site_that_is_too_large_for_one_pipeline_is_told_so(run: Run) -> None:
    told = json.loads(run("plan", "--events", "1e9", "--series", "1e9", "--emit", "all", "--json")[1])["bottlenecks"]
    assert any("the driver of one machine writes" in sentence for sentence in told)
    assert any(sentence.startswith("The detector needs") and "divide the site" in sentence for sentence in told)


def test_the_settings_of_the_file_are_the_defaults(run: Run, tmp_path: Path) -> None:
    (tmp_path / "newnormal.toml").write_text('[kafka]\nretention = "3d"\nreplication = 3\n[window]\nsize = "1m"\n')
    load = json.loads(run("plan", "--events", "10", "--series", "10", "--json")[1])["load"]
    assert (load["retention_ms"], load["replication"], load["window_ms"]) == (3 * 86_400_000, 3, 60_000)
