"""A real server of the S3 protocol: Versity's gateway, built from its Go module, with its objects in a folder.

``python -m tests.s3`` builds it once; the program stays in the user's cache.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.java import cache_dir
from tests import go_program

VERSION = "1.8.0"
BUCKET = "newnormal-test"
_PACKAGE = f"github.com/versity/versitygw/cmd/versitygw@v{VERSION}"
_BUILD_SECONDS = 600
"""For how long Go may work."""
_START_SECONDS = 30


@dataclass(frozen=True)
class Store:
    """An S3 server that runs.

    Attributes:
        endpoint: Its address.
        folder: Where it keeps each object as a file, below a folder for each bucket.
        login: The environment variables with which Amazon's SDK logs in.
    """

    endpoint: str
    folder: Path
    login: dict[str, str]

    @property
    def options(self) -> dict[str, str]:
        """What Hadoop's client must be told."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }


@contextmanager
def s3(folder: Path) -> Iterator[Store]:
    """An S3 server with one empty bucket that lives as long as the block."""
    (folder / BUCKET).mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    login = {"AWS_ACCESS_KEY_ID": "newnormal", "AWS_SECRET_ACCESS_KEY": "a-secret-of-this-test"}
    roots = {"ROOT_ACCESS_KEY": login["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_KEY": login["AWS_SECRET_ACCESS_KEY"]}
    command = [str(built()), "--port", f"127.0.0.1:{port}", "--keep-alive", "posix", str(folder)]
    with (folder.parent / "s3.log").open("wb") as log:
        server = subprocess.Popen(command, env=os.environ | roots, stdout=log, stderr=log)
    try:
        _wait(server, port)
        yield Store(f"http://127.0.0.1:{port}", folder, login)
    finally:
        server.kill()
        server.wait()


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert server.poll() is None and time.monotonic() < deadline, "the S3 server did not start"
            time.sleep(0.1)


def program() -> Path:
    """Where the program is kept."""
    return cache_dir() / "agents" / f"versitygw-{VERSION}"


def built() -> Path:
    """The program; the test is skipped, saying what to do, if it has not been built here."""
    if not program().exists():
        pytest.skip("no S3 server is built here; with Go 1.25 or newer: python -m tests.s3 (some minutes, once)")
    return program()


def build() -> Path:
    """The path of the program, after building it if need be; raises as `tests.go_program.build`."""
    return go_program.build(program(), _PACKAGE, ["-ldflags=-s -w"], _BUILD_SECONDS)


def main() -> None:
    """Builds it."""
    try:
        print(build())
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"The S3 server could not be built: {error}; its tests will be skipped")


if __name__ == "__main__":
    main()
