"""How sure, how large, how many: what weighs in an incident."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.config import DetectorConfig
from models.records import constants
from models.series.alarm import by_clock
from pipelines.jobs.incidents.bursts import Rules
from pipelines.jobs.incidents.episode import LOGS, Episode
from pipelines.jobs.incidents.severity import is_notable, severity_score
from tests.pipelines.incidents.cases import STEP, T0, Feed, news

MINUTE, RULES = 60_000.0, Rules()
ZERO = Episode(
    "shop", "orders", 0, 1, 1, None, 66.0, actual=0.0, typical=50.0, lower=30.0, upper=70.0, values=1e4, clock=MINUTE
)
"""The only KPI of a service, a value a minute, falls to nothing."""


@pytest.mark.parametrize("minutes", [1 / 6, 1, 2, 5, 10, 30, 60])
def test_evidence_follows_the_clock_of_a_series_as_the_alarm_does(minutes: float) -> None:
    """The alarm is decided in `models.series.alarm`; here the same weight of evidence is taken off."""
    config = constants(all=DetectorConfig()).all
    plain, own = (Episode("a", "m", 0, 1, 1, None, 80.0, clock=clock) for clock in (None, minutes * MINUTE))
    assert plain.evidence - own.evidence == pytest.approx(by_clock(config, minutes * MINUTE) / config.half)


def test_the_only_kpi_of_a_service_at_zero_is_major() -> None:
    assert 50 <= severity_score([ZERO]) < 75
    assert is_notable([ZERO], RULES, RULES.score)


def test_what_is_just_told_of_by_the_detector_in_one_series_is_no_incident() -> None:
    for score, clock in ((58.5, MINUTE), (50.5, 5 * MINUTE), (36.0, 60 * MINUTE)):
        assert not is_notable([Episode("a", "m", 0, 1, 1, None, score, clock=clock)], RULES, RULES.score)


def test_more_series_and_larger_deviations_are_more_severe() -> None:
    more = [replace(ZERO, metric=f"m{n}") for n in range(20)]
    assert severity_score([ZERO]) < severity_score(more[:2]) < severity_score(more)
    assert severity_score([replace(ZERO, actual=29.0)]) < severity_score([ZERO])


def test_what_a_log_says_follows_no_clock_and_counts_in_full_only_if_it_is_an_error() -> None:
    line = Episode("a", LOGS, 0, 1, 1, None, 55.0, clock=MINUTE, template="t", level=6)
    assert severity_score([replace(line, level=3)]) >= 50 > severity_score([line])


def test_a_later_value_near_its_band_does_not_hide_a_large_one_whatever_the_micro_batches() -> None:
    band = {"lower": 0.0, "upper": 1.0, "values": 1000.0, "since": T0}
    large = news("a", "cpu", 0, record_score=52.0, actual=31.0, **band)
    near = news("a", "cpu", STEP, record_score=53.0, actual=1.05, **band)
    feeds = Feed(), Feed()
    feeds[0].send([large], 60_000)
    before = feeds[0].standing[0].severity_score
    feeds[0].send([near], 120_000)
    feeds[1].send([large, near], 120_000)
    once, parts = (feed.standing[0].severity_score for feed in feeds)
    assert once == parts >= before


def test_what_many_machines_show_at_once_is_told_on_a_noisy_site_too() -> None:
    """Ten machines do not come by chance, however high the level is; nine may."""
    some = [Episode(f"m{n}", "cpu", 0, 1, 1, None, 51.0) for n in range(10)]
    assert is_notable(some, RULES, 95.0)
    assert not is_notable(some[:9], RULES, 95.0)


def test_one_of_many_metrics_of_a_machine_is_less_sure_than_an_only_one_and_all_of_them_are_not() -> None:
    """By chance one of twelve metrics is as unusual twelve times as often as an only one; all twelve together are not.

    Twelve metrics make as many values a month as one metric with a twelfth of the clock: the evidence is as that of it.
    """
    own = {"entity": "a", "since": 0, "reported": 1, "until": 1, "closed": None, "score": 75.0}
    only = Episode(**own, metric="m", clock=30 * MINUTE, metrics=1.0)  # type: ignore[arg-type]
    some = [replace(only, metric=f"m{n}", metrics=12.0) for n in range(12)]
    as_often = replace(only, clock=30 * MINUTE / 12)
    assert some[0].evidence_among(1) == pytest.approx(as_often.evidence)
    assert severity_score(some[:1]) == severity_score([as_often]) < severity_score([only])
    assert severity_score(some) > severity_score([only])
