"""The servers of these tests: a broker with TLS, logins and ACLs, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.security.broker import SecureKafka, secure_kafka


@pytest.fixture(scope="session")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    """A real broker that wants a login."""
    with secure_kafka(tmp_path_factory.mktemp("secure")) as kafka:
        yield kafka
