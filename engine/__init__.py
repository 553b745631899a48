"""The event-time windowing engine on Spark: keys, time, windows, state, columns. It knows nothing of anomalies.

All names that are needed to write a job can be imported from here: ``from engine import Count, Record, Stream``. A name
is loaded when it is first used, so that a package which needs only the engine's errors loads nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import engine.spec.codes  # noqa: F401  registers them, wherever the package is imported

if TYPE_CHECKING:
    from engine.aggregates import *  # noqa: F403
    from engine.operators import *  # noqa: F403
    from engine.spark.run import run as run
    from engine.spec.job import Job as Job
    from engine.spec.output import Output as Output
    from engine.spec.output import Side as Side
    from engine.spec.record import Instant as Instant
    from engine.spec.record import Keyword as Keyword
    from engine.spec.record import Record as Record
    from engine.spec.source import Source as Source
    from engine.stream import Stream as Stream
    from engine.triggers import *  # noqa: F403
    from engine.watermarks import *  # noqa: F403
    from engine.windows import *  # noqa: F403

_NAMES = {
    "engine.stream": "Stream",
    "engine.spark.run": "run",
    "engine.spec.job": "Job",
    "engine.spec.output": "Output Side",
    "engine.spec.record": "Instant Keyword Record",
    "engine.spec.source": "Source",
    "engine.windows": "Calendar Global KeepLast KeepRecent Policy Session Sliding Tumbling",
    "engine.triggers": "Accumulating AccumulatingAndRetracting AfterAll AfterAny AfterCount AfterEach "
    "AfterProcessingTime AfterWatermark CustomTrigger Discarding Never OrFinally",
    "engine.aggregates": "Constant Count CustomAggregate Distinct First Histogram Last Max MaxBy Mean Min "
    "MinBy Quantile Rate Std Sum TopK Variance",
    "engine.watermarks": "AscendingTimestamps BoundedOutOfOrderness LearnedLateness Prompt Punctuated",
    "engine.operators": "Broadcast Correlation CountWindows Deduplicate DeltaWindows EachKey Event IntervalJoin "
    "KeyCallback Logic NO_TIMER Pattern Process TemporalJoin Timer Turn WindowJoin aside",
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}
"""The module of each public name."""

__all__ = [*_PLACES]  # noqa: PLE0604  names, each of which is text


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    from engine.spec.arguments import checked_calls  # noqa: PLC0415  loads pydantic

    value = globals()[name] = checked_calls(getattr(import_module(_PLACES[name]), name))
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
