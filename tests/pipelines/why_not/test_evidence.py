"""Which rules keep a window from being reported: by the function with which the detector applies them."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.contracts.records import Rule
from pipelines.jobs.detectors.rules_in_force import RuleInForce
from pipelines.why_not.evidence import muting
from tests.pipelines.why_not.test_walk import BELIEF, START, STEP, window

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
