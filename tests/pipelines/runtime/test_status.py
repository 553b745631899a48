"""What the jobs report is what Prometheus scrapes."""

import time

from prometheus_client.parser import text_string_to_metric_families

from dashboards.console.metrics import metrics_text
from engine.runtime.shard import Stats
from engine.spark.query import BatchReport
from pipelines.contracts.records import Novelty
from pipelines.jobs.sink.document import IndexedNews, SinkOutcome
from pipelines.jobs.sink.job import SinkReport
from pipelines.runtime.status import StatusCollector


def test_keys_windows_timers_and_the_busiest_shard_are_metrics() -> None:
    board = StatusCollector(["extractor", "sink"], live_from=0, delay_ms=0)
    counts = {"records_out": 1, "late": 2, "dead": 3, "watermark": 5000, "state_bytes": 100}
    stats = [
        Stats(records_in=30, **counts, shard=0, keys=7, open=3, timers=2),
        Stats(records_in=10, **counts, shard=1, keys=5, open=4, timers=1),
    ]
    board.batch(BatchReport("extractor", 1, tuple(stats), 0.5))
    text = metrics_text(lambda: board.status({"extractor": 12}, []).to_dict()).decode()
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("job") == "extractor"
    }
    assert samples["newnormal_job_state_keys"] == 12
    assert samples["newnormal_job_windows_open"] == 4
    assert samples["newnormal_job_timers"] == 3
    assert samples["newnormal_job_busiest_shard_ratio"] == 0.75
    assert samples["newnormal_job_late_total"] == 4
    assert samples["newnormal_job_lag_messages"] == 12


def test_rates_ages_and_lag_in_event_time_are_metrics_with_a_unit_and_a_help_text() -> None:
    board = StatusCollector(["extractor", "sink"], live_from=0, delay_ms=0)
    begun = time.time()
    watermark = int(begun * 1000) - 90_000
    for batch in range(2):
        stats = Stats(records_in=300, records_out=50, late=0, dead=0, watermark=watermark, state_bytes=1, shard=0)
        board.batch(BatchReport("extractor", batch, (stats,), 0.25))
    completed = time.time()
    asked = time.time()
    text = metrics_text(lambda: board.status({}, []).to_dict()).decode()
    answered = time.time()
    found = {family.name: family for family in text_string_to_metric_families(text)}
    values = {name: {s.labels.get("job"): s.value for s in family.samples} for name, family in found.items()}
    assert values["newnormal_job_records_in_per_second"]["extractor"] == 600 / 10
    assert values["newnormal_job_records_out_per_second"]["extractor"] == 100 / 10
    assert values["newnormal_job_batch_seconds"]["extractor"] == 0.25
    lag = values["newnormal_job_event_time_lag_seconds"]["extractor"]
    assert asked - watermark / 1000 <= lag <= answered - watermark / 1000
    age = values["newnormal_job_checkpoint_age_seconds"]["extractor"]
    assert asked - completed <= age <= answered - begun + 0.001, "a time in milliseconds, rounded down"
    for name in ("event_time_lag_seconds", "checkpoint_age_seconds"):
        assert "sink" not in values[f"newnormal_job_{name}"], "it has completed no micro-batch yet"
    assert all(family.documentation for name, family in found.items() if name.startswith("newnormal_job_"))


def test_what_a_job_does_not_tell_is_no_metric() -> None:
    text = metrics_text(lambda: StatusCollector(["sink"], 0, 0).status({}, []).to_dict()).decode()
    assert 'newnormal_job_records_in_total{job="sink"} 0.0' in text
    assert 'newnormal_job_state_keys{job="sink"}' not in text


