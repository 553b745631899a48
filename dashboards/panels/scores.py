"""The dashboard of the scores that the state view tells Prometheus, scraped or pushed."""

from __future__ import annotations

from dashboards.panels.metrics import Label, MetricsDashboard, MetricsPanel, Promql
from dashboards.panels.severity_colours import SCALE

_WHERE = '{machine=~"$machine",metric=~"$metric"}'
_SERIES = "{{machine}} {{metric}} {{version}}"

SCORES = MetricsDashboard(
    "scores",
    "Scores",
    "What is novel now, how far from normal is it, and in which band was it expected?",
    (
        MetricsPanel(
            "Open incidents", "Series of which an incident is open.",
            (Promql(f"sum(newnormal_incidents_open{_WHERE})"),), warn=1, width=8,
        ),
        MetricsPanel(
            "Highest score", f"The highest score of all series ({SCALE}).",
            (Promql(f"max(newnormal_score{_WHERE})"),), "score", width=8,
        ),
        MetricsPanel(
            "Series", "Series whose scores Prometheus is told.",
            (Promql("sum(newnormal_scores_series)"),), width=8,
        ),
        MetricsPanel(
            "Series left out", "Series that are wanted but not told, as there are more than scores.most.",
            (Promql("sum(newnormal_scores_left_out)"),), warn=1, width=8,
        ),
        MetricsPanel(
            "Event time lag", "How far what was judged is behind the present.",
            (Promql("time() - min(newnormal_scores_event_time_seconds)"),), "s", warn=300, width=8,
        ),
        MetricsPanel(
            "Samples refused", "Samples of the last hour that the receiver of remote write refused: they are lost.",
            (Promql("sum(delta(newnormal_scores_refused_samples[1h]))"),), warn=1, width=8,
        ),
        MetricsPanel(
            "Machines over time", f"The highest score of each machine, of the 30 with the highest ones ({SCALE}). Rows "
            "that begin to darken at the same time belong together.",
            (Promql(f"topk(30, max by (machine) (newnormal_score{_WHERE}))", "{{machine}}"),), "score", width=48,
            heat=True,
        ),
        MetricsPanel(
            "Score", "How novel each window was: the 20 series with the highest scores.",
            (Promql(f"topk(20, newnormal_score{_WHERE})", _SERIES),), "score",
        ),
        MetricsPanel(
            "State score", "How far each series is from what was normal before its incident, while one is open.",
            (Promql(f"topk(20, newnormal_state_score{_WHERE} > 0)", _SERIES),), "score",
        ),
        MetricsPanel(
            "Band", "The value that was expected, and the band around it. Choose one machine and one metric above; put "
            "your own metric beside it with *Edit*.",
            (
                Promql(f"newnormal_upper{_WHERE}", f"upper {_SERIES}"),
                Promql(f"newnormal_typical{_WHERE}", f"typical {_SERIES}"),
                Promql(f"newnormal_lower{_WHERE}", f"lower {_SERIES}"),
            ),
            below_zero=True,
        ),
        MetricsPanel(
            "Open incidents by machine", "How many series of each machine have an open incident.",
            (Promql(f"sum by (machine) (newnormal_incidents_open{_WHERE}) > 0", "{{machine}}"),),
        ),
    ),
    (Label("machine", "Machine", "newnormal_score"), Label("metric", "Metric", "newnormal_score")),
)  # fmt: skip
