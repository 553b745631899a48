"""The explanation of a novelty in words, for the operator on call: what is unusual, what is usual, and since when.

The detector writes the explanation into the field `message` of each verdict that is news, and the figures behind it
into the field `details`. The console explains any document of the index in the same words.
"""

from pipelines.contracts.explanations.explanation import explain, explained

__all__ = ["explain", "explained"]
