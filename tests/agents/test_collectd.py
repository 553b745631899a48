"""collectd, running here: the names, kinds, units and rates of its series, against the kernel and its own figures."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest

from tests.agents.agents import Endpoint, installed, memory, read, received, running, taken, until

PACKAGES = "collectd-core libyajl2"
CONFIG = """
Hostname "agent-1"
FQDNLookup false
BaseDir "{folder}"
PIDFile "{folder}/collectd.pid"
TypesDB "/usr/share/collectd/types.db"
Interval 1
LoadPlugin interface
LoadPlugin memory
LoadPlugin write_http
<Plugin interface>
  Interface "lo"
</Plugin>
<Plugin write_http>
{nodes}
</Plugin>
"""
NODE = """
  <Node "{name}">
    URL "http://127.0.0.1:{port}/{name}"
    Format "{form}"
    StoreRates {rates}
    BufferSize 4096
  </Node>
"""
NODES = {"counters": ("JSON", "false"), "rates": ("JSON", "true"), "commands": ("Command", "true")}
RECEIVED = "interface.if_octets.rx{instance=lo}"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What collectd posts in some seconds, by the name of the node; and the bytes received before and after."""
    program, folder = installed("collectd", PACKAGES), tmp_path_factory.mktemp("collectd")
    with Endpoint() as endpoint:
        nodes = "".join(
            NODE.format(name=name, port=endpoint.port, form=form, rates=rates) for name, (form, rates) in NODES.items()
        )
        config, log = folder / "collectd.conf", folder / "log"
        config.write_text(CONFIG.format(folder=folder, nodes=nodes))
        before = received()
        with running([program, "-f", "-C", str(config)], log):
            until(lambda: all(len(endpoint.bodies.get(f"/{name}", ())) >= 2 for name in NODES), log)
            time.sleep(3)
        after = received()
        return {"before": before, "after": after} | {name: list(endpoint.bodies[f"/{name}"]) for name in NODES}


def series(samples: list[dict[str, Any]], metric: str) -> dict[int, float]:
    """The values of a metric by time."""
    assert {sample["entity"] for sample in samples} == {"agent-1"}
    return {sample["time"]: sample["value"] for sample in samples if sample["metric"] == metric}


def test_counters_are_those_of_the_kernel(written: dict[str, Any]) -> None:
    samples = taken(read(*written["counters"], collectd_rates=False), "collectd")
    assert {sample["kind"] for sample in samples if sample["metric"] == RECEIVED} == {"counter"}
    values = list(series(samples, RECEIVED).values())
    assert values == sorted(values)
    assert len(values) >= 2
    assert written["before"] <= values[0] <= values[-1] <= written["after"]


def test_rates_of_the_counters_are_those_that_collectd_computes(written: dict[str, Any]) -> None:
    counters = series(taken(read(*written["counters"], collectd_rates=False), "collectd"), RECEIVED)
    told = taken(read(*written["rates"]), "collectd")
    assert {sample["kind"] for sample in told if sample["metric"] == RECEIVED} == {"rate"}
    rates, times = series(told, RECEIVED), sorted(counters)
    compared = 0
    for last, time_ms in pairwise(times):
        if time_ms in rates:
            expected = (counters[time_ms] - counters[last]) / (time_ms - last) * 1000
            assert rates[time_ms] == pytest.approx(expected, rel=5e-3, abs=1)
            compared += 1
    assert compared


def test_memory_is_in_bytes_and_its_parts_are_all_of_it(written: dict[str, Any]) -> None:
    samples = taken(read(*written["rates"]), "collectd")
    parts = [sample for sample in samples if sample["metric"].startswith("memory.memory.")]
    assert {sample["kind"] for sample in parts} == {"gauge"}
    first = min(sample["time"] for sample in parts)
    assert sum(sample["value"] for sample in parts if sample["time"] - first < 500) == memory()


def test_the_commands_give_the_series_of_the_json(written: dict[str, Any]) -> None:
    as_json = series(taken(read(*written["rates"]), "collectd"), RECEIVED)
    as_commands = series(taken(read(*written["commands"]), "putval"), RECEIVED)
    both = as_json.keys() & as_commands.keys()
    assert both
    assert [as_commands[time] for time in both] == pytest.approx([as_json[time] for time in both])
