"""Ports: the usual ones if free, others if not."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from deploy.embedded.ports import HOST, PortClaims, is_free


def test_the_preferred_port_is_taken_when_it_is_free(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    assert PortClaims(tmp_path).choose({"port": port}) == {"port": port}


def test_another_port_is_chosen_when_the_preferred_one_is_in_use(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        chosen = PortClaims(tmp_path).choose({"port": port})["port"]
        assert not is_free(port)
        assert chosen != port
        assert is_free(chosen)


def test_no_port_is_chosen_twice(tmp_path: Path) -> None:
    claims = PortClaims(tmp_path)
    ports = [*claims.choose({"a": 0, "b": 0, "c": 0}).values(), *claims.choose({"d": 0}).values()]
    assert len(set(ports)) == 4


CHOOSER = """
import sys
from pathlib import Path
from deploy.embedded.ports import PortClaims
claims = PortClaims(Path(sys.argv[1]))
print(claims.choose({"port": int(sys.argv[2])})["port"], flush=True)
sys.stdin.read()
"""


def test_two_processes_that_choose_at_once_get_different_ports_though_neither_listens_yet(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", CHOOSER, str(tmp_path), str(port)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        chosen = [int(process.stdout.readline()) for process in processes if process.stdout]
        assert len(set(chosen)) == 3 and port in chosen
    finally:
        for process in processes:
            process.communicate("")
    assert PortClaims(tmp_path).choose({"port": port}) == {"port": port}, "a process that has ended claims nothing"
