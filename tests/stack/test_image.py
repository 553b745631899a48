"""The image: how large it is, that it has everything in it, and that the demo runs in one container of it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import docker
import pytest
from docker.models.containers import Container

from tests.stack.running import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]

BYTES = 1_500_000_000
_COMPILED = """\
import gc, pathlib, models.compiled
from numba.core.registry import CPUDispatcher
kernels = [each for each in gc.get_objects() if isinstance(each, CPUDispatcher) and each.signatures]
sources = pathlib.Path(models.__file__).parent.rglob("*.py")
print(len(kernels), sum(sum(each.stats.cache_misses.values()) for each in kernels))
print(sum(each.stat().st_mtime_ns % 10**9 > 0 for each in sources))
"""


@contextmanager
def container(engine: docker.DockerClient, image: docker.models.images.Image, **options: Any) -> Iterator[Container]:
    """A container that is removed at the end of the block."""
    started = engine.containers.run(image, detach=True, init=True, **options)
    try:
        yield started
    finally:
        started.remove(force=True, v=True)


def test_it_is_small_and_runs_without_root_and_says_whether_it_is_well(image: docker.models.images.Image) -> None:
    print(f"{image.attrs['Size'] / 1e9:.2f} GB")
    assert image.attrs["Size"] <= BYTES
    config = image.attrs["Config"]
    assert config["User"] == "newnormal" and config["Healthcheck"]["Test"][0] == "CMD"


def test_the_models_are_compiled_in_it_even_after_it_was_sent_elsewhere(
    engine: docker.DockerClient, image: docker.models.images.Image
) -> None:
    began = time.monotonic()
    with container(engine, image, entrypoint=["python", "-c", _COMPILED], read_only=True, tmpfs={"/tmp": ""}) as ran:
        assert ran.wait(timeout=120)["StatusCode"] == 0, ran.logs().decode()
        kernels, compiled, unstable = map(int, ran.logs(stderr=False).split())
    print(f"loaded {kernels} kernels in {time.monotonic() - began:.1f} s")
    assert kernels and not compiled
    assert unstable == 0, "an image is sent with whole seconds, and Numba compiles anew what has another time"


def test_the_whole_demo_runs_in_one_container_that_has_no_way_out(
    engine: docker.DockerClient, image: docker.models.images.Image
) -> None:
    network = engine.networks.create(f"newnormal-test-{os.getpid()}", internal=True)
    try:
        with container(engine, image, command=["demo"], network=network.name, shm_size="512m") as demo:

            def health() -> str:
                demo.reload()
                assert demo.status == "running", demo.logs(tail=20).decode()
                return str(demo.attrs["State"]["Health"]["Status"])

            began = time.monotonic()
            wait_for(lambda: health() == "healthy", 180, "health")
            print(f"the demo is healthy after {time.monotonic() - began:.0f} s")
            wait_for(lambda: _incidents(demo) > 0, 180, "an incident")
            print(f"its first incident came after {time.monotonic() - began:.0f} s")
            demo.stop(timeout=90)
            demo.reload()
            said = demo.logs(tail=30).decode()
            assert demo.attrs["State"]["ExitCode"] == 0 and "What to try next" in said, said
    finally:
        network.remove()


def _incidents(demo: Container) -> int:
    code, said = demo.exec_run(["newnormal", "incidents", "list", "--json"])
    return len([json.loads(line) for line in said.splitlines()]) if code == 0 else 0
