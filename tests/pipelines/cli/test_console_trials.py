"""A trial for the console is a process beside it: it is ended when it takes too long; what goes wrong has a code."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from engine.spec.errors import NewnormalError
from pipelines.cli.console_trials import ConsoleTrials
from pipelines.contracts.settings import load

RULE = {"fields": {"id": "quiet", "skip_result": True}, "limits": {}, "minutes": None}
LONG = 120.0


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never says anything, so that who asks it waits."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def trials(tmp_path: Path, address: str, seconds: float = LONG) -> ConsoleTrials:
    given = {"state_dir": str(tmp_path), "kafka.bootstrap": address, "elasticsearch.url": f"http://{address}"}
    return ConsoleTrials(lambda: load(**given), given, seconds)  # type: ignore[arg-type]


def processes() -> list[psutil.Process]:
    known = psutil.Process().children(recursive=True)
    return [each for each in known if "spawn_main" in " ".join(each.cmdline())]


@pytest.mark.timeout(300)
def test_a_trial_that_takes_too_long_is_ended_and_says_so(silent: str, tmp_path: Path) -> None:
    with pytest.raises(NewnormalError) as caught:
        trials(tmp_path, silent, seconds=4.0).tried(**RULE, days=30)  # type: ignore[arg-type]
    assert caught.value.code == "TRIAL_SLOW" and "within 4 s" in caught.value.what
    assert processes() == []


@pytest.mark.timeout(300)
def test_a_trial_that_was_killed_says_so(silent: str, tmp_path: Path) -> None:
    def kill() -> None:
        end = time.monotonic() + LONG
        while not (found := processes()) and time.monotonic() < end:
            time.sleep(0.05)
        found[0].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(NewnormalError) as caught:
        trials(tmp_path, silent).proposed(30)
    killer.join()
    assert caught.value.code == "TRIAL_ENDED" and "ended with -9" in caught.value.what


@pytest.mark.timeout(300)
def test_a_server_that_is_away_and_a_rule_that_is_none_are_said_with_their_codes(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        nobody = f"127.0.0.1:{server.getsockname()[1]}"
    found = trials(tmp_path, nobody)
    with pytest.raises(NewnormalError) as caught:
        found.tried(**RULE, days=30)  # type: ignore[arg-type]
    assert caught.value.code == "ELASTICSEARCH_UNREACHABLE"
    for wrong in ({"id": "quiet"}, {"id": "quiet", "skip_result": True, "times": "26:00-27:00"}):
        with pytest.raises(NewnormalError) as caught:
            found.tried(fields=wrong, limits={}, minutes=None, days=30)
        assert caught.value.code == "RULE_INVALID"
    with pytest.raises(NewnormalError) as caught:
        found.tried(fields={"id": "quiet", "skip_learning": True}, limits={}, minutes=None, days=30)
    assert caught.value.code == "USAGE_INVALID" and "replay" in caught.value.what
