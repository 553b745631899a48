"""The runs of the demo in one state directory are one simulation; a pause is a silence that nobody is told of."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from datagen.simulator import demo
from datagen.simulator.topology import Topology
from pipelines.contracts.globs import matches
from pipelines.runtime.demo import Runs

NOW, MINUTE, STEP = 1_800_000_000_000, 60_000, 10_000


def test_a_first_run_has_no_past(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "demo.json", NOW)
    assert (runs.earlier, runs.until, runs.pause("me")) == ((), None, [])


def test_a_run_goes_on_from_all_earlier_ones_and_mutes_the_silence_of_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "demo.json"
    Runs(file, NOW).reach(NOW + 3 * MINUTE)
    Runs(file, NOW + 10 * MINUTE).reach(NOW + 15 * MINUTE)
    runs = Runs(file, NOW + 20 * MINUTE)
    assert (runs.earlier, runs.until) == ((NOW, NOW + 10 * MINUTE), NOW + 15 * MINUTE)
    (rule,) = runs.pause("me")
    assert (rule.entity, rule.start, rule.end) == ("me", NOW + 15 * MINUTE, NOW + 20 * MINUTE)
    assert rule.skip_result and not rule.skip_learning


def test_after_a_pause_longer_than_the_history_the_silence_of_the_simulated_machines_is_muted_and_of_no_others(
    tmp_path: Path,
) -> None:
    """The history of a demo is 45 minutes; nothing is known of the 55 minutes before. One's own machines are told."""
    file = tmp_path / "demo.json"
    Runs(file, NOW).reach(NOW + 2 * MINUTE)
    runs = Runs(file, NOW + 102 * MINUTE)
    assert runs.earlier == ()
    rules = runs.pause("me")
    assert all(rule.start == NOW + 2 * MINUTE and rule.skip_result for rule in rules)
    site = demo(NOW + 102 * MINUTE)
    simulated = Topology(site.hosts, site.vms, site.spare).names
    for names, end in ((["me"], NOW + 102 * MINUTE), (simulated, NOW + 57 * MINUTE), (["web-1", "host-12"], None)):
        for name in names:
            ends = [rule.end for rule in rules if matches(rule.entity, pl.Series([name])).all()]
            assert ends == ([] if end is None else [end]), name


def test_of_many_runs_the_oldest_are_forgotten_and_the_others_keep_their_surge_and_outage(tmp_path: Path) -> None:
    """Each run is computed again at each start: without a bound, starts would take longer and longer."""
    file = tmp_path / "demo.json"
    live = dict[int, list[tuple[str, int]]]()
    for number in range(80):
        at = NOW + number * MINUTE
        runs = Runs(file, at)
        assert len(runs.earlier) <= 60
        begun = {run // STEP * STEP for run in (*runs.earlier, at)}
        for run in begun:
            of_it = [(each.type, each.entity) for each in demo(at, earlier=runs.earlier).incidents
                     if each.start in (run + 20_000, run + 40_000) and each.end - each.start == 90_000]  # fmt: skip
            assert live.setdefault(run, of_it) == of_it
        runs.reach(at + 30_000)


def test_a_run_that_is_killed_has_said_how_far_it_came(tmp_path: Path) -> None:
    file = tmp_path / "demo.json"
    run = Runs(file, NOW)
    for minute in range(3):
        run.reach(NOW + minute * MINUTE)
    assert Runs(file, NOW + 4 * MINUTE).until == NOW + 2 * MINUTE
