"""Builds Telegraf, of which Debian has no package, from its Go module, with only the plugins that the tests need.

``python -m tests.agents.telegraf`` does so once; the program stays in the user's cache.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.java import cache_dir
from tests import go_program

VERSION = "1.37.2"
PLUGINS = (
    *("inputs.cpu", "inputs.kernel", "inputs.mem", "inputs.net", "inputs.system"),
    *("outputs.kafka", "serializers.influx", "serializers.json"),
)
_MODULE = "github.com/influxdata/telegraf"
_TAGS = ",".join(("custom", *PLUGINS))
_SECONDS = 300
"""For how long Go may work."""


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
    """The path of the program, after building it if need be; raises as `tests.go_program.build`."""
    version = f"-ldflags=-s -w -X {_MODULE}/internal.Version={VERSION}"
    return go_program.build(program(), f"{_MODULE}/cmd/telegraf@v{VERSION}", [version, "-tags", _TAGS], _SECONDS)


def main() -> None:
    """Builds it."""
    try:
        print(build())
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"Telegraf could not be built: {error}; its test will be skipped")


if __name__ == "__main__":
    main()
