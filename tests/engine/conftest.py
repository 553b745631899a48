"""Fixtures of the engine's tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.testing import Driven


@pytest.fixture(scope="session")
def driven() -> Callable[..., Driven]:
    """The operator's driver: ``driven(job, shards=2).run(batches)``."""
    return Driven
