"""The last words of `newnormal run --until now`."""

from __future__ import annotations

import pytest

from engine.runtime.shard import Stats
from engine.spark.query import BatchReport
from engine.spec.duration import NEVER
from pipelines.cli.run import show_end
from pipelines.contracts.settings import Settings
from pipelines.runtime.driver import Driver

AT = 1_795_220_820_000


def ended(settings: Settings, *jobs: str, dead: int = 0) -> Driver:
    """A driver of jobs that have each read 2,000 records and written 40, in two micro-batches on two shards."""
    kafka = settings.kafka.model_copy(update={"bootstrap": "127.0.0.1:1"})
    driver = Driver(settings.model_copy(update={"kafka": kafka, "namespace": "site."}), jobs)
    for name in jobs:
        for batch, mark in enumerate((NEVER, AT)):
            shards = Stats(700, 15, 1, dead, AT + 5_000, 0), Stats(300, 5, 0, 0, mark, 0)
            driver.status.batch(BatchReport(name, batch, shards, 0.1))
    return driver


def said(driver: Driver, capsys: pytest.CaptureFixture[str], **given: bool) -> list[list[str]]:
    """The words of each line that is printed."""
    show_end(driver, **({"servers_stopped": False} | given))
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_each_job_says_what_it_read_and_wrote_and_until_which_event_time(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(ended(settings, "normalizer", "extractor", dead=3), capsys)
    assert lines[1] == ["job", "read", "written", "late", "refused", "event", "time"]
    assert lines[2] == ["normalizer", "2,000", "40", "2", "6", "2026-11-21T00:27:00Z"]
    assert lines[3] == ["extractor", "2,000", "40", "2", "6", "2026-11-21T00:27:00Z"]


def test_large_figures_and_long_names_stay_whole_in_the_80_columns_of_a_log_file(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = ended(settings, "log_normalizer")
    driver.status.batch(BatchReport("log_normalizer", 2, (Stats(123_456_789_012, 9_876_543_210, 1, 0, AT, 0),), 0.1))
    lines = said(driver, capsys)
    assert lines[2] == ["log_normalizer", "123,456,791,012", "9,876,543,250", "3", "0", "2026-11-21T00:27:00Z"]


def test_it_says_where_results_are_that_no_job_of_the_run_reads(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    text = [" ".join(line) for line in said(ended(settings, "normalizer", "extractor"), capsys)]
    assert "Results: `newnormal tail features`" in text
    assert not any("telemetry" in line or "Elasticsearch" in line or "deadletter" in line for line in text)
    text = [" ".join(line) for line in said(ended(settings, "extractor", "detector", "sink", dead=1), capsys)]
    assert not any("newnormal tail" in line for line in text)
    assert any("newnormal incidents list" in line and "site.novelties" in line for line in text)
    assert any("newnormal deadletter list" in line for line in text)


def test_it_says_that_the_servers_have_stopped_if_they_have(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = ended(settings, "sink")
    assert not any("services" in line for line in said(driver, capsys))
    assert any("services" in line for line in said(driver, capsys, servers_stopped=True))


def test_a_run_without_records_shows_noughts_and_no_time(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka = settings.kafka.model_copy(update={"bootstrap": "127.0.0.1:1"})
    lines = said(Driver(settings.model_copy(update={"kafka": kafka}), ["extractor"]), capsys)
    assert lines[2] == ["extractor", "0", "0", "0", "0", "–"]
