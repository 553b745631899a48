"""Queries over topics: windows, live results as the watermark passes, and once over a real Kafka."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from datagen.kafka_writer import KafkaWriter
from deploy.embedded.endpoints import Endpoints
from engine.formats import columnar
from engine.formats.columnar import ColumnarDecoder
from engine.kafka.admin import ensure_topics
from engine.spec.decoder import Messages
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from engine.spec.source import Source
from pipelines.cli.main import app
from pipelines.contracts.records import Novelty, Telemetry
from pipelines.query import tables
from pipelines.query.ad_hoc import LiveQuery, LiveTable, evaluate
from pipelines.query.windowed_sql import Spec, parse

T0 = 1_700_000_000_000


def samples(*seconds: float, entity: str = "a") -> pl.DataFrame:
    return pl.DataFrame({"time": [T0 + round(s * 1000) for s in seconds], "entity": entity, "value": list(seconds)})


def rows(text: str, **frames: pl.DataFrame) -> list[tuple[Any, ...]]:
    return evaluate(parse(text), frames).rows()


def test_tumbling_windows_are_a_table_or_an_expression() -> None:
    x = samples(1, 5, 11)
    table = "SELECT window_start, count(*), sum(value) FROM tumble(x, time, '10s') GROUP BY window_start ORDER BY 1"
    expression = "SELECT tumble(time, '10s'), count(*), sum(value) FROM x GROUP BY tumble(time, '10s') ORDER BY 1"
    assert rows(table, x=x) == rows(expression, x=x) == [(T0, 2, 6.0), (T0 + 10_000, 1, 11.0)]


def test_a_row_lies_in_each_of_its_hopping_windows() -> None:
    text = "SELECT window_end, max(value) FROM hop(x, time, '5s', '10s') GROUP BY window_end ORDER BY window_end"
    got = rows(text, x=samples(1, 5))
    assert got == [(T0 + 5000, 1.0), (T0 + 10_000, 5.0), (T0 + 15_000, 5.0)]


def test_windows_over_a_column_that_has_the_name_of_their_end() -> None:
    """Features and verdicts tell their time as ``window_end``: that of the query's windows takes its place."""
    features = pl.DataFrame({"window_end": [T0 + 1000, T0 + 5000], "mean": [1.0, 5.0]})
    text = "SELECT window_end, max(mean) FROM hop(x, window_end, '5s', '10s') GROUP BY window_end ORDER BY window_end"
    assert rows(text, x=features) == [(T0 + 5000, 1.0), (T0 + 10_000, 5.0), (T0 + 15_000, 5.0)]


def test_what_looks_like_a_window_in_a_text_or_a_comment_is_none() -> None:
    query = parse("SELECT 'tumble(x, time, 1)' AS t, \"features.late\" FROM x -- hop(x)\n")
    assert query.specs == ()
    assert query.topics(["x", "features.late", "telemetry"]) == ["features.late", "x"]
    assert rows("SELECT 'tumble(time)' AS t FROM x", x=samples(1)) == [("tumble(time)",)]


def test_topics_with_dots_are_tables() -> None:
    text = "SELECT a.value FROM tumble(\"features.late\", time, '10s') a JOIN x ON a.time = x.time"
    query = parse(text)
    assert query.specs == (Spec("features.late", "time", 10_000, 10_000),)
    assert evaluate(query, {"features.late": samples(1), "x": samples(1, 2)}).rows() == [(1.0,)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT * FROM tumble(x, time)", "SQL_WINDOW"),
        ("SELECT hop(time, '1s') FROM x", "SQL_WINDOW"),
        ("SELECT * FROM hop(x, time, '10s', '5s')", "SQL_WINDOW"),
        ("SELECT * FROM tumble(x, time, '10s'", "SQL_WINDOW"),
        ("SELECT * FROM tumble(x, time, '10 parsecs')", "DURATION_INVALID"),
        ("SELECT * FROM tumble(y, time, '10s')", "TOPIC_UNKNOWN"),
        ("SELECT nothing FROM x", "SQL_INVALID"),
        ("SELEC 1", "SQL_INVALID"),
    ],
)
def test_a_wrong_query_is_refused_with_what_is_accepted(text: str, code: str) -> None:
    with pytest.raises(NewnormalError) as caught:
        rows(text, x=samples(1))
    assert caught.value.code == code


@pytest.mark.parametrize("how", [[], ["--live"]])
def test_sessions_that_are_asked_for_once_or_live_are_refused_with_the_way_to_have_them(how: list[str]) -> None:
    query = "SELECT entity, count(*) FROM session(telemetry, time, '30s') GROUP BY entity, window_start"
    with pytest.raises(NewnormalError) as caught:
        CliRunner().invoke(app, ["sql", query, *how], catch_exceptions=False)
    assert caught.value.code == "SQL_WINDOW"
    assert "session(telemetry, time, '30s')" in caught.value.what
    assert "--into TOPIC" in caught.value.accepted


