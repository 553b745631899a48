"""A Kafka for the tests of the gateway, started once; some of them hang it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import httpx
import pytest

from deploy.embedded import services
from deploy.progress import silent
from pipelines.contracts.settings import Settings, load
from pipelines.gateway.serving import Gateway
from tests.pipelines.gateway.broker import Broker

_NUMBERS = count()


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = load(state_dir=tmp_path_factory.mktemp("kafka"))
    running = services.up(settings, elasticsearch=False, say=silent)
    try:
        yield Broker(running.endpoints.settings(settings))
    finally:
        services.down(settings)


@pytest.fixture
def own(broker: Broker) -> Settings:
    """Settings with a namespace of the test's own."""
    return broker.named(f"own-{next(_NUMBERS)}")


@pytest.fixture
def gateway(own: Settings) -> Iterator[httpx.Client]:
    """A client of a gateway that writes to `own`."""
    started = Gateway(own)
    with httpx.Client(base_url=started.url, timeout=60) as client:
        yield client
    started.close()
