"""How long a bar is in Kibana: what Lens makes of the interval of a date histogram (`TimeBuckets` in Kibana's source).

The advanced settings `histogram:barTarget` (50) and `histogram:maxBars` (100) have their defaults.
"""

from __future__ import annotations

from dashboards.panels.answer import TimeRange
from engine.spec.duration import duration_ms

_TARGET, _MOST = 50, 100
_S, _M, _H, _D = 1_000, 60_000, 3_600_000, 86_400_000
_YEAR = 365 * _D
_STEPS = (
    (_YEAR, 30 * _D), (21 * _D, 7 * _D), (7 * _D, _D), (_D, 12 * _H), (6 * _H, 3 * _H), (2 * _H, _H),
    (45 * _M, 30 * _M), (20 * _M, 10 * _M), (9 * _M, 5 * _M), (3 * _M, _M), (45 * _S, 30 * _S), (15 * _S, 10 * _S),
    (7_500, 5 * _S), (5 * _S, _S), (500, 100),
)  # fmt: skip
"""(time for each of the wanted bars up to which an interval is taken, that interval), the longest first."""


def interval(chosen: str, when: TimeRange) -> str:
    """The `fixed_interval` that is asked for.

    Args:
        chosen: The interval of the column: ``auto``, or a duration.
        when: The time range of the dashboard.

    A duration with which there would be many bars becomes the longest usual interval that is at most a hundredth of the
    time range. So there can be some hundred bars, but not one for each of a thousand windows.

    >>> interval("auto", TimeRange(0, 3_600_000)), interval("10s", TimeRange(0, 3_600_000))
    ('60000ms', '30000ms')
    >>> interval("10s", TimeRange(0, 45 * 60_000))
    '10000ms'
    """
    span = when.end - when.start
    wanted = _near(span / _TARGET) if chosen == "auto" else duration_ms(chosen)
    return f"{max(wanted, _less_than(span / _MOST))}ms"


def _near(bar: float) -> int:
    if bar < _STEPS[-1][0]:
        return max(1, int(bar))
    return next((length for bound, length in reversed(_STEPS) if bar < bound), _YEAR)


def _less_than(bar: float) -> int:
    return next((length for _, length in ((0, _YEAR), *_STEPS) if length <= bar), max(1, int(bar)))