def test_the_latency_is_that_of_the_last_minutes_from_the_end_of_the_window_on() -> None:
    seconds = [0.0]
    board = StatusCollector(["sink"], live_from=1_000, delay_ms=5_000, clock=lambda: seconds[0])

    def store(ends: tuple[int, ...], searchable: int) -> None:
        board.sink(SinkReport(len(ends), SinkOutcome(len(ends), times=ends, searchable_at_ms=searchable), 0.1))

    store((0, 999), 90_000)  # history: not counted
    store((10_000, 20_000, 30_000), 40_000)
    assert board.latency_ms() == {"p50": 20_000.0, "p99": 29_800.0}
    seconds[0] = 301.0
    store((60_000,), 73_200)
    status = board.status({}, []).to_dict()
    assert (status["latency_ms"], status["waits_ms"]) == (13_200.0, 5_000), "the wait is a part of it, and told beside"
    assert board.latency_ms()["p50"] == 16_600.0, "the summary of a run has all that it stored"
    text = metrics_text(lambda: status).decode()
    assert "newnormal_latency_seconds 13.2" in text and "newnormal_latency_waits_seconds 5.0" in text
    seconds[0] = 700.0
    assert board.status({}, []).latency_ms is None, "what was stored long ago says nothing of now"


def samples(board: StatusCollector, name: str) -> dict[str, float]:
    """Values of a metric by kind of news."""
    families = text_string_to_metric_families(metrics_text(lambda: board.status({}, ()).to_dict()).decode())
    return {s.labels["kind"]: s.value for family in families for s in family.samples if s.name == name}


def stored(*news: tuple[str, str, int], revision: int = 0) -> SinkReport:
    """A micro-batch of the sink in which verdicts on series of one machine were stored."""
    told = []
    for metric, kind, at in news:
        place = {"entity": "db-1", "metric": metric, "window_start": at - 10, "window_end": at}
        verdict = Novelty(**place, kind=kind, record_score=90.0, probability=0.1, revision=revision)
        told += [each] if (each := IndexedNews.of(verdict)) else []
    return SinkReport(len(news), SinkOutcome(indexed=len(news), news=tuple(told)), 0.1)


def test_news_is_counted_by_kind_from_nought_and_what_is_not_over_is_a_gauge() -> None:
    board = StatusCollector(["sink"], 0, 0)
    assert samples(board, "newnormal_novelties_total")["anomaly"] == 0
    assert "normal" not in samples(board, "newnormal_novelties_total")
    board.sink(
        stored(("cpu", "anomaly", 100), ("mem", "absence", 100), ("disk", "anomaly", 100), ("net", "normal", 100))
    )
    board.sink(stored(("cpu", "anomaly", 110), ("disk", "recovered", 120)))
    total, opened = samples(board, "newnormal_novelties_total"), samples(board, "newnormal_novelties_open")
    assert (total["anomaly"], total["absence"], total["recovered"], total["new_normal"]) == (3, 1, 1, 0)
    assert opened == {"anomaly": 1, "absence": 1, "state_change": 0, "exhaustion": 0, "outlier": 0}


def test_a_verdict_that_is_taken_back_is_not_open_and_an_older_one_opens_nothing_again() -> None:
    board = StatusCollector(["sink"], 0, 0)
    board.sink(stored(("cpu", "anomaly", 100), ("mem", "anomaly", 100)))
    board.sink(stored(("mem", "recovered", 200)))
    board.sink(stored(("cpu", "normal", 100), revision=1))
    board.sink(stored(("mem", "anomaly", 90), revision=1))
    assert samples(board, "newnormal_novelties_open")["anomaly"] == 0


def test_what_was_open_before_the_start_is_open_and_not_counted_again() -> None:
    board = StatusCollector(["sink"], 0, 0)
    board.seed([{"host.name": "db-1", "metric": "cpu", "kind": "absence", "@timestamp": 100}])
    assert samples(board, "newnormal_novelties_open")["absence"] == 1
    assert samples(board, "newnormal_novelties_total")["absence"] == 0
    board.sink(stored(("cpu", "recovered", 200)))
    assert samples(board, "newnormal_novelties_open")["absence"] == 0
