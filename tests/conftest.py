"""Fixtures that tests of every part share: settings of one's own, and real servers, started once when first needed."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from hypothesis import Phase
from hypothesis import settings as hypothesis

from deploy.embedded.elasticsearch import runtime_dir
from deploy.embedded.endpoints import Endpoints
from deploy.embedded.services import embedded
from deploy.progress import silent
from engine.address import client_options
from pipelines.contracts.settings import Settings, load

hypothesis.register_profile("same", derandomize=True, deadline=None)
hypothesis.register_profile("random", deadline=None)
hypothesis.register_profile("no shrinking", derandomize=True, deadline=None, phases=(Phase.explicit, Phase.generate))
hypothesis.load_profile(os.environ.get("NEWNORMAL_HYPOTHESIS", "same"))
"""Two runs of one commit judge the same examples; ``NEWNORMAL_HYPOTHESIS=random`` looks for new ones. With
``no shrinking``, which mutants are judged with, the first example that fails is not simplified."""


_STATE = tempfile.TemporaryDirectory(prefix="newnormal-state-")
os.environ["NEWNORMAL_STATE_DIR"] = _STATE.name
"""The state folder where a test names none: that of the developer may have numbers with which a demo began there."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips each slow test that would begin after ``SLOW_TESTS_UNTIL`` (seconds since 1970)."""
    if item.get_closest_marker("slow") and time.time() > float(os.environ.get("SLOW_TESTS_UNTIL", "inf")):
        pytest.skip("NOT TESTED: this run's time is used up, as the machine is slow; `make test-slow` runs it")


@pytest.fixture(scope="session")
def endpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    """A real Kafka and a real Elasticsearch for the whole session; name topics and indices so that they are yours."""
    state = tmp_path_factory.mktemp("servers")
    try:
        with embedded(load(state_dir=state, **{"engine.jvm_optimizes": "never"}), say=silent) as started:
            yield _with_its_login(started)
    finally:
        shutil.rmtree(runtime_dir(state / "elasticsearch"), ignore_errors=True)


def _with_its_login(started: Endpoints) -> Endpoints:
    """The same with user and password in the URL, so that any client of Elasticsearch is let in."""
    user, word = client_options(started.elasticsearch_url)["basic_auth"]
    return replace(started, elasticsearch_url=str(started.elasticsearch_url).replace("//", f"//{user}:{word}@"))


@pytest.fixture(autouse=True)
def plain_log() -> Iterator[None]:
    """What a command run in this process made of the log ends with its test: its streams are closed by then."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Default settings with a state directory of the test's own; ``endpoints.settings(settings)`` adds the servers."""
    return load(state_dir=tmp_path / "state")
