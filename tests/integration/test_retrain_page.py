"""The commands of docs/retrain-without-a-bad-day.md, run in order: exactly the alarms of that machine and time go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.test_replay_page import Shell, blocks

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

MACHINE = "vm-00004"


def test_exactly_the_alarms_of_the_bad_day_are_gone_and_all_others_are_the_same(tmp_path: Path) -> None:
    begin, rule, replay, promote = blocks("retrain-without-a-bad-day.md")
    shell = Shell(tmp_path)
    try:
        shell.run(begin)
        assert "badday" in shell.run(rule)
        shell.run(replay)
        found = json.loads(shell.run("newnormal compare v1 v3 --json"))
        machines = {row.pop("entity"): row for row in found["alarms"]["by_machine"]}
        bad = machines.pop(MACHINE)
        assert bad["first"] > 0
        assert (bad["gone"], bad["second"]) == (bad["first"], 0)
        assert machines, "others have alarms, too"
        for name, row in machines.items():
            assert row["same"] == row["first"] == row["second"], name
        assert all(value == {} for value in found["settings"].values()), "only the rule differs"
        assert "v3" in shell.run(promote)
    finally:
        shell.run("newnormal services down")
