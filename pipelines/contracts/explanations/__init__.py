"""A novelty in words, for a person who is woken by it: what is unusual, what is usual, and since when.

The detector puts them into `message`, and the figures behind them into `details`, of what is news; the console shows
them of any document, as plain text.
"""

from pipelines.contracts.explanations.explanation import explain, explained

__all__ = ["explain", "explained"]
