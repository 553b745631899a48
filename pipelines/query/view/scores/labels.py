"""The labels of a series: machine, metric, the version of the detector, and its tags, each with a prefix.

The label ``metric`` is the whole name, with the tags in it, so that no two series have the same labels, whatever the
tags are. A tag becomes ``tag_NAME``: it can take the place of no other label, neither of ours nor of Prometheus'.
"""

from __future__ import annotations

import re
from functools import lru_cache

_MOST_TAGS = 20
_TAG = re.compile(r",(?=[^,={}]+=)")
"""Between two tags: a comma in a value is followed by no name and ``=``, or begins a tag of its own."""
_NO_NAME = re.compile(r"[^a-zA-Z0-9_]")
_KEPT = 1 << 17


@lru_cache(_KEPT)
def labels(entity: str, metric: str, version: str) -> tuple[tuple[str, str], ...]:
    """Names and values of the labels of a series, in the order of the names; none has an empty value.

    Args:
        entity: The machine.
        metric: The metric, with its tags in braces if it has any.
        version: The version of the chain that has judged it.

    >>> labels("web-1", "disk{fs-type=ext4}", "v1")
    (('machine', 'web-1'), ('metric', 'disk{fs-type=ext4}'), ('tag_fs_type', 'ext4'), ('version', 'v1'))
    """
    found = {"machine": entity, "metric": metric, "version": version}
    name, brace, inside = metric.partition("{")
    if name and brace and inside.endswith("}"):
        for tag in _TAG.split(inside[:-1])[:_MOST_TAGS]:
            key, _, value = tag.partition("=")
            if key:
                found.setdefault(f"tag_{_NO_NAME.sub('_', key)}", value)
    return tuple(sorted((name, value) for name, value in found.items() if value))
