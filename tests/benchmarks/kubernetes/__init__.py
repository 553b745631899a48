"""A simulated Kubernetes for a week: what incidents say of it, beside what happened."""

from tests.benchmarks.kubernetes.bench import run

__all__ = ["run"]
