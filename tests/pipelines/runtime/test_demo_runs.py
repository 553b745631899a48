"""The runs of the demo in one state directory are one simulation; a pause is a silence that nobody is told of."""

from __future__ import annotations

from pathlib import Path

from pipelines.runtime.demo_runs import Runs

NOW, MINUTE = 1_800_000_000_000, 60_000


def test_a_first_run_has_no_past(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "demo.json", NOW)
    assert (runs.earlier, runs.until, runs.pause("me")) == ((), None, None)


def test_a_run_goes_on_from_all_earlier_ones_and_mutes_the_silence_of_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "demo.json"
    Runs(file, NOW).reach(NOW + 3 * MINUTE)
    Runs(file, NOW + 10 * MINUTE).reach(NOW + 15 * MINUTE)
    runs = Runs(file, NOW + 20 * MINUTE)
    assert (runs.earlier, runs.until) == ((NOW, NOW + 10 * MINUTE), NOW + 15 * MINUTE)
    rule = runs.pause("me")
    assert rule is not None
    assert (rule.entity, rule.start, rule.end) == ("me", NOW + 15 * MINUTE, NOW + 20 * MINUTE)
    assert rule.skip_result and not rule.skip_learning


def test_after_a_pause_longer_than_the_history_the_site_starts_anew_and_all_silence_before_it_is_muted(
    tmp_path: Path,
) -> None:
    """The history of a demo is 45 minutes; nothing is known of the 55 minutes before it."""
    file = tmp_path / "demo.json"
    Runs(file, NOW).reach(NOW + 2 * MINUTE)
    runs = Runs(file, NOW + 102 * MINUTE)
    assert runs.earlier == ()
    rule = runs.pause("me")
    assert rule is not None
    assert (rule.entity, rule.start, rule.end) == ("*", NOW + 2 * MINUTE, NOW + 57 * MINUTE)


def test_a_run_that_is_killed_has_said_how_far_it_came(tmp_path: Path) -> None:
    file = tmp_path / "demo.json"
    run = Runs(file, NOW)
    for minute in range(3):
        run.reach(NOW + minute * MINUTE)
    assert Runs(file, NOW + 4 * MINUTE).until == NOW + 2 * MINUTE
