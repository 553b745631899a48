"""Which rules keep a window from being reported: by the function with which the detector applies them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pyarrow as pa
import pytest

from engine.formats import columnar
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import LogFeatures, Rule
from pipelines.contracts.settings import load
from pipelines.jobs.detectors.rules_in_force import RuleInForce
from pipelines.proof import account
from pipelines.why_not import evidence
from pipelines.why_not.evidence import muting
from tests.pipelines.proof.test_comparison import incident
from tests.pipelines.why_not.test_walk import BELIEF, LASTS, START, STEP, window

WINDOWS = [window(90.0, number) | {"entity": "web-1", "metric": "cpu"} for number in range(3)]


def muted(windows: list[dict[str, Any]] | None = None, **fields: Any) -> bool:
    """Whether a rule, which is in force all the time unless that is given, keeps one of the windows from being told."""
    span = fields.pop("span", (START - STEP, START + 100 * STEP))
    rule = Rule(id="one", time=START - STEP, **fields)
    return muting([RuleInForce(rule, *span)], windows or WINDOWS, {}, BELIEF) == ["one"]


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"skip_result": True}, True),
        ({"skip_result": True, "entity": "web-*", "metric": "c?u"}, True),
        ({"skip_result": True, "entity": "db-*"}, False),
        ({"skip_result": True, "span": (START + 3 * STEP, START + 9 * STEP)}, False),
        ({"skip_result": True, "above": 95.0}, False),
        ({"skip_result": True, "dates": ["1999-12-31"]}, False),
        ({"only": "down"}, True),
        ({"only": "up"}, False),
        ({"min_change": 41.0}, True),
        ({"min_change": 39.0}, False),
        ({"min_change_share": 0.9}, True),
        ({"report": True}, False),
        ({"store": True}, False),
        ({"skip_learning": True}, False),
    ],
)
def test_a_rule_mutes_what_it_says_and_no_more(fields: dict[str, Any], wanted: bool) -> None:
    """The value is 90, 50 is typical."""
    assert muted(**fields) == wanted


def test_the_typical_value_of_a_stored_verdict_counts_before_what_is_believed() -> None:
    rule = RuleInForce(Rule(id="one", time=START - STEP, min_change=41.0), START - STEP, START + 100 * STEP)
    stored = {each["window_end"]: {"typical": 10.0} for each in WINDOWS}
    assert muting([rule], WINDOWS, stored, BELIEF) == []
    assert muting([rule], WINDOWS, {}, BELIEF) == ["one"]


class Held(evidence._Reader):
    """Messages of a topic, without a Kafka."""

    def __init__(self, *messages: bytes, topic: str = topics.LOG_FEATURES) -> None:
        self._messages, self._topic = messages, topic

    def values(self, name: str, *, whole: bool = False) -> Iterator[bytes]:
        assert name == self._topic
        yield from self._messages


def test_the_windows_of_a_log_have_the_lines_of_all_its_templates() -> None:
    def row(entity: str, metric: str, number: int, count: int) -> dict[str, Any]:
        start = START + number * STEP
        return LogFeatures(
            entity=entity, metric=metric, window_start=start, window_end=start + STEP, count=count
        ).model_dump()

    first = [row("web-1", "log.template.a", 0, 3), row("web-1", "log.severity.error", 0, 3)]
    first += [row("web-1", "log.template.b", 0, 4), row("web-2", "log.template.a", 0, 9)]
    later = [row("web-1", "log.template.a", 1, 5), row("web-1", "log.template.a", 7, 5)]
    schema = LogFeatures.arrow_schema()
    held = Held(*(columnar.encode(pa.Table.from_pylist(rows, schema), START + STEP) for rows in (first, later)))
    windows, reached = evidence._log_windows(held, "web-1", "logs", START, START + 3 * STEP, START + 9 * STEP)
    assert [(each["window_end"] - START, each["count"], each["value"]) for each in windows] == [
        (STEP, 7, None), (2 * STEP, 5, None),
    ]  # fmt: skip
    assert reached == START + STEP


@pytest.mark.parametrize("names", [("w\udcff", "cpu"), ("web-1", "c\udcff")])
def test_names_that_are_no_text_are_refused_with_a_code(names: tuple[str, str]) -> None:
    """A shell gives bytes that are no UTF-8 so."""
    with pytest.raises(NewnormalError) as found:
        evidence.evidence(load(), *names, START, START + STEP)
    assert found.value.code == "USAGE_INVALID"


BROKEN: list[Any] = [
    5, [], {"window_start": "soon"}, {"@timestamp": None}, {"revision": "x"}, {"window_start": 1.5},
]  # fmt: skip


def test_what_is_no_verdict_in_the_topic_of_verdicts_hides_none() -> None:
    """Another program may write there; the sink refuses such a message, and a reader passes it by."""
    whole = {
        "host.name": "web-1",
        "metric": "cpu",
        "window_start": START,
        "@timestamp": START + STEP,
        "kind": "anomaly",
    }
    broken = [each if not isinstance(each, dict) else whole | each for each in BROKEN]
    messages = [orjson.dumps(each) for each in (whole, *broken, {"host.name": "web-1", "metric": "cpu"})]
    held = Held(*messages, b"no json", topic=topics.NOVELTIES)
    found = evidence._verdicts(held, "web-1", "cpu", START, START + STEP)
    assert found[START + STEP]["kind"] == "anomaly"
    assert list(found) == [START + STEP]
    told = incident(start=START, end=START + STEP, series=[LASTS])
    read = [orjson.loads(each) for each in messages]
    assert len(account._newest(read, told)) == 1
