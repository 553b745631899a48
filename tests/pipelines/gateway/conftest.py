"""A Kafka for the tests of the gateway, started once; some of them hang it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deploy.embedded import services
from deploy.progress import silent
from pipelines.contracts.settings import load
from tests.pipelines.gateway.broker import Broker


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = load(state_dir=tmp_path_factory.mktemp("kafka"))
    running = services.up(settings, elasticsearch=False, say=silent)
    try:
        yield Broker(running.endpoints.settings(settings))
    finally:
        services.down(settings)
