"""History of a real Prometheus: the samples are those that would have come live, whatever the slices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.history.http_api import HttpApi
from pipelines.history.importing import Import
from pipelines.history.intake import Intake, TooMuchError
from pipelines.history.login import Login
from pipelines.history.prometheus import PrometheusHistory
from tests.pipelines.history.samples import MINUTE, START, Row, history, live, rows
from tests.prometheus_server import prometheus

pytestmark = pytest.mark.servers

HOURS = 6
END = START + HOURS * 60 * MINUTE
GIVEN = history(START, HOURS)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpApi]:
    options = "--query.max-samples=20000", "--web.enable-remote-write-receiver"
    with (
        prometheus(tmp_path_factory.mktemp("prometheus"), GIVEN, *options) as url,
        closing(HttpApi(url, Login(), Event(), print)) as asked,
    ):
        yield asked


def read(source: PrometheusHistory, settings: Settings, cuts: list[int]) -> list[Row]:
    intake = Intake(settings)
    found: list[Row] = []
    for begin, end in pairwise(cuts):
        found += rows(source.read(begin, end, intake))
    return sorted(found)


@pytest.mark.parametrize("minutes", [7, 60])
def test_stored_samples_are_those_that_came_live_each_once_whatever_the_slices(
    api: HttpApi, settings: Settings, minutes: int
) -> None:
    """Slices end at the very instants of samples, too, as 7,123 ms after the start is one of them."""
    cuts = [START, *range(START + 7_123, END, minutes * MINUTE), END]
    found = read(PrometheusHistory(api, ['{job="node"}'], None), settings, cuts)
    assert found == live(GIVEN, settings)
    assert {kind for *_, kind in found} == {"gauge", "counter"}


def test_a_series_that_two_selectors_match_comes_once(api: HttpApi, settings: Settings) -> None:
    source = PrometheusHistory(api, ["node_load1", '{__name__=~"node_.*"}'], None)
    expected = live({k: v for k, v in GIVEN.items() if dict(k)["__name__"].startswith("node_")}, settings)
    assert read(source, settings, [START, START + 90 * MINUTE, END]) == expected


def test_with_a_step_each_instant_of_the_grid_has_the_last_value_before_it(api: HttpApi, settings: Settings) -> None:
    """The expectation is computed from the samples by the documented rule: the last one of the five minutes before."""
    step = 4 * MINUTE
    source = PrometheusHistory(api, ['{__name__=~"node_load1|up"}'], step)
    grid = {}
    for labels, samples in GIVEN.items():
        if dict(labels)["__name__"] in ("node_load1", "up"):
            at = {t: [s for s in samples if t - 5 * MINUTE < s[0] <= t] for t in range(START, END, step)}
            grid[labels] = [(t, before[-1][1]) for t, before in at.items() if before]
    cuts = [START, START + 13 * MINUTE, START + 200 * MINUTE, END]
    assert read(source, settings, cuts) == live(grid, settings)


def test_more_points_than_an_answer_may_hold_are_asked_for_in_parts(api: HttpApi, settings: Settings) -> None:
    found = read(PrometheusHistory(api, ["up"], 1_000), settings, [START, END])
    assert len(found) > 11_000
    assert len({time for time, *_ in found}) == len(found)


def test_a_slice_with_more_samples_than_the_server_gives_is_divided(api: HttpApi, settings: Settings) -> None:
    source = PrometheusHistory(api, ['{job="node"}', '{job=~"nod.*"}'], 1_000)
    with pytest.raises(TooMuchError, match="too many samples"):
        source.read(START, END, Intake(settings))
    configured = settings.model_copy(update={"archive": settings.archive.model_copy(update={"path": Path("nowhere")})})
    slices = list(Import(configured, source, Intake(settings), Event()).slices(END - 60 * MINUTE, END))
    assert len(slices) > 1
    assert [first for first, _, _ in slices][:-1] == [last for _, last, _ in slices][1:]


def test_series_are_counted(api: HttpApi) -> None:
    assert PrometheusHistory(api, ['{job="node"}', "up"], None).series(START, END) == len(GIVEN)


def test_a_series_without_a_machine_is_counted_as_refused(api: HttpApi, settings: Settings) -> None:
    intake = Intake(settings)
    PrometheusHistory(api, ['{job="node"}'], None).read(START, END, intake)
    assert set(intake.refused) == {"MACHINE_UNKNOWN"}
    assert "nowhere" in intake.reasons["MACHINE_UNKNOWN"]


@pytest.mark.parametrize("match", ["{", "rate(up[5m])", "1"])
def test_a_wrong_selector_is_refused_with_the_reason(api: HttpApi, settings: Settings, match: str) -> None:
    with pytest.raises(NewnormalError) as caught:
        PrometheusHistory(api, [match], None).read(START, END, Intake(settings))
    assert caught.value.code == "IMPORT_REFUSED"
    assert "parse error" in caught.value.what