def test_a_column_or_topic_that_is_named_session_is_no_window() -> None:
    frame = pl.DataFrame({"session": ["a", "a", "b"]})
    assert sorted(rows("SELECT session, count(*) FROM session GROUP BY session", session=frame)) == [("a", 2), ("b", 1)]


def messages(frame: pl.DataFrame, watermark: int | None, partition: int = 0) -> Messages:
    table = frame.with_columns(metric=pl.lit("m"), kind=pl.lit("gauge")).to_arrow()
    rows_ = pa.Table.from_pylist(table.to_pylist(), schema=Telemetry.arrow_schema())
    now = np.array([T0 + 3_600_000])
    return Messages("t", partition, pa.array([columnar.encode(rows_, watermark)]), np.array([0]), now)


def live(text: str, whole: bool = True) -> LiveQuery:
    return LiveQuery(parse(text), {"x": LiveTable(Source({"t": ColumnarDecoder(Telemetry)}, Telemetry))}, whole)


COUNTS = "SELECT window_start, count(*) AS n FROM tumble(x, time, '10s') GROUP BY window_start"


def test_a_live_query_tells_each_window_once_when_the_watermark_passes_its_end() -> None:
    query = live(COUNTS)
    query.take("x", messages(samples(1, 12, 3), T0 + 9999))
    assert query.results() == []
    query.take("x", messages(samples(4, 25), T0 + 20_000))
    assert [(end, r.rows()) for end, r in query.results()] == [
        (T0 + 10_000, [(T0, 3)]),
        (T0 + 20_000, [(T0 + 10_000, 1)]),
    ]
    assert query.results() == []
    query.take("x", messages(samples(5), T0 + 31_000))
    assert [end for end, _ in query.results()] == [T0 + 30_000]
    assert query.late == 1


@pytest.mark.parametrize("text", [COUNTS, "SELECT tumble(time, '10s'), count(*) FROM x GROUP BY tumble(time, '10s')"])
def test_all_live_windows_together_are_the_bounded_result(text: str) -> None:
    seconds = np.random.default_rng(4).uniform(0, 100, 60).round(3).tolist()
    query, found = live(text), []
    for at in range(0, 60, 6):
        query.take("x", messages(samples(*sorted(seconds)[at : at + 6]), T0 + int(sorted(seconds)[at] * 1000)))
        found += [row for _, result in query.results() for row in result.rows()]
    query.take("x", messages(samples(), T0 + 200_000))
    found += [row for _, result in query.results() for row in result.rows()]
    assert sorted(found) == sorted(rows(text, x=samples(*seconds)))


def test_the_state_of_a_live_query_is_bounded() -> None:
    query = live(COUNTS)
    for second in range(0, 1000, 5):
        query.take("x", messages(samples(second), T0 + second * 1000))
        query.results()
    assert query.tables["x"].frame().height <= 4


def test_a_window_that_began_ahead_of_the_first_message_is_not_told() -> None:
    query = live(COUNTS, whole=False)
    query.take("x", messages(samples(5, 6), T0 + 5000))
    query.take("x", messages(samples(12), T0 + 20_000))
    assert [end for end, _ in query.results()] == [T0 + 20_000]


def test_a_longer_window_beside_the_first_one_keeps_its_rows() -> None:
    both = (
        "SELECT a.window_end, a.n, b.n AS more FROM "
        "(SELECT window_end, count(*) AS n FROM tumble(x, time, '10s') GROUP BY window_end) a JOIN "
        "(SELECT window_end, count(*) AS n FROM hop(x, time, '10s', '30s') GROUP BY window_end) b "
        "ON a.window_end = b.window_end"
    )
    query, found = live(both), []
    for second in range(0, 60, 5):
        query.take("x", messages(samples(second), T0 + second * 1000))
        found += [row for _, result in query.results() for row in result.rows()]
    whole = {row for row in rows(both, x=samples(*range(0, 60, 5))) if T0 < row[0] <= T0 + 50_000}
    assert set(found) == whole
    assert (T0 + 50_000, 2, 6) in found


def test_a_live_query_needs_a_window() -> None:
    with pytest.raises(NewnormalError, match="SQL_LIVE_NEEDS_WINDOW"):
        live("SELECT count(*) FROM x")


def test_json_topics_have_the_columns_of_their_record_type_others_those_they_have() -> None:
    novelty = {
        "host.name": "a", "metric": "m", "window_start": 1, "@timestamp": 2, "kind": "anomaly", "record_score": 80.0,
        "probability": 0.01, "evidence": {"point": 3.0},
    }  # fmt: skip
    table, refused = tables.frame("novelties", [json.dumps(novelty).encode(), b"rubbish"])
    assert refused == 1
    assert table.columns == list(Novelty.model_fields)
    assert table.select("entity", "window_end", "record_score").rows() == [("a", 2, 80.0)]
    free, refused = tables.frame("groundtruth", [b'{"start": 1}', b'{"start": 2, "who": "x"}', b"rubbish"])
    assert (free.rows(), refused) == ([(1, None), (2, "x")], 1)
    assert tables.frame("notes", [b"one", b"two"])[0]["value"].to_list() == ["one", "two"]


