"""One moment in several units."""

T0 = 1_795_220_820_013
"""Epoch milliseconds."""

US, NS = T0 * 1_000, T0 * 1_000_000
