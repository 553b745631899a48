"""Scores for a Prometheus that scrapes: its own parsers read them, and each value follows from the messages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pipelines.query.view.app import create_app
from tests.pipelines.query.stored_scores import Labels, Stored, expected, history, said

OPEN_METRICS = "application/openmetrics-text;version=1.0.0"
HOSTILE = [
    'a"b',
    "back\\slash",
    "new\nline",
    "nul\0",
    "日本",
    "{",
    "x{a=b",
    "x{=,,}",
    "x{__name__=evil}",
    "x{le=1,é=2}",
]


@pytest.fixture
def view(tmp_path: Path) -> Iterator[Stored]:
    stored = Stored(tmp_path)
    yield stored
    stored.database.close()


def scrape(view: Stored, accept: str = "text/plain", **query: Any) -> dict[Labels, float]:
    """The samples by their labels, as Prometheus' parser for the format reads them; none has a time of its own."""
    http = TestClient(create_app(view), base_url="http://localhost")
    answer = http.get("/scores/metrics", params=query, headers={"Accept": accept})
    assert answer.status_code == 200, answer.text
    is_open_metrics = answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert is_open_metrics == accept.startswith("application/openmetrics"), answer.headers
    families = list((parse_open_metrics if is_open_metrics else parse_text)(answer.text))
    samples = [sample for family in families for sample in family.samples]
    assert {family.type for family in families} == {"gauge"} and all(sample.timestamp is None for sample in samples)
    told = {(("__name__", s.name), *sorted(s.labels.items())): s.value for s in samples}
    assert len(told) == len(samples), "two samples of one series"
    return told


def of_series(told: dict[Labels, float]) -> dict[Labels, float]:
    return {labels: value for labels, value in told.items() if len(labels) > 1}


def whole(told: dict[Labels, float]) -> dict[str, float]:
    return {labels[0][1]: value for labels, value in told.items() if len(labels) == 1}


@pytest.mark.parametrize("accept", ["text/plain", OPEN_METRICS])
def test_what_is_scraped_follows_from_the_last_belief_and_the_verdict_on_the_newest_window(
    view: Stored, accept: str
) -> None:
    beliefs, verdicts = history(20, 60, seed=3)
    for window in (5, 11, 17):
        view.write(beliefs, verdicts, range(window - 5, window + 1))
        told = scrape(view, accept)
        assert of_series(told) == expected(beliefs, verdicts, window)
        assert whole(told) == {
            "newnormal_scores_series": len({labels[1:3] for labels in of_series(told)}),
            "newnormal_scores_left_out": 0.0,
            "newnormal_scores_event_time_seconds": 1_700_000_000 + 10 * (window + 1),
        }


def test_names_of_machines_metrics_and_tags_are_labels_whatever_they_hold(view: Stored) -> None:
    view.say([said(entity, metric, 0) for entity in HOSTILE for metric in HOSTILE])
    view.say([said("web-1", "disk{fs-type=ext4,path=/a,b=c,empty=}", 0)])
    for accept in ("text/plain", OPEN_METRICS):
        scores = [dict(labels) for labels in scrape(view, accept) if labels[0] == ("__name__", "newnormal_score")]
        assert {(each["machine"], each["metric"]) for each in scores if each["machine"] != "web-1"} == {
            (entity, metric) for entity in HOSTILE for metric in HOSTILE
        }
        known = {"__name__", "machine", "metric", "version"}
        assert {name for each in scores for name in each.keys() - known} == {
            "tag_fs_type", "tag_path", "tag_b", "tag___name__", "tag_le", "tag__",
        }  # fmt: skip
        (disk,) = (each for each in scores if each["machine"] == "web-1")
        assert (disk["tag_fs_type"], disk["tag_path"], disk["tag_b"]) == ("ext4", "/a", "c")


def test_the_number_of_series_is_bounded_what_is_novel_comes_first_and_the_others_are_counted(view: Stored) -> None:
    view.say([said(f"web-{n:02}", "cpu", 0, "anomaly" if n % 10 == 7 else "normal", 50.0 + n) for n in range(40)])
    view.say([said("gone", "cpu", 0, "absence", **{"incident.state": "closed"})])

    def machines(**query: Any) -> tuple[list[str], float]:
        told = scrape(view, **query)
        found = [dict(labels)["machine"] for labels in of_series(told) if labels[0][1] == "newnormal_score"]
        return found, whole(told)["newnormal_scores_left_out"]

    novel = ["web-37", "web-27", "web-17", "web-07"]
    assert machines(novel=True) == (novel, 0)
    assert machines(novel=True, most=3) == (novel[:3], 1)
    assert machines(most=6) == ([*novel, "web-00", "web-01"], 34)
    assert machines(series="web-1*/c?u,web-2?/cpu", most=3) == (["web-27", "web-17", "web-10"], 17)
    assert machines(series="nobody/*") == ([], 0)
    http = TestClient(create_app(view), base_url="http://localhost")
    for wrong in ({"series": "no-slash"}, {"most": "0"}, {"novel": "perhaps"}):
        assert http.get("/scores/metrics", params=wrong).status_code == 422


def test_the_settings_choose_and_bound_what_is_scraped(view: Stored) -> None:
    view.say([said(f"{kind}-{n}", "cpu", 0) for kind in ("web", "db") for n in range(5)])
    chosen = view.settings.scores.model_copy(update={"series": "db-*/cpu", "most": 3})
    view.settings = view.settings.model_copy(update={"scores": chosen})
    told = scrape(view, most=100)
    assert {dict(labels)["machine"] for labels in of_series(told)} == {"db-0", "db-1", "db-2"}
    assert whole(told)["newnormal_scores_left_out"] == 2


def test_a_message_that_is_no_belief_hides_no_other_series(view: Stored) -> None:
    view.say([said("web-1", "cpu", 0), said("web-2", "cpu", 0)])
    view.say([said("web-3", "cpu", 0) | {"typical": "high"}])
    assert {dict(labels)["machine"] for labels in of_series(scrape(view))} == {"web-1", "web-2"}


@pytest.mark.slow
def test_ten_thousand_series_are_scraped_within_three_seconds(view: Stored) -> None:
    rng = np.random.default_rng(1)
    band = {"typical": 1.25, "lower": 0.125, "upper": 7.0625}
    beliefs = [
        said(f"web-{n // 10}", f"m{n % 10}{{path=/}}", 0, score=float(rng.uniform()), **band) for n in range(10_000)
    ]
    view.say(beliefs)
    view.judge([], 1)
    http = TestClient(create_app(view), base_url="http://localhost")
    took = []
    for _ in range(5):
        began = time.monotonic()
        answer = http.get("/scores/metrics")
        took.append(time.monotonic() - began)
    assert answer.text.count("\nnewnormal_score{") == 10_000
    assert min(took) < 3, took
