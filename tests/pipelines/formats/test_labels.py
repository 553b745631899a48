"""The rule of labels: which one names the machine, and what becomes of a port and of a name without a machine."""

from __future__ import annotations

import pytest

from tests.pipelines.formats.decoding import refusals, samples
from tests.pipelines.formats.otlp_requests import attributes, both, gauge, metrics


@pytest.mark.parametrize("name", ["[]:9100", ":9100"])
def test_a_label_with_a_port_and_no_machine_is_a_dead_letter(name: str) -> None:
    otlp, _ = both(metrics(gauge(), resource=attributes(instance=name)))
    assert refusals("otlp", otlp) == [(0, "MACHINE_UNKNOWN")]
    assert refusals("prometheus", f'up{{instance="{name}"}} 1'.encode()) == [(0, "MACHINE_UNKNOWN")]
    assert refusals("influx", f"up,host={name} v=1".encode()) == [(0, "MACHINE_UNKNOWN")]


def test_two_processes_on_ports_of_a_machine_that_another_label_names_are_two_series() -> None:
    text = b"""n_total{host="w",instance="w:8080",job="app"} 5
n_total{host="w",instance="w:8081",job="app"} 7
n_total{host="w",instance="w",job="app"} 9
n_total{host="w:1",instance="w:2",job="app"} 11"""
    assert [(machine, metric, value) for _, machine, metric, value, _ in samples("prometheus", text)] == [
        ("w", "n_total{job=app,port=8080}", 5.0),
        ("w", "n_total{job=app,port=8081}", 7.0),
        ("w", "n_total{job=app}", 9.0),
        ("w", "n_total{host=w:1,job=app,port=2}", 11.0),
    ]