@pytest.mark.servers
def test_the_command_reads_topics_of_a_real_kafka_once_and_live(endpoints: Endpoints) -> None:
    space = "sqltest."
    topic = f"{space}telemetry.json"
    ensure_topics(endpoints.bootstrap, {topic: {}}, 2, 1)
    lines = [
        json.dumps(
            {"@timestamp": T0 + s * 1000, "host.name": f"host-{s % 2}", "metric": "m", "value": s, "kind": "gauge"}
        )
        for s in range(30)
    ]
    with KafkaWriter(endpoints.bootstrap) as writer:
        writer.write(topic, lines, [f"host-{s % 2}" for s in range(30)])
    common = ["--kafka", endpoints.bootstrap, "--namespace", space, "--json"]
    text = "SELECT entity, count(*) AS n, max(value) AS top FROM telemetry.json GROUP BY entity ORDER BY entity"
    result = CliRunner().invoke(app, ["sql", text, *common], catch_exceptions=False)
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"entity": "host-0", "n": 15, "top": 28.0},
        {"entity": "host-1", "n": 15, "top": 29.0},
    ]
    text = "SELECT window_start, count(*) AS n FROM tumble(\"telemetry.json\", time, '10s') GROUP BY window_start"
    wanted = ["--live", "--from-beginning", "--windows", "2"]
    result = CliRunner().invoke(app, ["sql", text, *wanted, *common], catch_exceptions=False)
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"window_start": iso(T0), "n": 10},
        {"window_start": iso(T0 + 10_000), "n": 10},
    ]


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT min(v), max(v) FROM t", ["min(v)", "max(v)"]),
        ("SELECT e, count(*), avg(v) AS mean, max(v) hi FROM t GROUP BY e", ["e", "count(*)", "mean", "hi"]),
        ("SELECT *, v * 2 FROM t", ["e", "v", "time", "v * 2"]),
        ("SELECT DISTINCT e, t.v FROM t", ["e", "v"]),
        ("SELECT tumble(time, '10s'), sum(v) FROM t GROUP BY tumble(time, '10s')", ["tumble(time, '10s')", "sum(v)"]),
    ],
)
def test_a_column_without_a_name_is_headed_by_its_text(query: str, columns: list[str]) -> None:
    table = pl.DataFrame({"e": ["a", "b"], "v": [1, 2], "time": [1_000, 20_000]})
    assert evaluate(parse(query), {"t": table}).columns == columns


def test_a_message_of_a_wrong_type_is_left_out_and_counted_and_those_beside_it_are_read() -> None:
    good = {
        "host.name": "a",
        "metric": "cpu",
        "window_start": T0,
        "@timestamp": T0,
        "kind": "normal",
        "record_score": 1.0,
    }
    values = [json.dumps(good | change).encode() for change in ({}, {"record_score": "high"}, {"host.name": "b"})]
    found, unreadable = tables.frame("novelties", values)
    assert found["entity"].to_list() == ["a", "b"]
    assert unreadable == 1


def test_a_query_that_begins_in_the_middle_tells_the_windows_that_begin_at_its_first_watermark_or_later() -> None:
    for first, told in ((T0 + 10_000, [T0 + 20_000, T0 + 30_000]), (T0 + 10_001, [T0 + 30_000])):
        query = live(COUNTS, whole=False)
        query.take("x", messages(samples(5), first))
        query.take("x", messages(samples(12, 15, 25), T0 + 30_000))
        assert [end for end, _ in query.results()] == told, first


@pytest.mark.parametrize("text", ["sum(n)", "sum(n * 3)", "max(n * n)", "sum(n) - 5", "sum(n) OVER (PARTITION BY k)"])
def test_an_integer_that_leaves_64_bits_is_an_error_and_never_wraps(text: str) -> None:
    x = pl.DataFrame({"k": ["a", "a"], "n": [9 * 10**18, 9 * 10**18]})
    with pytest.raises(NewnormalError) as refused:
        rows(f"SELECT {text} AS s FROM x", x=x)
    assert refused.value.code == "RESULT_BEYOND"


def test_sums_in_64_bits_stay_integers_whatever_they_pass_on_the_way() -> None:
    x = pl.DataFrame({"time": [T0, T0 + 1, T0 + 2], "k": ["a", "a", "b"], "n": [9 * 10**18, 9 * 10**18, 7]})
    text = "SELECT k, sum(n) - 9000000000000000000 AS s, max(time) AS t FROM x GROUP BY k ORDER BY k"
    got = evaluate(parse(text), {"x": x})
    assert got.rows() == [("a", 9 * 10**18, T0 + 1), ("b", 7 - 9 * 10**18, T0 + 2)]
    assert set(got.schema.values()) == {pl.String(), pl.Int64()}
    windows = "SELECT window_start, sum(time - time) AS zero FROM tumble(x, time, '10s') GROUP BY window_start"
    assert rows(windows, x=x) == [(T0, 0)]
