"""Which set of replicas a generated name belongs to, as Kubernetes and Docker Swarm generate names.

A replica that is replaced gets a new name, of which only the end is new. What is known of its predecessors is of use to
it, so all replicas of a set have one place; see `engine.columns.partitioning`.

Sources: ``k8s.io/apimachinery/pkg/util/rand`` (the alphabet of generated ends), the Kubernetes documentation of
Deployment, StatefulSet, DaemonSet, Job and CronJob (how their pods are named), and Docker's of service tasks.
"""

from __future__ import annotations

import re
from functools import lru_cache

_LETTERS = "[bcdfghjklmnpqrstvwxz2456789]"
END = f"{_LETTERS}{{5}}"
"""What a set of replicas or a job appends to its name for a pod, after a hyphen."""
HASH, MINUTES = rf"-{_LETTERS}{{7,10}}", "-[0-9]{8,10}"
"""What a deployment appends to its name for a replica set, and a cron job for a job."""
_DEPLOYMENT = rf"{HASH}-{END}"
_CRON_JOB = rf"{MINUTES}-{END}"
_IN_NAMESPACE = rf"-(?:{END}|[0-9]{{1,4}})"
_SWARM = r"\.[0-9]{1,5}\.[a-z0-9]{25}"
_GENERATED = re.compile(
    rf"(?P<set>[^/]+/[^/]*?[^/-])(?:{_DEPLOYMENT}|{_CRON_JOB}|{_IN_NAMESPACE})"
    rf"|(?P<alone>.*[^-.])(?:{_DEPLOYMENT}|{_CRON_JOB}|{_SWARM})"
)
_LONGEST = 512


@lru_cache(maxsize=1 << 17)
def replicas_of(name: str) -> str | None:
    """The name of the set of replicas that a generated name belongs to; ``None`` if the name is not generated.

    What any name might end with, such as an ordinal, counts only after a namespace (``namespace/name``): machines
    ``web-1`` to ``web-900`` are no replicas.

    >>> replicas_of("shop/cart-7d4b9c6f5-x2x7p"), replicas_of("cart-7d4b9c6f5-x2x7p"), replicas_of("shop/db-0")
    ('shop/cart', 'cart', 'shop/db')
    >>> replicas_of("kube-system/proxy-zk5t2"), replicas_of("shop/report-29384700-q8d7f")
    ('kube-system/proxy', 'shop/report')
    >>> replicas_of("web.1.q4w5e6r7t8y9u1i2o3p4a5s6d"), replicas_of("web-1"), replicas_of("ingress-https")
    ('web', None, None)
    """
    if len(name) > _LONGEST or not (found := _GENERATED.fullmatch(name)):
        return None
    return found["set"] or found["alone"]
