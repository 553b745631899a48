"""The console's own view keeps the windows of the version that readers see, whatever settings it was started with."""

from __future__ import annotations

from pipelines.cli.state_view import as_it_ran
from pipelines.contracts.settings import load
from pipelines.query.view.windows import Ring
from pipelines.versions.plan import planned
from pipelines.versions.used import used
from pipelines.versions.version import Version


def test_a_promoted_version_with_shorter_windows_has_a_place_for_each_of_them() -> None:
    """With the places of windows of 10 s, every second window of 5 s would replace the one before."""
    base = Version.first()
    second = planned("v2", base, "extractor", None, None, {"window.size": "5s"}, 0)
    shown = as_it_ran(load(**{"kafka.bootstrap": "there:1"}), second)
    assert (shown.version, shown.window.size, shown.kafka.bootstrap) == ("v2", "5s", "there:1")
    ring = Ring(shown)
    assert len({ring.place(end) for end in range(5_000, 60_000, 5_000)}) == 11


def test_a_console_of_its_own_takes_the_windows_with_which_the_pipeline_was_started() -> None:
    first = Version.first().model_copy(update={"ran": used(load(**{"window.size": "30s"}))})
    assert as_it_ran(load(), first).window == load(**{"window.size": "30s"}).window
    assert as_it_ran(load(), Version.first()).window == load().window
