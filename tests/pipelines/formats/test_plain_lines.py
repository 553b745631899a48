"""Graphite lines and collectd's commands, against expectations worked out by hand."""

from __future__ import annotations

import pytest

from tests.pipelines.formats.decoding import ARRIVED, refusals, samples

AT = 1_795_220_820_000


def test_a_graphite_line_is_a_sample_of_the_machine_that_a_tag_or_its_first_part_names() -> None:
    text = b"web-1.cpu.idle 97.5 1795220820\ncpu.idle;host=b;cpu=0 -1e3 1795220820.5\nweb-1.load 1 -1"
    assert samples("graphite", text) == [
        (AT, "web-1", "cpu.idle", 97.5, "gauge"),
        (AT + 500, "b", "cpu.idle{cpu=0}", -1000.0, "gauge"),
        (ARRIVED, "web-1", "load", 1.0, "gauge"),
    ]


def test_a_command_of_collectd_has_the_names_of_its_json() -> None:
    text = b"""PUTVAL "a/interface-eth0/if_octets" interval=10.000 1795220820:1.5:2
PUTVAL a/load/load interval=10 1795220820.5:1:2:3
PUTVAL a/cpu-0/cpu-idle interval=10 N:U:4"""
    eth0 = "interface.if_octets.{}{{instance=eth0}}"
    assert [(time, metric, value) for time, _, metric, value, _ in samples("putval", text)] == [
        (AT, eth0.format("rx"), 1.5),
        (AT, eth0.format("tx"), 2.0),
        *((AT + 500, f"load.load.{term}term", value) for term, value in (("short", 1.0), ("mid", 2.0), ("long", 3.0))),
        (ARRIVED, "cpu.cpu.idle.1{instance=0}", 4.0),
    ]


@pytest.mark.parametrize(
    ("form", "line"),
    [
        *(("graphite", line) for line in (b"a.b 1", b"a.b one 1", b"a.b 1 soon", b"a;x 1 1", b"a.b 1_0 1", b"a b 1 1")),
        *(("putval", line) for line in (b"PUTVAL a/b 1:2", b"PUTVAL a/b/c", b"PUTVAL a/b/c 1", b"PUTVAL a/b/c 1:x")),
        *(("putval", line) for line in (b"GETVAL a/b/c", b'PUTVAL "a/b/c 1:2', b"PUTVAL a//c 1:2")),
    ],
)
def test_a_broken_line_refuses_its_message(form: str, line: bytes) -> None:
    assert refusals(form, line) == [(0, "LINE_INVALID")]


def test_a_rate_that_write_http_does_not_know_yet_is_no_sample() -> None:
    found = samples("putval", b"PUTVAL a/interface-lo/if_octets interval=1.000 1795220820:nan:2.5\r\n")
    assert [(metric, value) for _, _, metric, value, _ in found] == [("interface.if_octets.tx{instance=lo}", 2.5)]


def test_a_value_that_is_unknown_is_no_sample() -> None:
    assert refusals("putval", b"PUTVAL a/b/c interval=10 1795220820:U") == [(0, "MESSAGE_EMPTY")]
