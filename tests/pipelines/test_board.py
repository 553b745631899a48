"""What the jobs report is what Prometheus scrapes."""

from prometheus_client.parser import text_string_to_metric_families

from dashboards.console.metrics import metrics_text
from engine.operator.shard import Stats
from engine.spark.query import BatchReport
from pipelines.board import Board


def test_keys_windows_timers_and_the_busiest_shard_are_metrics() -> None:
    board = Board(["extractor", "sink"], live_from=0, delay_ms=0)
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


def test_what_a_job_does_not_tell_is_no_metric() -> None:
    text = metrics_text(lambda: Board(["sink"], 0, 0).status({}, []).to_dict()).decode()
    assert 'newnormal_job_records_in_total{job="sink"} 0.0' in text
    assert 'newnormal_job_state_keys{job="sink"}' not in text
