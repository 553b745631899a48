"""Mergeable aggregates, vectorised over keys and panes."""

from engine.aggregates.base import Aggregate
from engine.aggregates.extremes import Max, Min
from engine.aggregates.last import Constant, Last
from engine.aggregates.moments import Count, Mean, Std
from engine.aggregates.quantile import Quantile
from engine.aggregates.rate import Rate

AnyAggregate = Aggregate | Quantile | Rate

__all__ = ["Aggregate", "AnyAggregate", "Constant", "Count", "Last", "Max", "Mean", "Min", "Quantile", "Rate", "Std"]
