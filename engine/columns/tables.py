"""Helpers for tables."""

from __future__ import annotations

import polars as pl


def stacked(*tables: pl.DataFrame) -> pl.DataFrame:
    """Concatenates tables; those without rows are left out."""
    filled = [table for table in tables if table.height]
    return pl.concat(filled, how="diagonal_relaxed") if filled else pl.DataFrame()
