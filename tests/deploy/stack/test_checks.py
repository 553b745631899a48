"""What would keep the stack from starting is found before anything starts."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from deploy.compose import starting
from deploy.compose.containers import Container
from deploy.compose.project import Port
from deploy.embedded.ports import HOST

GB = 1 << 30


def test_a_port_at_which_another_program_listens_is_named_with_the_variable_that_changes_it() -> None:
    with socket.create_server((HOST, 0)) as other:
        number = int(other.getsockname()[1])
        (error,) = starting.taken([Port("pipeline", HOST, number)])
        assert error.code == "STACK_PORT_TAKEN"
        assert str(number) in error.what and "CONSOLE_PORT" in error.where
        assert list(starting.taken([Port("pipeline", HOST, number)], ours=[number])) == [], "the stack itself has it"
    assert list(starting.taken([Port("pipeline", HOST, number)])) == [], "it is free again"


def test_too_little_memory_is_told_with_what_is_needed_and_what_there_is() -> None:
    error = starting.short_of_memory(6 * GB, 4 * GB)
    assert error is not None and error.code == "STACK_MEMORY"
    assert "6.0 GB" in error.what and "4.0 GB" in error.what
    assert starting.short_of_memory(4 * GB, 4 * GB) is None


@pytest.mark.parametrize(
    ("content", "low"), [("65530\n", True), ("262144\n", False), ("1048576\n", False), ("", False)]
)
def test_a_low_map_count_is_told_with_the_command_that_raises_it(tmp_path: Path, content: str, low: bool) -> None:
    file = tmp_path / "max_map_count"
    file.write_text(content)
    error = starting.low_map_count(file)
    assert (error is not None) == low
    assert error is None or "sysctl -w vm.max_map_count=262144" in error.accepted
    assert starting.low_map_count(tmp_path / "absent") is None


def test_everything_that_is_wrong_is_told_at_once_and_only_what_concerns_the_engine() -> None:
    with socket.create_server((HOST, 0)) as other:
        port = {"published": str(other.getsockname()[1]), "host_ip": HOST}
        services = {"kafka": {"ports": [port], "mem_reservation": str(2 * GB)}}
        here = [error.code for error in starting.problems(services, GB, (), embedded=True)]
        elsewhere = [error.code for error in starting.problems(services, GB, (), local=False)]
    assert here == ["STACK_PORT_TAKEN", "STACK_MEMORY"]
    assert elsewhere == ["STACK_MEMORY"], "ports and kernel of another machine cannot be seen from here"


@pytest.mark.parametrize(
    ("container", "words", "well", "failed"),
    [
        (Container("kafka", "running", "healthy"), "healthy", True, False),
        (Container("kafka", "running", "starting"), "starting", False, False),
        (Container("kafka", "running", "unhealthy"), "unhealthy", False, True),
        (Container("agent", "running"), "running", True, False),
        (Container("agent", "created"), "created", False, False),
        (Container("agent", "restarting", code=2), "restarting", False, False),
        (Container("agent", "exited", code=137), "exited with code 137", False, True),
        (Container("agent", "exited"), "exited with code 0", False, True),
        (Container("dashboards-kibana", "exited", once=True), "done", True, False),
        (Container("dashboards-kibana", "exited", code=2, once=True), "exited with code 2", False, True),
    ],
)
def test_a_container_is_well_if_it_is_healthy_or_has_done_its_work(
    container: Container, words: str, well: bool, failed: bool
) -> None:
    assert (container.words, container.well, container.failed) == (words, well, failed)
