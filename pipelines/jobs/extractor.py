"""The definition of the extractor, which turns telemetry into statistics of each series in event-time windows."""

from __future__ import annotations

from engine.aggregates import Constant, Count, Last, Max, Mean, Min, Quantile, Rate, Std
from engine.spec.job import Job
from engine.stream import Stream
from engine.windows import Sliding
from pipelines.contracts import topics
from pipelines.contracts.records import Features, Telemetry
from pipelines.contracts.settings import Settings
from pipelines.jobs.sources import columnar, dead, internal, most_series


def extractor(settings: Settings) -> Job:
    """`telemetry` → `features`: statistics of each series in event-time windows."""
    window = settings.window
    stream = (
        Stream.read(internal(settings, topics.TELEMETRY, Telemetry, "time", most_series(settings)))
        .key_by("entity", "metric")
        .window(Sliding(window.size, every=window.step), allowed_lateness=window.allowed_lateness)
        .aggregate(
            kind=Constant("kind"),
            count=Count(),
            mean=Mean("value"),
            std=Std("value"),
            min=Min("value"),
            max=Max("value"),
            last=Last("value"),
            p50=Quantile("value", 0.50),
            p95=Quantile("value", 0.95),
            p99=Quantile("value", 0.99),
            rate=Rate("value", only=("kind", "counter")),
        )
    )
    late = columnar(settings, topics.FEATURES_LATE, Telemetry)
    return stream.write("extractor", columnar(settings, topics.FEATURES, Features), dead(settings), late)
