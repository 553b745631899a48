"""What a seed decides: the faults and the load; and which processes may be harmed."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from itertools import islice

import pytest
from rich.console import Console

from engine.spec.errors import NewnormalError
from tests.chaos.runs.display import Display
from tests.chaos.runs.faults import FAULTS, planned
from tests.chaos.runs.processes import below, target
from tests.chaos.runs.report import Disturbance, by_kind
from tests.chaos.runs.scenario import Scenario
from tests.chaos.runs.verifier.log_reader import LogMessage
from tests.chaos.runs.verifier.raw_records import samples

BEGIN = 1_799_990_000_000


def test_each_kind_of_fault_comes_before_any_comes_again() -> None:
    kinds = [plan.fault.name for plan in islice(planned(FAULTS, 3), 2 * len(FAULTS))]
    assert sorted(kinds[: len(FAULTS)]) == sorted(kinds[len(FAULTS) :]) == sorted(FAULTS)


def test_another_seed_gives_another_order_and_another_load() -> None:
    one, other = ([plan.fault.name for plan in islice(planned(FAULTS, seed), 21)] for seed in (1, 2))
    assert one != other
    assert list(Scenario(1, BEGIN).at(40)) != list(Scenario(2, BEGIN).at(40))


def test_the_load_follows_from_seed_and_step_alone() -> None:
    again = Scenario(1, BEGIN)
    list(again.at(7))
    assert list(Scenario(1, BEGIN).at(40)) == list(again.at(40))


def test_the_load_holds_late_and_hostile_messages_rules_and_labels() -> None:
    scenario, sent, ahead, late, hours = Scenario(1, BEGIN), [], 0, 0, 0
    for step in range(500):
        sent += scenario.at(step)
    metrics = [message.value for message in sent if message.topic == "telemetry.json"]
    raw = samples(LogMessage(0, at, BEGIN + 36_000_000, value) for at, value in enumerate(metrics))
    for time in raw.records["time"]:
        ahead = max(ahead, time)
        late += 5_000 < ahead - time < 180_000
        hours += ahead - time > 3_600_000
    assert late > 20
    assert hours > 2
    codes = {"JSON_MALFORMED", "FIELD_INVALID", "TIME_UNIT", "TIME_AHEAD", "TIME_TOO_EARLY"}
    assert set(raw.refused.values()) == codes
    assert {message.topic for message in sent} == {"telemetry.json", "logs.json", "rules", "labels"}
    rules = [json.loads(message.value) for message in sent if message.topic == "rules"]
    assert {"colour" in rule for rule in rules} == {True, False}


def test_only_processes_that_this_one_has_started_may_be_harmed() -> None:
    with pytest.raises(NewnormalError, match="CHAOS_FOREIGN"):
        target(os.getppid())
    with pytest.raises(NewnormalError, match="CHAOS_FOREIGN"):
        target(os.getpid())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert [each.pid for each in below(child.pid)] == [child.pid]
        child.communicate(b"\n")


def _fault(fault: str, recovery: float | None, waited: bool = True) -> Disturbance:
    return Disturbance(1, "2026-11-22T00:00:00.000+00:00", 1.0, fault, (1,), 0.5, recovery, waited, 0)


def test_recovery_is_summed_up_by_kind_of_fault() -> None:
    done = [
        _fault("kill", 3.0),
        _fault("stop", 1.0),
        _fault("kill", 9.0),
        _fault("kill", 4.0),
        _fault("cut", None, False),
    ]
    assert by_kind(done) == [
        {"fault": "cut", "count": 1, "median_s": None, "worst_s": None},
        {"fault": "kill", "count": 3, "median_s": 4.0, "worst_s": 9.0},
        {"fault": "stop", "count": 1, "median_s": 1.0, "worst_s": 1.0},
    ]


def test_a_terminal_shows_a_table_of_the_faults_and_a_file_gets_lines() -> None:
    terminal, file = (Console(file=io.StringIO(), width=160, force_terminal=shown) for shown in (True, False))
    for console in (terminal, file):
        display = Display(console)
        display.say("kill Kafka")
        display.done(_fault("kill Kafka", 3.25))
        console.print(display.render()) if console is terminal else None
    shown, lines = (console.file.getvalue() for console in (terminal, file))  # type: ignore[attr-defined]
    assert "a new result after 3.2 s" in shown
    assert "┃" in shown
    assert [line.split("s  ")[1].strip() for line in lines.splitlines()] == [
        "kill Kafka",
        "lasted 0.5 s; a new result after 3.2 s",
    ]


def test_a_fault_counts_as_stalled_only_if_a_result_was_waited_for() -> None:
    assert [_fault("kill", r, w).stalled for r, w in ((None, True), (None, False), (1.0, True))] == [True, False, False]


def test_processes_that_end_while_they_are_listed_are_no_error() -> None:
    with subprocess.Popen(["sh", "-c", "while :; do /bin/true & /bin/true; done"], start_new_session=True) as child:
        try:
            for _ in range(300):
                assert below(child.pid)[0].pid == child.pid
        finally:
            os.killpg(child.pid, signal.SIGKILL)
    assert below(child.pid) == []
