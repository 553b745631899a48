"""Builds Telegraf, of which Debian has no package, from its Go module, with only the plugins that the tests need.

``python -m tests.agents.telegraf`` does so once; the program stays in the user's cache. Go checks the bytes of all
modules against its public database of checksums.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from deploy.java import cache_dir
from engine.locks import locked

VERSION = "1.37.2"
PLUGINS = (
    *("inputs.cpu", "inputs.kernel", "inputs.mem", "inputs.net", "inputs.system"),
    *("outputs.kafka", "serializers.influx", "serializers.json"),
)
_MODULE = "github.com/influxdata/telegraf"
_TAGS = ",".join(("custom", *PLUGINS))
_SECONDS = 300
"""For how long Go may work. What it has compiled by then stays in its own cache, so another call goes on there."""


def program() -> Path:
    """Where the program is kept; another version or another choice of plugins has another place."""
    digest = hashlib.sha256(_TAGS.encode()).hexdigest()[:8]
    return cache_dir() / "agents" / f"telegraf-{VERSION}-{digest}"


def built() -> Path:
    """The program; the test is skipped, saying what to do, if it has not been built here."""
    if not program().exists():
        pytest.skip(
            "Telegraf is not built here; with Go 1.25 or newer: python -m tests.agents.telegraf (some minutes, once)"
        )
    return program()


def build() -> Path:
    """The path of the program, after building it if it is not there yet; safe in several processes at once.

    Raises:
        OSError: There is no Go.
        subprocess.SubprocessError: Go could not fetch or compile the module, and has said why; or it took too long.
    """
    target = program()
    with locked(target.parent / ".lock"):
        if not target.exists():
            go = shutil.which("go", path=f"{os.environ.get('PATH', '')}:/usr/local/go/bin")
            if go is None:
                raise FileNotFoundError("no Go is installed")
            with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                version = f"-ldflags=-s -w -X {_MODULE}/internal.Version={VERSION}"
                package = f"{_MODULE}/cmd/telegraf@v{VERSION}"
                subprocess.run(
                    [go, "install", "-trimpath", version, "-tags", _TAGS, package],
                    env=os.environ | {"GOBIN": folder, "CGO_ENABLED": "0"}, check=True, timeout=_SECONDS,
                )  # fmt: skip
                Path(folder, "telegraf").rename(target)
    return target


def main() -> None:
    """Builds it."""
    try:
        print(build())
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"Telegraf could not be built: {error}; its test will be skipped")


if __name__ == "__main__":
    main()
