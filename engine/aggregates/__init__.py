"""Mergeable aggregates, which are computed for all keys and slices at once."""

from engine.aggregates.aggregate import Aggregate, RowAggregate
from engine.aggregates.at_extremes import MaxBy, MinBy
from engine.aggregates.custom import CustomAggregate
from engine.aggregates.distinct import Distinct
from engine.aggregates.extremes import Max, Min
from engine.aggregates.histogram import Histogram
from engine.aggregates.last import Constant, First, Last
from engine.aggregates.moments import Count, Mean, Std, Sum, Variance
from engine.aggregates.quantile import Quantile
from engine.aggregates.rate import Rate
from engine.aggregates.signed import Signed, signed
from engine.aggregates.topk import TopK, as_text

AnyAggregate = Aggregate | RowAggregate | Rate

__all__ = [
    "Aggregate",
    "AnyAggregate",
    "Constant",
    "Count",
    "CustomAggregate",
    "Distinct",
    "First",
    "Histogram",
    "Last",
    "Max",
    "MaxBy",
    "Mean",
    "Min",
    "MinBy",
    "Quantile",
    "Rate",
    "RowAggregate",
    "Signed",
    "Std",
    "Sum",
    "TopK",
    "Variance",
    "as_text",
    "signed",
]
