"""How a Lens panel draws the columns of its layer."""

from __future__ import annotations

from typing import Any

from dashboards.panels.panel import Panel
from dashboards.panels.query import Over, Summary
from dashboards.panels.severity_colours import BANDS

_BOTH = {"x": True, "yLeft": True, "yRight": True}
_FLAT = {"x": 0, "yLeft": 0, "yRight": 0}
_TYPES = {"number": "lnsMetric", "lines": "lnsXY", "bars": "lnsXY", "heat map": "lnsHeatmap", "table": "lnsDatatable"}


def type_of(panel: Panel) -> str:
    """The type of the Lens visualization."""
    return _TYPES[panel.visual]


def visualization(panel: Panel, query: Summary, layer: str, buckets: list[str], measures: list[str]) -> dict[str, Any]:
    """The state of the visualization.

    Args:
        panel: The panel.
        query: What it asks.
        layer: Id of the layer.
        buckets: Ids of the buckets' columns, in the order of the query.
        measures: Ids of the measures' columns.
    """
    common = {"layerId": layer, "layerType": "data"}
    match panel.visual:
        case "number":
            return {**common, "metricAccessor": measures[0]}
        case "table":
            columns = [{"columnId": each, "isTransposed": False} for each in buckets]
            return {
                **common,
                "columns": [*columns, *({"columnId": m, "isTransposed": False, "isMetric": True} for m in measures)],
            }
        case "heat map":
            return common | _heat_map(measures[0], *buckets)
        case _:
            return _xy(panel, query, layer, buckets, measures)


def _heat_map(value: str, x: str, y: str) -> dict[str, Any]:
    return {
        "shape": "heatmap",
        "valueAccessor": value,
        "xAccessor": x,
        "yAccessor": y,
        "palette": _severities(value),
        "legend": {"isVisible": True, "position": "right", "type": "lens_heatmap_legendConfig"},
        "gridConfig": {
            "type": "lens_heatmap_grid",
            "isCellLabelVisible": False,
            "isYAxisLabelVisible": True,
            "isXAxisLabelVisible": True,
        },
    }


def _severities(value: str) -> dict[str, Any]:
    """The colours of the severities at their bounds. Without a palette, Lens would spread one over the shown values.

    Each of `colorStops` is the score from which on a colour holds, each of `stops` the score at which it ends.
    """
    starts = [band.start for band in BANDS]
    params = {
        "name": "custom",
        "reverse": False,
        "rangeType": "number",
        "rangeMin": starts[0],
        "rangeMax": None,
        "progression": "fixed",
        "continuity": "above",  # 100 is within the last colour
        "steps": len(BANDS),
        "maxSteps": 5,
        "colorStops": [{"color": band.colour, "stop": band.start} for band in BANDS],
        "stops": [{"color": band.colour, "stop": end} for band, end in zip(BANDS, [*starts[1:], 100], strict=True)],
    }
    return {"accessor": value, "type": "palette", "name": "custom", "params": params}


def _xy(panel: Panel, query: Summary, layer: str, buckets: list[str], measures: list[str]) -> dict[str, Any]:
    kind = "line" if panel.visual == "lines" else "bar_stacked"
    drawn: dict[str, Any] = {
        "layerId": layer,
        "layerType": "data",
        "position": "top",
        "seriesType": kind,
        "showGridlines": False,
        "accessors": measures,
        "xAccessor": next(id for id, bucket in zip(buckets, query.buckets, strict=True) if isinstance(bucket, Over)),
    }
    split = [id for id, bucket in zip(buckets, query.buckets, strict=True) if not isinstance(bucket, Over)]
    if split:
        drawn["splitAccessor"] = split[0]
    coloured = zip(measures, query.measures, strict=True)
    colours = [{"forAccessor": id, "color": measure.colour} for id, measure in coloured if measure.colour]
    if colours:
        drawn["yConfig"] = colours
    return {
        "legend": {"isVisible": True, "position": "bottom"},
        "valueLabels": "hide",
        "fittingFunction": "None",  # a gap stays a gap: nothing is drawn where nothing was measured
        "axisTitlesVisibilitySettings": {"x": False, "yLeft": False, "yRight": True},
        "tickLabelsVisibilitySettings": _BOTH,
        "labelsOrientation": _FLAT,
        "gridlinesVisibilitySettings": _BOTH,
        "preferredSeriesType": kind,
        "layers": [drawn],
    }
