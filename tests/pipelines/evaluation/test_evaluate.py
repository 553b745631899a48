"""`newnormal evaluate`: what was found, what was not, and what was a false alarm."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from datagen.kafka_writer import KafkaWriter
from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from pipelines.cli.main import app
from pipelines.contracts.records import Novelty
from pipelines.evaluation.judge import DAY, judge
from pipelines.evaluation.truth import Span

STEP, T0 = 300_000, 1_767_571_200_000


def verdicts(scores: dict[str, list[float]], kinds: dict[str, dict[int, str]] | None = None) -> pl.DataFrame:
    """Verdicts of machine ``vm``: a list of scores a metric; from 50 on an anomaly, unless a kind is said."""
    rows = [
        {
            "entity": "vm",
            "metric": metric,
            "window_start": T0 + i * STEP,
            "window_end": T0 + (i + 1) * STEP,
            "actual": float(i % 7),
            "record_score": score,
            "kind": (kinds or {}).get(metric, {}).get(i, "anomaly" if score >= 50 else "normal"),
        }
        for metric, own in scores.items()
        for i, score in enumerate(own)
    ]
    return pl.DataFrame(rows)


def span(first: int, last: int, *metrics: str, change: bool = False, wrong: bool = True) -> Span:
    return Span("vm", metrics or ("_machine",), T0 + first * STEP + 1, T0 + (last + 1) * STEP - 1, change, wrong)


def quiet(**loud: float) -> list[float]:
    scores = [1.0] * 288
    for name, score in loud.items():
        scores[int(name[1:])] = score
    return scores


def test_what_is_found_is_found_with_its_delay_and_the_rest_is_a_false_alarm() -> None:
    judged = judge(verdicts({"cpu": quiet(w102=80.0, w200=60.0)}), [span(100, 105), span(150, 155)])
    figures = judged.news.figures()
    assert judged.news.delays == [3, None]
    assert figures["found"] == 0.5
    assert figures["alerts_explained"] == 0.5
    assert figures["false_alarms_per_series_day"] == pytest.approx(1.0)
    assert judged.levels[70].figures()["false_alarms_per_series_day"] == 0.0


def test_another_metric_does_not_find_it_but_the_joined_verdict_does() -> None:
    other = judge(verdicts({"cpu": quiet(), "disk": quiet(w100=90.0)}), [span(100, 105, "cpu")])
    assert other.news.delays == [None]
    assert other.news.false_alarms == 0, "the machine had an incident: the alert is explained"
    assert judge(verdicts({"cpu": quiet(), "_machine": quiet(w100=90.0)}), [span(100, 105, "cpu")]).news.delays == [1]


def test_neighbouring_windows_are_one_alert() -> None:
    assert judge(verdicts({"cpu": quiet(w10=90.0, w11=90.0, w15=90.0, w99=90.0)}), [span(10, 11)]).news.alerts == 2


def test_perfect_scores_rank_perfectly_and_constant_ones_do_not() -> None:
    perfect = judge(verdicts({"cpu": quiet(w100=90.0, w101=90.0)}), [span(100, 101)])
    assert perfect.ranking["vm cpu"]["auc_pr"] == 1.0
    assert judge(verdicts({"cpu": quiet()}), [span(100, 101)]).ranking["vm cpu"]["auc_pr"] < 0.05


def test_an_alert_that_operators_called_false_is_refuted_and_false() -> None:
    level = judge(verdicts({"cpu": quiet(w10=90.0)}), [span(10, 10, wrong=False), span(200, 201)]).news
    assert (level.refuted, level.false_alarms) == (1, 1)


def test_changes_called_anomalies_are_told() -> None:
    kinds = {"cpu": {100: "state_change"}}
    spans = [span(100, 110, change=True), span(200, 202)]
    both = judge(verdicts({"cpu": quiet(w100=80.0, w200=80.0)}, kinds), spans)
    assert both.figures()["called"] == {"anomalies called anomalies": 1.0, "changes called changes": 1.0}
    wrong = judge(verdicts({"cpu": quiet(w100=80.0, w200=80.0)}), spans)
    assert wrong.figures()["called"] == {"anomalies called anomalies": 1.0, "changes called changes": 0.0}


def _series(folder: Path) -> Path:
    value = np.random.default_rng(0).normal(50.0, 5.0, 600)
    label = np.zeros(600)
    value[500:503] += 100.0
    label[500:503] = 1
    file = folder / "web-1.csv"
    pl.DataFrame({"timestamp": [T0 + i * STEP for i in range(600)], "value": value, "label": label}).write_csv(file)
    return file


def test_a_labelled_file_is_scored_judged_and_plotted(tmp_path: Path) -> None:
    file, out = _series(tmp_path), tmp_path / "out"
    result = CliRunner().invoke(app, ["evaluate", str(file), "--out", str(out)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    figures = json.loads((out / "evaluation.json").read_text())
    assert figures["spans"] == 1
    assert figures["news"]["found"] == 1.0
    assert figures["ranking"]["series"]["web-1 value"]["auc_pr"] > 0.5
    assert {path.name for path in out.glob("*.png")} == {"threshold.png", "delays.png", "series-web-1-value.png"}

    scores = tmp_path / "web-1-scores.csv"
    CliRunner().invoke(app, ["score", str(file), "--out", str(scores)], catch_exceptions=False)
    again = ["evaluate", str(scores), "--labels", str(file), "--out", str(tmp_path / "again"), "--plots", "0"]
    CliRunner().invoke(app, again, catch_exceptions=False)
    assert json.loads((tmp_path / "again" / "evaluation.json").read_text())["news"] == figures["news"]


def test_a_file_without_labels_is_refused_with_what_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    pl.DataFrame({"timestamp": [T0, T0 + STEP], "value": [1.0, 2.0]}).write_csv(file)
    result = CliRunner().invoke(app, ["evaluate", str(file), "--out", str(tmp_path / "out")])
    assert "TRUTH_ABSENT" in str(result.exception)


def test_a_label_on_a_series_without_any_stored_verdict_is_a_miss_and_is_plotted_so(tmp_path: Path) -> None:
    """By default quiet series are not stored: so is every missed anomaly on a quiet metric of a known machine."""
    scores = verdicts({"cpu": quiet(w50=90.0)}).with_columns(
        time=pl.from_epoch("window_start", "ms").dt.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        **{name: pl.lit(1.0) for name in ("typical", "lower", "upper")},
    )
    scores.write_csv(tmp_path / "scores.csv")
    label = {"host.name": "vm", "metric": "mem", "event.start": T0 + 90 * STEP, "verdict": "true"}
    others = [label | {"event.end": T0 + 99 * STEP}, label | {"metric": "cpu", "event.start": T0 + 50 * STEP}]
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, [label, *others])))
    command = ["evaluate", str(tmp_path / "scores.csv"), "--labels", str(tmp_path / "labels.jsonl"), "--out"]
    result = CliRunner().invoke(app, [*command, str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "out" / "evaluation.json").read_text())["news"]["found"] == pytest.approx(1 / 3)
    assert (tmp_path / "out" / "series-vm-mem.png").exists()


@pytest.mark.parametrize(("first", "found"), [(-1, [1]), (0, [None]), (1, [None])])
def test_a_window_that_ends_where_a_label_begins_does_not_overlap_it(first: int, found: list[int | None]) -> None:
    label = Span("vm", ("cpu",), T0 + 11 * STEP + first, T0 + 20 * STEP)
    level = judge(verdicts({"cpu": quiet(w10=90.0)}), [label]).news
    assert (level.delays, level.false_alarms) == (found, found.count(None))


@pytest.mark.parametrize(("between", "alerts"), [(11, 1), (12, 2)])
def test_twelve_windows_without_news_end_an_alert_and_eleven_do_not(between: int, alerts: int) -> None:
    scores = quiet(w20=90.0, **{f"w{21 + between}": 90.0})
    assert judge(verdicts({"cpu": scores}), [span(100, 101)]).news.alerts == alerts


@pytest.mark.servers
def test_topics_are_judged_by_the_ground_truth_and_by_operators(endpoints: Endpoints, tmp_path: Path) -> None:
    space = "evaluatetest."
    ensure_topics(endpoints.bootstrap, {f"{space}{name}": {} for name in ("novelties", "groundtruth", "labels")}, 1, 1)
    loud = verdicts({"cpu": quiet(w102=80.0, w200=60.0)})
    lines = [
        Novelty(**{**row, "probability": 0.1, "revision": revision}, ingested=None).to_json().decode()
        for row in loud.iter_rows(named=True)
        for revision in (0, *([1] if row["record_score"] == 80.0 else []))
    ]
    truth = {
        "id": "1", "incident": "1", "type": "spike", "class": "anomaly", "entity": "vm",
        "metrics": ["cpu"], "start": T0 + 100 * STEP, "end": T0 + 105 * STEP,
    }  # fmt: skip
    label = {"host.name": "vm", "metric": "cpu", "event.start": T0 + 200 * STEP, "verdict": "false_alarm"}
    with KafkaWriter(endpoints.bootstrap) as writer:
        writer.write(f"{space}novelties", lines, ["vm"] * len(lines))
        writer.write(f"{space}groundtruth", [json.dumps(truth)], ["vm"])
        writer.write(f"{space}labels", [json.dumps(label), "rubbish"], ["vm", "vm"])
    out = tmp_path / "out"
    command = ["evaluate", "--kafka", endpoints.bootstrap, "--namespace", space, "--out", str(out)]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    news = json.loads((out / "evaluation.json").read_text())["news"]
    assert (news["found"], news["median_delay_windows"], news["alerts"]) == (1.0, 3.0, 2)
    assert news["alerts_called_false_by_operators"] == 1
    assert news["false_alarms_per_series_day"] * (287 * STEP / DAY + STEP / DAY) == pytest.approx(1.0)
