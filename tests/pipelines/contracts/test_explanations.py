"""What the detector says in words: a table of cases with the message of each, and what the models must know for it."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from pipelines.contracts.explanations import explain, explained
from pipelines.contracts.settings import load
from pipelines.jobs.detectors.metrics.detection import Detection

STEP, WINDOW_MS = 300_000, 10_000
TABLE = yaml.load((Path(__file__).parent / "explanations.yaml").read_text(), yaml.CSafeLoader)


def instant(text: str | int) -> int:
    """Epoch milliseconds of a time of day of 2026-07-23, or of a date and time; UTC."""
    if isinstance(text, int):
        return text
    when = datetime.fromisoformat(text if " " in text else f"2026-07-23 {text}")
    return round(when.replace(tzinfo=UTC).timestamp() * 1000)


def document(novelty: dict[str, Any]) -> dict[str, Any]:
    """The document of a case."""
    whole = TABLE["default"] | novelty
    start = instant(whole.pop("at"))
    for name in {"since", "incident.decided"} & set(whole):
        whole[name] = instant(whole[name])
    return whole | {"window_start": start, "@timestamp": start + whole.pop("window", WINDOW_MS)}


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_the_message_is(case: dict[str, Any]) -> None:
    assert " ".join(explain(document(case["novelty"]), case.get("zone", "UTC"))["sentences"]) == case["message"]


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_no_message_has_jargon_or_numbers_of_machines(case: dict[str, Any]) -> None:
    words = explain(document(case["novelty"]))
    for strange in ("nats", "e+", "e-0", "None", "nan", "probability", "wrong", "  "):
        assert strange not in " ".join(words["sentences"])


def test_what_is_told_of_fullness_has_a_headline_of_its_own_and_no_figures_of_unusual_values() -> None:
    full = {"metric": "disk.used_percent~full", "kind": "exhaustion", "at": "10:00:00", "record_score": 75.0}
    soon = document(
        full | {"probability": 0.025, "full_median": instant("15:00:00"), "full_latest": instant("19:00:00")}
    )
    found = explain(soon)
    assert found["headline"] == "Full soon"
    assert found["details"] == ["Score 75 of 100. It is full before 15:00:00 UTC as likely as after."]
    assert explain(soon | {"full_latest": soon["@timestamp"]})["headline"] == "Full"
    assert explain(soon | {"kind": "recovered"})["headline"] == "No longer full soon"


def test_earlier_days_are_named_only_when_two_similar_ones_are_known() -> None:
    """`expected.hour` is absent until then; see the field in docs/records.md."""
    experts = {"level": 0.06, "hour": 0.89, "log_level": 0.05}
    told = document({"at": "10:00:00", "actual": 5.0, "experts": experts, "expected": {"level": 3.0, "hour": None}})
    new = " ".join(explain(told)["details"])
    assert "days" not in new
    assert "follows mainly its recent level (95%)" in new
    known = " ".join(explain(told | {"expected": {"level": 3.0, "hour": 4.0}})["details"])
    assert "follows mainly the same hour on earlier days (89%). At this hour it was about 4" in known


def test_the_page_of_the_docs_quotes_messages_of_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs/reading-an-alert.md").read_text(encoding="utf-8")
    quoted = [line.removeprefix("> ") for line in page.splitlines() if line.startswith("> ")]
    assert len(quoted) >= 5
    assert set(quoted) <= {case["message"] for case in TABLE["cases"]}


def frame(series: dict[str, np.ndarray], step: int = STEP, start: int = 0) -> pl.DataFrame:
    """Windows of one machine, one value each of some metrics."""
    rows = [
        ("vm", metric, start + i * step, start + (i + 1) * step, value)
        for metric, values in series.items()
        for i, value in enumerate(values.tolist())
    ]
    return pl.DataFrame(rows, ["entity", "metric", "window_start", "window_end", "value"], orient="row")


def verdicts(windows: pl.DataFrame) -> pl.DataFrame:
    """What the detector says, in words."""
    detection = Detection(load().detector)
    return explained(detection.process(windows, detection.new_state())[0])


def at(said: pl.DataFrame, window: int, metric: str, step: int = STEP, start: int = 0) -> dict[str, Any]:
    """The verdict on one window of one metric."""
    found = said.filter(pl.col("window_start") == start + window * step, pl.col("metric") == metric)
    return found.row(0, named=True)


def context(row: dict[str, Any]) -> dict[str, float]:
    """The context of a verdict, by name."""
    return {entry["key"]: entry["value"] for entry in row["context"]}


def test_news_alone_has_words_and_they_hold_for_the_value() -> None:
    random = np.random.default_rng(0)
    cpu, disk = random.normal(50, 5, (2, 600))
    cpu[580] += 60
    said = verdicts(frame({"cpu": cpu, "disk": disk}))
    for name in ("message", "details"):
        assert (said[name].is_null() == said["kind"].is_in(["normal", "learning"])).all()
    row = at(said, 580, "cpu")
    lower, upper = (f"{row[name]:.0f}" for name in ("lower", "upper"))
    assert row["message"] == (
        f"cpu of vm is {cpu[580]:.0f}; usual: {lower} to {upper}. Far outside, sudden, the highest ever seen. "
        "Since 1970-01-03 00:20:00 UTC."
    ).replace("1970-01-03 ", "")
    assert "nats" in row["details"]
    joined = at(said, 580, "_machine")
    times = cpu[580] / row["typical"]
    assert joined["message"] == f"vm is unusual in cpu ({times:.2f} ×). Since 00:20:00 UTC."
    assert context(row)["values"] == 580
    assert context(row)["highest"] == cpu[:580].max()
    assert context(row)["lowest"] == cpu[:580].min()


def test_what_is_usual_at_an_hour_is_said_only_after_two_such_days() -> None:
    monday, step = 4 * 86_400_000, 900_000
    random, hours = np.random.default_rng(0), np.arange(7 * 96) % 96 / 4
    load_ = 50 + 30 * np.sin(hours / 24 * 2 * np.pi) + random.normal(0, 1, 7 * 96)
    days = {"tuesday": 1, "friday": 4, "saturday": 5}
    noons = {name: day * 96 + 48 for name, day in days.items()}
    peaks = {name: np.where(np.arange(len(hours)) == noon, load_ + 200, load_) for name, noon in noons.items()}
    said = verdicts(frame(peaks, step, monday))
    rows = {name: at(said, noon, name, step, monday) for name, noon in noons.items()}
    assert all(row["kind"] == "anomaly" for row in rows.values())
    known = {name: row["expected"]["hour"] is not None for name, row in rows.items()}
    assert known == {"tuesday": False, "friday": True, "saturday": False}
    for name, row in rows.items():
        assert ("At this hour" in row["details"]) == known[name]
        assert ("at this time" in row["message"]) == (known[name] and row["experts"]["hour"] >= 0.5)
    assert "at this time" in rows["friday"]["message"]


def test_a_joined_anomaly_began_when_the_metric_that_carries_it_did() -> None:
    random = np.random.default_rng(1)
    values = random.normal(50, 5, (3, 520))
    values[0, 480] += 80
    values[1, 500] += 200
    said = verdicts(frame(dict(zip("abc", values, strict=True))))
    assert at(said, 480, "_machine")["since"] == 480 * STEP
    joined = at(said, 500, "_machine")
    assert joined["kind"] == "anomaly"
    assert joined["since"] == 500 * STEP
    assert joined["message"].startswith("vm is unusual in b (")


def test_a_stuck_value_is_told_since_when_it_has_been_the_same() -> None:
    values = np.random.default_rng(2).normal(50, 5, 400)
    values[301:] = values[300]
    said = verdicts(frame({"temp": values}))
    stuck = said.filter(pl.col("kind") == "anomaly", pl.col("window_start") > 300 * STEP).row(0, named=True)
    assert stuck["since"] == 300 * STEP
    lasting = (stuck["window_end"] - 300 * STEP) // 60_000
    hours, minutes = divmod(lasting, 60)
    assert f"exactly the same for {f'{hours} hour and ' if hours else ''}{minutes} minutes" in stuck["message"]


def test_a_new_normal_says_what_it_was_before_and_a_known_one_that_it_is_back() -> None:
    random = np.random.default_rng(3)
    values = random.normal(100, 2, 700)
    values[300:500] += 80
    said = verdicts(frame({"load": values}))
    first, second = said.filter(pl.col("kind") == "new_normal").rows(named=True)
    changed = said.filter(pl.col("kind") == "state_change").row(0, named=True)
    for row in (changed, first):
        assert context(row)["before"] == pytest.approx(100, abs=3)
        assert context(row)["level"] == pytest.approx(180, abs=3)
    assert first["since"] == 300 * STEP
    assert re.match(r"load of vm has a new normal: about (179|18[01])[. ]", first["message"])
    assert context(second)["known"] == 1
    assert "load of vm is back at a level that it has had before: about " in second["message"]


def test_an_end_of_an_absence_is_told_as_one() -> None:
    random = np.random.default_rng(4)
    values = random.normal(50, 2, (2, 200))
    whole = frame({"a": values[0], "b": values[1]})
    gone = (pl.col("metric") == "a") & pl.col("window_start").is_between(100 * STEP, 139 * STEP)
    said = verdicts(whole.filter(~gone))
    assert said.filter(pl.col("kind") == "absence")["message"].to_list() == [
        "a of vm has sent nothing since 08:20:00 UTC."
    ]
    back = at(said, 140, "a")
    assert back["message"].startswith("a of vm sends again after 3 h 20 min: ")


def test_news_of_a_replica_name_its_workload_and_other_verdicts_do_not() -> None:
    names = ["shop/cart-7d4b9c6f5-x2x7p", "shop/cart-7d4b9c6f5-x2x7p", "web-1"]
    verdicts = pl.DataFrame({"entity": names, "metric": "cpu", "kind": ["anomaly", "normal", "anomaly"]})
    found = explained(verdicts)
    assert found["workload"].to_list() == ["shop/cart", None, None]
    assert found["message"][0].endswith(" It is a replica of shop/cart.")
    assert "replica" not in found["message"][2]
