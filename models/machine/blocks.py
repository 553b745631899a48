"""Machines with more metrics than one model takes: what the models of their blocks of metrics say, as one.

Each block has a model of its own. Cost and state of a model grow with the square of its metrics; with blocks of at most
so many metrics those of a machine grow with the number of its metrics only.
"""

from __future__ import annotations

import math

import numpy as np

from models.kernels import kernel
from models.numbers.arrays import Array, Ints

LARGEST_BLOCK = 32
"""Metrics of a block at most."""


def join_blocks(first: Ints, evidence: Array, metrics: Array) -> tuple[Array, Array]:
    """-ln of the weighted harmonic mean of the blocks' probabilities: valid however the blocks depend on one another.

    Args:
        first: Number of the first block of each of m machines, whose blocks are adjacent; and the number of all blocks
            at the end; shape (m + 1,).
        evidence: Of each block, in nats, at least 0, shape (b,).
        metrics: Of each block, how many metrics have a value: its weight, shape (b,). A block without any does not
            count, unless no block has one.

    Returns:
        The evidence of each machine, shape (m,), and of each block, its share in that of its machine, shape (b,).

    Source: D. J. Wilson, The harmonic mean p-value for combining dependent tests, PNAS 116 (2019).

    >>> evidence, share = join_blocks(np.array([0, 1, 3]), np.array([5.0, 12.0, 0.5]), np.array([9.0, 30.0, 10.0]))
    >>> evidence.round(2), share.round(2)  # of the second machine 12 - ln(40 / 30)
    (array([ 5.  , 11.71]), array([1., 1., 0.]))
    """
    whole, shares = np.empty(len(first) - 1), np.empty(len(evidence))
    run(first, evidence, metrics, whole, shares)
    return whole, shares


@kernel
def run(first: Ints, evidence: Array, metrics: Array, whole: Array, shares: Array) -> None:
    """As `join_blocks`, which hands on what is to be written: ``whole``, shape (m,), and ``shares``, shape (b,)."""
    for i in range(len(whole)):
        begin, end = first[i], first[i + 1]
        there, top, total = metrics[begin:end].sum(), -math.inf, 0.0
        for j in range(begin, end):
            weight = metrics[j] / there if there > 0 else 1.0 / (end - begin)
            shares[j] = evidence[j] + math.log(weight) if weight > 0 else -math.inf
            top = max(top, shares[j])
        for j in range(begin, end):
            shares[j] = math.exp(shares[j] - top)
            total += shares[j]
        for j in range(begin, end):
            shares[j] /= total
        whole[i] = max(top + math.log(total), 0.0)
