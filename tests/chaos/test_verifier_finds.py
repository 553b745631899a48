"""The verifier of chaos runs finds what is planted: a loss, a doubling, a difference; and nothing in what is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from tests.chaos.runs.verifier.dead_letter_checks import check_dead_letters
from tests.chaos.runs.verifier.finding import Tally
from tests.chaos.runs.verifier.lives import ARRIVED, Restored
from tests.chaos.runs.verifier.log_reader import LogMessage
from tests.chaos.runs.verifier.raw_records import (
    LINES,
    RULE_FIELDS,
    SAMPLES,
    RawTopic,
    lines,
    refused_controls,
    samples,
)
from tests.chaos.runs.verifier.verdict_checks import (
    check_documents,
    check_reference,
    check_verdicts,
    identity,
    newest,
)
from tests.chaos.runs.verifier.window_checks import LINE, LOG_TYPES, METRIC_TYPES, SAMPLE, check_logs, check_metrics

SIZE, UNTIL, REACH = 10_000, 20_000, 5_000

RAW = pl.DataFrame(
    [
        # partition, offset, time, entity, metric, value, kind
        (0, 0, 1_000, "a", "cpu", 1.0, "gauge"),
        (0, 1, 4_000, "a", "cpu", 2.0, "gauge"),
        (0, 2, 9_000, "a", "cpu", 6.0, "gauge"),
        (0, 3, 2_000, "a", "sent", 100.0, "counter"),
        (0, 4, 6_000, "a", "sent", 140.0, "counter"),
        (0, 5, 12_000, "a", "sent", 10.0, "counter"),
        (0, 6, 12_000, "a", "cpu", 8.0, "gauge"),
        (0, 7, 3_000, "a", "cpu", 99.0, "gauge"),
        (0, 8, 31_000, "a", "cpu", 1.0, "gauge"),
        (0, 9, 16_000, "a", "sent", 30.0, "counter"),
    ],
    SAMPLES,
    orient="row",
)
LATE = pl.DataFrame({"entity": "a", "metric": "cpu", "time": 3_000, "value": 99.0})
"""The sample of 3 s comes after one of 12 s, which is more than the reach behind."""


def _window(metric: str, start: int, kind: str = "gauge", rate: float | None = None, **values: float) -> dict[str, Any]:
    row = {"entity": "a", "metric": metric, "kind": kind, "window_start": start, "rate": rate, "revision": 0}
    same = dict.fromkeys(("mean", "min", "max", "last", "p50", "p95", "p99"), values.get("mean"))
    return row | {"std": 0.0, "count": 1} | same | values


FEATURES = [
    _window("cpu", 0, count=3, mean=3.0, std=7**0.5, min=1.0, max=6.0, last=6.0, p50=2.01, p95=6.0, p99=6.0),
    _window("cpu", 10_000, mean=8.0),
    # 40 more in 4 s; then a restart at an unknown instant before the value 10, and 20 more in 4 s
    _window(
        "sent", 0, "counter", 10.0, count=2, mean=120.0, std=800**0.5, min=100.0, max=140.0, last=140.0, p50=100.0,
        p95=140.0, p99=140.0,
    ),
    _window(
        "sent", 10_000, "counter", 5.0, count=2, mean=20.0, std=200**0.5, min=10.0, max=30.0, last=30.0, p50=10.0,
        p95=30.0, p99=30.0,
    ),
]  # fmt: skip


def _metrics(features: list[dict[str, Any]], late: pl.DataFrame = LATE, raw: pl.DataFrame = RAW) -> Tally:
    tally = Tally()
    frame = pl.DataFrame(features, METRIC_TYPES)
    check_metrics(tally, raw, frame, late.select(SAMPLE), SIZE, UNTIL, REACH)
    return tally


def _changed(row: int, **values: object) -> list[dict[str, Any]]:
    return [each | values if number == row else each for number, each in enumerate(FEATURES)]


def test_windows_that_are_as_the_samples_say_are_right() -> None:
    assert _metrics(FEATURES).findings == []


def test_a_window_that_was_revised_is_judged_by_its_highest_revision() -> None:
    early = FEATURES[0] | {"count": 2, "mean": 1.5}
    assert _metrics([early, FEATURES[0] | {"revision": 1}, *FEATURES[1:]]).findings == []


@pytest.mark.parametrize(
    ("features", "wrong"),
    [
        (FEATURES[1:], "lost"),
        ([*FEATURES, FEATURES[2]], "doubled"),
        ([*FEATURES, _window("disk", 0, mean=1.0)], "different"),
        (_changed(0, count=2), "different"),
        (_changed(0, mean=3.0 + 1e-6), "different"),
        (_changed(0, std=2.0), "different"),
        (_changed(0, last=2.0), "different"),
        (_changed(0, p50=2.5), "different"),
        (_changed(2, rate=None), "different"),
        (_changed(3, rate=30 / 10), "different"),  # as if the restart had been at the instant of the sample before
        (_changed(3, rate=-110 / 10), "different"),
        (_changed(1, rate=0.0), "different"),
    ],
)
def test_a_fault_planted_in_one_window_is_found_as_what_it_is(features: list[dict[str, Any]], wrong: str) -> None:
    assert [(each.wrong, each.count) for each in _metrics(features).findings] == [(wrong, 1)]


def test_a_version_that_begins_later_needs_no_windows_of_the_time_before_but_all_dead_letters() -> None:
    later = RawTopic(RAW, {(0, 10): "JSON_MALFORMED"}).since(10_000)
    assert _metrics([FEATURES[3], FEATURES[1]], LATE.clear(), later.records).findings == []
    assert later.refused == {(0, 10): "JSON_MALFORMED"}
    assert _metrics(FEATURES, LATE.clear(), later.records).findings  # windows that nobody sent it anything of


def test_a_sample_that_is_in_its_window_and_in_the_late_topic_is_found() -> None:
    in_window = RAW.filter(pl.col("offset") == 1).select(SAMPLE)
    wrong = {each.wrong for each in _metrics(FEATURES, pl.concat([LATE, in_window])).findings}
    assert wrong == {"different"}


def test_a_late_sample_that_nobody_sent_or_that_is_there_twice_is_found() -> None:
    (twice,) = _metrics(FEATURES, pl.concat([LATE, LATE])).findings
    assert (twice.wrong, twice.where, twice.count) == ("doubled", "features.late", 1)


def test_a_sample_in_order_must_not_be_called_late() -> None:
    in_order = RAW.with_columns(offset=pl.when(pl.col("value") == 99.0).then(-1).otherwise("offset"))
    (hasty,) = _metrics(FEATURES, raw=in_order).findings
    assert (hasty.wrong, hasty.count) == ("different", 1)


LOG = pl.DataFrame(
    [
        (0, 0, 1_000, "a", "app", 6, "one"),
        (0, 1, 2_000, "a", "app", 6, "two"),
        (0, 2, 3_000, "a", "app", 4, "three"),
        (0, 3, 40_000, "a", "app", 6, "end"),
    ],
    LINES,
    orient="row",
)
NO_LINES = pl.DataFrame(schema={"entity": pl.String, "program": pl.String, "time": pl.Int64, "message": pl.String})


def _logs(*rows: tuple[str, int]) -> Tally:
    tally = Tally()
    found = [{"entity": "a", "metric": m, "window_start": 0, "count": n, "revision": 0} for m, n in rows]
    check_logs(tally, LOG, pl.DataFrame(found, LOG_TYPES), NO_LINES.select(LINE), SIZE, UNTIL, REACH)
    return tally


def test_counts_of_lines_must_agree_by_severity_and_by_template() -> None:
    severities = (("log.severity.informational", 2), ("log.severity.warning", 1))
    assert _logs(*severities, ("log.template.x", 2), ("log.template.y", 1)).findings == []
    assert [each.wrong for each in _logs(*severities, ("log.template.x", 2)).findings] == ["different"]
    assert [each.wrong for each in _logs(severities[0], ("log.template.x", 3)).findings] == ["lost"]


def _verdict(metric: str, start: int, revision: int = 0, **fields: object) -> dict[str, Any]:
    place = {"host.name": "a", "metric": metric, "window_start": start, "@timestamp": start + SIZE}
    return place | {"kind": "normal", "record_score": 1.5, "evidence": {"point": 0.25}, "revision": revision} | fields


WINDOWS = pl.DataFrame({"entity": ["a", "a"], "metric": ["cpu", "cpu"], "window_start": [0, 10_000]})
LOG_WINDOWS = pl.DataFrame({"entity": ["a"], "window_start": [0]})
VERDICTS = [
    _verdict("cpu", 0),
    _verdict("cpu", 0, 1, kind="anomaly"),
    _verdict("cpu", 10_000),
    _verdict("logs", 0),
    _verdict("_machine", 0),
]


def _wrong(check: Callable[[Tally], object]) -> list[tuple[str, int]]:
    tally = Tally()
    check(tally)
    return [(each.wrong, each.count) for each in tally.findings]


@pytest.mark.parametrize(
    ("verdicts", "wrong"),
    [
        (VERDICTS, []),
        ([*VERDICTS, _verdict("mem", 0, kind="absence")], []),
        (VERDICTS[:3], [("lost", 1)]),
        ([*VERDICTS[:2], *VERDICTS[3:]], [("lost", 1)]),
        ([*VERDICTS, VERDICTS[1]], [("doubled", 1)]),
        ([*VERDICTS, _verdict("mem", 0)], [("different", 1)]),
    ],
)
def test_each_window_has_its_verdict_once(verdicts: list[dict[str, Any]], wrong: list[tuple[str, int]]) -> None:
    assert _wrong(lambda tally: check_verdicts(tally, verdicts, WINDOWS, LOG_WINDOWS, UNTIL)) == wrong


FINAL = newest(VERDICTS, UNTIL)
STORED = [verdict | {"event.ingested": 5} for verdict in VERDICTS[1:]]


@pytest.mark.parametrize(
    ("documents", "wrong"),
    [
        (STORED, []),
        (STORED[1:], [("lost", 1)]),
        ([*STORED, STORED[0]], [("doubled", 1)]),
        ([VERDICTS[0], *STORED[1:]], [("different", 1)]),
        ([*STORED, _verdict("mem", 0)], [("different", 1)]),
    ],
)
def test_elasticsearch_holds_the_final_revision_of_each_verdict(
    documents: list[dict[str, Any]], wrong: list[tuple[str, int]]
) -> None:
    assert _wrong(lambda tally: check_documents(tally, documents, FINAL, UNTIL)) == wrong


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"record_score": 1.5 + 1e-12, "revision": 3, "event.ingested": 9, "experts": {}}, []),
        ({"record_score": 1.5 + 1e-6}, [("different", 1)]),
        ({"kind": "normal"}, [("different", 1)]),
        ({"evidence": {"point": 0.25, "mean": 0.5}}, [("different", 1)]),
        ({"message": "something"}, [("different", 1)]),
        ({"window_start": 5_000}, [("lost", 1), ("different", 1)]),
    ],
)
def test_verdicts_equal_those_of_the_run_without_faults(changed: dict[str, Any], wrong: list[tuple[str, int]]) -> None:
    other = newest([VERDICTS[1] | changed, *VERDICTS[2:]], UNTIL)
    assert _wrong(lambda tally: check_reference(tally, other, FINAL)) == wrong


def _letter(offset: int, code: str = "JSON_MALFORMED") -> dict[str, Any]:
    place = {"kafka.topic": "telemetry.json", "kafka.partition": 0, "kafka.offset": offset}
    return place | {"error.code": code, "service.name": "normalizer"}


@pytest.mark.parametrize(
    ("letters", "wrong"),
    [
        ([_letter(7)], []),
        ([], [("lost", 1)]),
        ([_letter(7), _letter(7)], [("doubled", 1)]),
        ([_letter(7), _letter(8)], [("different", 1)]),
        ([_letter(7, "FIELD_INVALID")], [("different", 1)]),
    ],
)
def test_dead_letters_are_the_messages_that_cannot_be_used(
    letters: list[dict[str, Any]], wrong: list[tuple[str, int]]
) -> None:
    refused = {("telemetry.json", 0, 7): "JSON_MALFORMED"}
    assert _wrong(lambda tally: check_dead_letters(tally, letters, refused)) == wrong


AT = 1_800_000_000_000


def _message(offset: int, value: bytes) -> LogMessage:
    return LogMessage(0, offset, AT, value)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b'{"@timestamp":1800000000000,"host.name":"a","metric":"m","value":1}', None),
        (b'{"@timestamp":1800000060001,"host.name":"a","metric":"m","value":1}', "TIME_AHEAD"),
        (b'{"@timestamp":946684799999,"host.name":"a","metric":"m","value":1}', "TIME_TOO_EARLY"),
        (b'{"@timestamp":1800000000,"host.name":"a","metric":"m","value":1}', "TIME_UNIT"),
        (b'{"@timestamp":1800000000000,"host.name":"a","metric":"m","value":"1"}', "FIELD_INVALID"),
        (b'{"@timestamp":1800000000000,"host.name":"a","metric":"m","value":true}', "FIELD_INVALID"),
        (b'{"@timestamp":1800000000000,"host":"a","metric":"m","value":1}', "FIELD_INVALID"),
        (b'{"@timestamp":1800000000000,"host.name":"a","metric":"m","value":1,"Kind":"count"}', "FIELD_INVALID"),
        (b"[1]", "JSON_MALFORMED"),
        (b"", "JSON_MALFORMED"),
    ],
)
def test_a_message_is_a_sample_or_must_become_a_dead_letter_as_the_docs_say(value: bytes, code: str | None) -> None:
    raw = samples([_message(3, value)])
    assert raw.refused == ({(0, 3): code} if code else {})
    assert raw.records.height == (code is None)


def test_lines_and_control_messages_that_cannot_be_used_are_known() -> None:
    line = b'{"@timestamp":1800000000000,"host.name":"a","message":%s}'
    assert lines([_message(0, line % b'"up"'), _message(1, line % b"7")]).refused == {(0, 1): "FIELD_INVALID"}
    rules = [_message(0, b'{"id":"x","@timestamp":5}'), _message(1, b'{"colour":1}'), _message(2, b"{")]
    refused = refused_controls(rules, RULE_FIELDS, "RULE_INVALID")
    assert refused == {(0, 1): "RULE_INVALID", (0, 2): "JSON_MALFORMED"}


def test_a_verdict_is_known_by_machine_metric_and_window() -> None:
    assert identity(_verdict("cpu", 0)) == ("a", "cpu", 0, SIZE)


SAVED, PUT_BACK = 100, 200
"""When the savepoint was made of which a version was restored, and when it was put back."""


@pytest.mark.parametrize(
    ("arrivals", "left"),
    [
        ([150, 250], [250]),  # written between savepoint and restoration, and again: the later one counts
        ([SAVED - 1, 250], [SAVED - 1, 250]),  # it was in the savepoint already
        ([150, 160], [150, 160]),  # twice before the restoration
        ([250, 260], [250, 260]),  # twice after it
        ([150, 160, 250], [160, 250]),  # one of two is explained
        ([150, 160, 250, 260], [250, 260]),
        ([150], [150]),
        ([150, PUT_BACK], [PUT_BACK]),
        ([150, 250, 350], [350]),  # it was put back a second time
    ],
)
def test_what_a_restored_version_wrote_twice_is_explained_only_where_it_was_written_before_and_after(
    arrivals: list[int], left: list[int]
) -> None:
    began = (PUT_BACK, 300) if max(arrivals) > 300 else (PUT_BACK,)
    rows = pl.DataFrame({"key": ["a"] * len(arrivals), ARRIVED: arrivals})
    assert sorted(Restored(SAVED, began).once(rows, ["key"])[ARRIVED]) == left
