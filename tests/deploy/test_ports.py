"""Ports: the usual ones if free, others if not."""

from __future__ import annotations

import socket

from deploy.embedded.ports import HOST, choose, is_free


def test_the_preferred_port_is_taken_when_it_is_free() -> None:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    assert choose({"port": port}) == {"port": port}


def test_another_port_is_chosen_when_the_preferred_one_is_in_use() -> None:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        chosen = choose({"port": port})["port"]
        assert not is_free(port)
        assert chosen != port
        assert is_free(chosen)


def test_no_port_is_chosen_twice() -> None:
    ports = choose({"a": 0, "b": 0, "c": 0}, taken={1})
    assert len({*ports.values(), 1}) == 4
