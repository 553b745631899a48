"""Invalid rules and labels, and strategies that generate random ones."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

T0, STEP = 1_700_000_000_000, 10_000
BEYOND = 253_402_300_800_000
"""The first millisecond of the year 10000, which no calendar of ours can show."""


def rule(**fields: Any) -> bytes:
    return json.dumps({"id": "r", "@timestamp": T0, "skip_result": True} | fields).encode()


def label(**fields: Any) -> bytes:
    return json.dumps({"host.name": "a", "event.start": T0, "verdict": "true"} | fields).encode()


NO_NOTICE: list[bytes | None] = [
    None,
    b"",
    b"{",
    b"[1]",
    b"7",
    b"null",
    b"\xff\xfe",
    b"\0",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"{}",
    json.dumps({f"field{i}": i for i in range(3_000)}).encode(),
    json.dumps({"field" * 10_000: 1}).encode(),
]
HOSTILE_RULES: list[bytes | None] = [
    *NO_NOTICE,
    rule(entity="?" * 20_000),
    rule(**{"host.name": "?" * 20_000}),
    rule(metric="*?" * 300),
    rule(**{"host.name": ""}),
    rule(id=""),
    rule(id="r" * 10_000),
    rule(id=5),
    rule(note="n" * 1_000_000),
    rule(skipresult=True),
    rule(skip_result="perhaps"),
    rule(skip_result=[True]),
    rule(only="sideways"),
    rule(above="high"),
    rule(above=float("nan")),
    rule(min_change=-1),
    rule(above=2, below=1),
    b'{"id": "r", "@timestamp": 1700000000000, "above": 1' + b"0" * 400 + b', "report": true}',
    rule(**{"@timestamp": 10**30}),
    rule(**{"@timestamp": BEYOND - 1}),
    rule(**{"@timestamp": T0 // 1000}),
    rule(**{"@timestamp": -1}),
    rule(**{"@timestamp": None}),
    rule(**{"event.end": BEYOND}),
    rule(**{"event.start": BEYOND, "event.end": BEYOND + 1}),
    rule(**{"event.end": T0}),
    rule(dates=["2026-02-30"]),
    rule(dates=["10000-01-01"]),
    rule(dates="2026-01-01"),
    rule(dates=[f"2026-01-{1 + i % 28:02}" for i in range(100_000)]),
    rule(times="25:00-26:00"),
    rule(times="sat," * 200 + "sat"),
    rule(times=7),
    rule(dates=["2026-01-01"], timezone="Mars/Base"),
    rule(dates=["2026-01-01"], timezone="Factory"),
    rule(dates=["2026-01-01"], timezone="localtime"),
    rule(dates=["2026-01-01"], timezone="posix/Europe/Berlin"),
    rule(dates=["2026-01-01"], timezone="../../etc/passwd"),
    rule(dates=["2026-01-01"], timezone="\0"),
    rule(dates=["2026-01-01"], timezone="+01:00"),
    b'{"id": "\\ud800", "@timestamp": 1700000000000, "skip_result": true}',
]
HOSTILE_LABELS: list[bytes | None] = [
    *NO_NOTICE,
    label(verdict="maybe"),
    label(verdict=None),
    label(**{"host.name": ""}),
    label(**{"host.name": "a" * 513}),
    label(**{"host.name": 7}),
    label(metric="m" * 1_025),
    label(metric=""),
    label(note="n" * 1_000_000),
    label(nonsense=1),
    label(**{"event.start": 10**30}),
    label(**{"event.start": BEYOND}),
    label(**{"event.end": BEYOND}),
    label(**{"event.end": T0 - 1}),
    label(**{"event.start": T0 // 1000}),
    label(**{"event.created": BEYOND - 1}),
    label(**{"event.created": "soon"}),
]


SPECIAL = st.sampled_from("*?ab.{}[]()^$\\|+#&-~ \n\0é\U0001f600")
GLOBS = st.text(SPECIAL, min_size=1, max_size=512) | st.sampled_from(["a", "?", "c*", "b*b", "?*" * 256])
SAID = st.sampled_from([T0 - 1, T0, T0 + 1, T0 + STEP])
INSTANTS = SAID | st.sampled_from([0, T0 + 5 * STEP, BEYOND - 1])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**18), 10**18)
DAYS = st.dates().map(str)
TIMES = st.sampled_from(["", "02:00-03:00", "fri-mon 22:00-07:00, wed", "sat-sun", "mon-sun"])
ZONES = st.sampled_from(["UTC", "Europe/Stockholm", "Asia/Kathmandu", "EST5EDT", "Etc/GMT+12"])
NAMED = st.sampled_from(["cpu", "*", "logs", "log.template.x", "log.severity.warning", "log."])
METRICS = NAMED | st.text(min_size=1, max_size=9)
WRONG = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.integers(),
    st.sampled_from([1e308, 5e-324, -(2**53), BEYOND, 10**25, "7", "zulu", "Factory", "?" * 600]),
    st.text(max_size=12),
    st.lists(st.text(max_size=3), max_size=2),
)


def mostly(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[bytes]:
    """JSON objects with these fields, of which every other one has a field that is wrong or unknown."""
    right = st.fixed_dictionaries(required, optional=optional)
    wrong = st.dictionaries(st.sampled_from([*required, *optional, "unknown"]), WRONG, min_size=1, max_size=1)
    return st.builds(lambda some, more: json.dumps(some | more).encode(), right, st.just({}) | wrong)


RULES = mostly(
    {"id": st.sampled_from(["r", "s", "t\n"]), "@timestamp": SAID, "weekend": st.booleans()},
    {
        "active": st.booleans(), "host.name": GLOBS, "metric": GLOBS, "event.start": INSTANTS, "event.end": INSTANTS,
        "dates": st.lists(DAYS, max_size=3), "times": TIMES, "timezone": ZONES, "above": NUMBERS, "below": NUMBERS,
        "skip_result": st.booleans(), "skip_learning": st.booleans(), "report": st.booleans(),
        "only": st.sampled_from(["up", "down"]), "min_change": NUMBERS.map(abs), "min_change_share": NUMBERS.map(abs),
        "store": st.booleans(), "note": st.text(max_size=5),
    },
)  # fmt: skip
LABELS = mostly(
    {"host.name": st.sampled_from(["a", "b", "*", "z"]), "event.start": SAID,
     "verdict": st.sampled_from(["true", "false_alarm", "expected_change", "new_normal"])},
    {"metric": METRICS, "event.end": INSTANTS, "event.created": SAID, "note": st.text(max_size=5)},
)  # fmt: skip


def fuzz(strategy: st.SearchStrategy[bytes], count: int) -> list[bytes]:
    """Some messages of a strategy, the same in each run."""
    found: list[bytes] = []

    @hypothesis(deadline=None, max_examples=count, derandomize=True, database=None)
    @given(strategy)
    def gather(value: bytes) -> None:
        found.append(value)

    gather()
    return found
