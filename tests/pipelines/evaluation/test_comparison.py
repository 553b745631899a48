"""The comparison of two versions, on verdicts written by hand: what is new, gone or moved, and who is right."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import polars as pl
import pytest

from pipelines.evaluation.comparison.agreement import agreement
from pipelines.evaluation.comparison.alarms import counts
from pipelines.evaluation.comparison.comparison import Comparison, JudgedBy, compare
from pipelines.evaluation.comparison.page import page
from pipelines.evaluation.comparison.verdicts import SCHEMA, final
from pipelines.evaluation.truth import Span

T0, STEP = 1_800_000_000_000, 10_000

Alarms = dict[int, str | tuple[str, float]]
"""For windows by number: the kind of the verdict, or the kind and its score."""


def series(
    alarms: Alarms,
    entity: str = "a",
    metric: str = "cpu",
    *,
    windows: range = range(100),
    open_: range = range(0),
    step: int = STEP,
) -> list[dict[str, Any]]:
    """The verdicts on one series: normal, but for some windows; an incident is open on the windows of ``open_``."""
    rows = []
    for at in windows:
        given = alarms.get(at, ("normal", 10.0))
        kind, score = given if isinstance(given, tuple) else (given, 80.0)
        row = {"entity": entity, "metric": metric, "window_start": T0 + at * step, "window_end": T0 + (at + 1) * step}
        row |= {"kind": kind, "record_score": score, "actual": 5.0, "typical": 4.0, "lower": 3.0, "upper": 4.5}
        row |= {"revision": 0, "incident_state": "open" if at in open_ else None}
        rows.append(row | ({"message": f"{metric} is odd.", "details": None} if kind == "anomaly" else {}))
    return rows


def judged(name: str, *parts: list[dict[str, Any]], threshold: float = 50.0, **settings: Any) -> JudgedBy:
    rows = [row for part in parts for row in part]
    return JudgedBy(name, pl.DataFrame(rows, SCHEMA), threshold, settings)


def compared(first: list[dict[str, Any]], second: list[dict[str, Any]], spans: list[Span] = []) -> Comparison:  # noqa: B006
    return compare(judged("v1", first), judged("v2", second), spans)


@pytest.mark.parametrize(
    ("one", "two", "outcome"),
    [
        pytest.param({40: "anomaly"}, {40: "anomaly"}, "same", id="equal"),
        pytest.param({40: "anomaly"}, {43: "anomaly"}, "moved", id="three windows later"),
        pytest.param({40: "anomaly"}, {40: "anomaly", 41: "anomaly"}, "moved", id="one window longer"),
        pytest.param({40: "anomaly"}, {52: "anomaly"}, "moved", id="eleven quiet windows between"),
        pytest.param({40: "anomaly"}, {40: "state_change"}, "changed", id="another kind"),
        pytest.param({40: "anomaly"}, {}, "gone", id="only in the first"),
        pytest.param({}, {40: "anomaly"}, "new", id="only in the second"),
        pytest.param({40: "anomaly"}, {40: "recovered"}, "gone", id="a recovery is no alarm"),
    ],
)
def test_an_alarm_of_both_versions_within_a_dozen_windows_is_one_alarm(one: Alarms, two: Alarms, outcome: str) -> None:
    found = compared(series(one), series(two))
    assert found.alarms["outcome"].to_list() == [outcome]


def test_alarms_with_a_dozen_quiet_windows_between_are_two() -> None:
    found = compared(series({40: "anomaly"}), series({53: "anomaly"}))
    assert found.alarms["outcome"].to_list() == ["gone", "new"]


def test_an_alarm_within_the_open_incident_of_the_other_version_is_the_same_however_late() -> None:
    found = compared(series({20: "anomaly"}, open_=range(20, 70)), series({60: "anomaly"}))
    assert found.alarms["outcome"].to_list() == ["moved"]
    found = compared(series({20: "anomaly"}, open_=range(20, 40)), series({60: "anomaly"}))
    assert found.alarms["outcome"].to_list() == ["gone", "new"]


def test_alarms_of_other_metrics_and_machines_at_the_same_time_are_others() -> None:
    first = [*series({40: "anomaly"}), *series({}, metric="mem"), *series({}, "b")]
    second = [*series({}), *series({40: "anomaly"}, metric="mem"), *series({40: "anomaly"}, "b")]
    found = compared(first, second)
    assert found.outcomes() == {"new": 2, "gone": 1, "changed": 0, "moved": 0, "same": 0}
    by = {
        row["entity"]: (row["first"], row["second"], row["new"], row["gone"])
        for row in counts(found.alarms, "entity").to_dicts()
    }
    assert by == {"a": (1, 1, 1, 1), "b": (0, 1, 1, 0)}


def test_an_alarm_has_the_kind_that_was_decided_last() -> None:
    found = compared(series({40: "anomaly", 41: "state_change"}), series({40: "state_change", 41: "anomaly"}))
    assert found.alarms.select("kind0", "kind1", "outcome").row(0) == ("state_change", "state_change", "same")


def test_only_times_that_both_have_judged_are_compared_series_by_series() -> None:
    """The second version began at window 50 and is still behind with machine b: nothing of this is gone or new."""
    first = [
        *series({10: "anomaly", 60: "anomaly", 95: "anomaly"}),
        *series({90: "anomaly"}, "b"),
        *series({5: "anomaly"}, "c"),
    ]
    second = [*series({60: "anomaly"}, windows=range(50, 90)), *series({}, "b", windows=range(50, 80))]
    found = compared(first, second)
    assert found.alarms.select("entity", "outcome").rows() == [("a", "same")]
    assert (found.times.start, found.times.end) == (T0 + 50 * STEP, T0 + 90 * STEP)
    assert (found.times.series, found.times.alone, found.times.left_out) == (2, (1, 0), (230, 0))
    assert found.agreement.windows == 70


def test_a_time_given_by_the_user_bounds_what_is_compared() -> None:
    both = judged("v1", series({10: "anomaly", 60: "anomaly"})), judged("v2", series({}))
    found = compare(*both, (), T0 + 50 * STEP, T0 + 80 * STEP)
    assert (found.outcomes()["gone"], found.agreement.windows) == (1, 30)


def test_versions_without_a_common_time_are_not_compared_and_the_page_says_so() -> None:
    found = compared(series({10: "anomaly"}, windows=range(50)), series({70: "anomaly"}, windows=range(60, 90)))
    assert (found.alarms.height, found.times.start, found.agreement.alike) == (0, None, None)
    assert "no event time that both v1 and v2 have judged" in page(found, T0)


def test_a_version_that_writes_news_only_is_compared_on_the_time_of_its_news() -> None:
    alarms: Alarms = {20: "anomaly", 21: "anomaly", 80: "anomaly"}
    news = [row for row in series(alarms) if row["kind"] != "normal"]
    found = compared(series({5: "anomaly", 20: "anomaly", 21: "anomaly", 50: "anomaly", 95: "anomaly"}), news)
    assert found.times.sparse == (False, True)
    assert found.alarms["outcome"].to_list() == ["same", "gone", "new"]  # windows 5 and 95 lie outside


def around(alarms: Alarms, **more: Any) -> list[dict[str, Any]]:
    """What is stored of a series with `detector.emit = "context"`: the windows around its alarms."""
    stored = {at + by for at in alarms for by in range(-3, 3)}
    return [row for row in series(alarms, **more) if (row["window_start"] - T0) // STEP in stored]


def with_context(name: str, *parts: list[dict[str, Any]]) -> JudgedBy:
    return replace(judged(name, *parts), emit="context")


def test_a_window_that_a_version_has_not_stored_is_one_without_an_alarm() -> None:
    """The second stores windows 7 to 92 around its alarms at 10 and 90; at 50 and on machine b it was quiet."""
    first = judged("v1", series({50: "anomaly", 90: "anomaly"}), series({60: "anomaly"}, "b"))
    found = compare(first, with_context("v2", around({10: "anomaly", 90: "anomaly"})))
    assert found.alarms["entity"].to_list() == ["a", "a", "b", "a"]
    assert found.alarms["outcome"].to_list() == ["new", "gone", "gone", "same"]
    agreed = found.agreement
    assert (agreed.windows, agreed.alone) == (2 * 86, (0, 0))
    assert agreed.alike == pytest.approx(1 - 3 / (2 * 86))
    gone = next(each for each in found.differences if each.alarm["entity"] == "b")
    assert "v2 raised no alarm: it has stored no verdict on this time" in gone.reasons[1]
    assert "No verdicts on quiet windows are stored of v2, but" in page(found, T0)


def test_two_versions_that_both_store_context_only_are_measured_on_all_machines() -> None:
    """The first finds one of three, the second two; of the machine of the third neither has stored anything."""
    spans = [
        Span(entity, ("cpu",), T0 + at * STEP, T0 + (at + 4) * STEP) for entity, at in (("a", 20), ("b", 60), ("c", 50))
    ]
    one = with_context("v1", around({5: "anomaly", 20: "anomaly", 95: "anomaly"}))
    two = with_context("v2", around({5: "anomaly", 20: "anomaly", 95: "anomaly"}), around({61: "anomaly"}, entity="b"))
    found = compare(one, two, spans)
    assert found.accuracy is not None
    assert [each.recall for each in found.accuracy[:2]] == [pytest.approx(1 / 3), pytest.approx(2 / 3)]  # type: ignore[union-attr]
    assert found.outcomes() == {"new": 1, "gone": 0, "changed": 0, "moved": 0, "same": 3}


def test_a_version_that_stored_all_windows_is_compared_window_by_window_whatever_its_settings_say_now() -> None:
    both = (
        with_context("v1", series({50: "anomaly"})),
        with_context("v2", series({51: "anomaly"}, windows=range(40, 90))),
    )
    found = compare(*both)
    assert found.times.sparse == (False, False)
    assert found.agreement.windows == 50


def test_what_was_stored_before_the_setting_became_all_is_not_taken_for_all_windows() -> None:
    stored = around({10: "anomaly", 90: "anomaly"})
    found = compare(judged("v1", series({50: "anomaly"})), judged("v2", stored))  # v2 says: all
    assert found.times.sparse == (False, True)
    assert found.outcomes()["gone"] == 1


def test_machines_that_came_later_do_not_make_a_complete_version_look_incomplete() -> None:
    rows = [row for each in "abcd" for row in series({}, each)]
    rows += [row for each in "ef" for row in series({}, each, windows=range(70, 100))]
    found = compare(with_context("v1", rows), with_context("v2", rows))
    assert found.times.sparse == (False, False)


def test_windows_of_different_lengths_agree_on_nothing_however_few_are_stored() -> None:
    found = compare(judged("v1", series({50: "anomaly"})), with_context("v2", around({20: "anomaly"}, step=2 * STEP)))
    assert (found.agreement.windows, found.agreement.kappa) == (0, None)


def test_agreement_is_that_of_cohens_table() -> None:
    """20 windows yes and yes, 5 yes and no, 10 no and yes, 15 no and no: 0.7 alike, kappa (0.7 - 0.5) / 0.5 = 0.4."""
    one: Alarms = dict.fromkeys(range(25), "anomaly")
    two: Alarms = dict.fromkeys([*range(20), *range(25, 35)], "anomaly")
    frames = [pl.DataFrame(series(alarms, windows=range(50)), SCHEMA) for alarms in (one, two)]
    found = agreement(*frames)
    assert (found.windows, found.alike, found.same_kind) == (50, 0.7, 0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.kinds["anomaly", "normal"] == 5


def test_kappa_is_not_known_where_nobody_ever_raises_an_alarm() -> None:
    found = compared(series({}), series({}))
    assert (found.agreement.alike, found.agreement.kappa) == (1.0, None)


def test_both_versions_are_measured_against_the_same_labels() -> None:
    """The first finds one of two spans and is wrong once in 100 windows; the second finds both."""
    spans = [Span("a", ("cpu",), T0 + at * STEP, T0 + (at + 4) * STEP) for at in (20, 60)]
    spans.append(Span("a", ("cpu",), T0 + 40 * STEP, T0 + 41 * STEP, wrong=False))
    found = compared(series({22: "anomaly", 40: "anomaly"}), series({20: "anomaly", 60: "anomaly"}), spans)
    assert found.accuracy is not None
    one, two, higher = found.accuracy
    assert (one.recall, one.precision, one.refuted) == (0.5, 0.5, 1)
    assert (two.recall, two.precision, two.refuted) == (1.0, 1.0, 0)
    judged_days = 99 * STEP / 86_400_000 + STEP / 86_400_000
    assert one.false_alarms == pytest.approx(1 / judged_days * 30)
    assert higher is not None
    assert higher.mean == 0.5


def test_the_most_instructive_differences_are_of_different_machines_metrics_and_kinds() -> None:
    """Fifty like alarms of one machine with the highest scores leave room for others."""
    first, second = [], []
    for at in range(50):
        second += series({40: ("anomaly", 99.0)}, "noisy", f"disk{at:02}")
        first += series({}, "noisy", f"disk{at:02}")
    for entity, one, two in (
        ("b", {40: ("state_change", 60.0)}, {}),
        ("c", {40: ("anomaly", 70.0)}, {40: ("new_normal", 65.0)}),
    ):
        first += series(one, entity, f"{entity}.net")  # type: ignore[arg-type]
        second += series(two, entity, f"{entity}.net")  # type: ignore[arg-type]
    found = compared(first, second)
    assert len(found.differences) == 10
    assert {each.alarm["entity"] for each in found.differences[:3]} == {"noisy", "b", "c"}
    assert len({(each.alarm["entity"], each.alarm["metric"]) for each in found.differences}) == 10


def test_each_difference_says_why_each_version_judged_so() -> None:
    found = compared(series({40: ("anomaly", 83.0)}), series({40: ("normal", 44.0)}))
    (difference,) = found.differences
    ours, theirs = difference.reasons
    assert ours.startswith("v1 called it an anomaly (one window, highest score 83 at 2027-01-15T")
    assert "cpu is odd." in ours
    assert "v2 raised no alarm: its highest score in this time is 44" in theirs
    assert "an alarm begins at 50" in theirs
    assert "The value was 5, and values from 3 to 4.5 were expected." in theirs


def test_a_version_that_was_still_learning_is_said_to() -> None:
    found = compared(series({40: "anomaly"}), series(dict.fromkeys(range(100), "learning")))
    assert "v2 was still learning this series" in found.differences[0].reasons[1]


class Tags(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_needs_no_network_and_no_other_file() -> None:
    found = compared(series({40: "anomaly"}), series({60: "anomaly"}), [Span("a", ("cpu",), T0, T0 + 50 * STEP)])
    text = page(found, T0)
    tags = Tags(text).tags
    images = [given["src"] or "" for tag, given in tags if tag == "img"]
    assert len(images) == 2
    assert all(image.startswith("data:image/svg+xml;base64,") for image in images)
    assert not {"script", "link", "iframe"} & {tag for tag, _ in tags}
    assert not re.findall(r"(?:src|href)=\"?https?:|@import|url\(", text)


def test_the_page_shows_names_of_machines_as_text_whatever_they_hold() -> None:
    evil = "<script>alert(1)</script>"
    text = page(compared(series({40: "anomaly"}, evil, "$x$"), series({}, evil, "$x$")), T0)
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_verdicts_on_machines_and_logs_have_no_values_and_are_plotted_all_the_same() -> None:
    rows = [
        row | {"actual": None, "typical": None, "lower": None, "upper": None}
        for row in series({40: "anomaly"}, metric="logs")
    ]
    assert (
        page(compared(rows, series({}, metric="logs", windows=range(100))[:0] or rows[:40] + rows[41:]), T0).count(
            "<img"
        )
        == 1
    )


def message(at: int, revision: int = 0, **fields: Any) -> bytes:
    start = T0 + at * STEP
    tree = {"host.name": "a", "metric": "cpu", "window_start": start, "@timestamp": start + STEP, "kind": "normal"}
    return json.dumps(tree | {"record_score": 1, "probability": 0.5, "revision": revision, **fields}).encode()


def test_the_highest_revision_of_a_verdict_is_the_final_one() -> None:
    values = [message(0), message(1, 2, kind="anomaly"), message(1, 1), message(0, 1, kind="state_change")]
    verdicts, unreadable = final(values)
    assert verdicts.select("window_start", "kind").rows() == [(T0, "state_change"), (T0 + STEP, "anomaly")]
    assert unreadable == 0


@pytest.mark.parametrize(
    "wrong", [b"{no json", b"", b"[1]", b"null", b'{"host.name": 5}', message(3, window_start="soon"), b"\xff\xfe"]
)
def test_messages_that_are_no_verdicts_are_counted_and_left_out(wrong: bytes) -> None:
    verdicts, unreadable = final([message(0), wrong, message(1)])
    assert verdicts["window_start"].to_list() == [T0, T0 + STEP]
    assert unreadable == 1
