"""The Docker engine and the image of this tree, which all tests of the stack share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import docker
import pytest
from docker.errors import DockerException

from deploy.compose.project import Stack


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """This machine's engine; without one, nothing of this folder is tested."""
    try:
        client = docker.from_env(timeout=120)
    except DockerException as error:
        pytest.skip(f"NOT TESTED: no Docker engine answers, so the stack was not started. {error}")
    yield client
    client.close()


@pytest.fixture(scope="session")
def image(engine: docker.DockerClient) -> docker.models.images.Image:
    """The image, built from this tree."""
    stack = Stack(embedded=True, environ={"IMAGE": os.environ.get("IMAGE", "newnormal:test")})
    began = time.monotonic()
    assert stack.run("build", "pipeline").returncode == 0, "the lines above say why the image could not be built"
    print(f"built the image in {time.monotonic() - began:.0f} s")
    return engine.images.get(stack.variables["IMAGE"])
