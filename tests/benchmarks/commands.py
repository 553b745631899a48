"""The benchmarks as commands: `newnormal bench` hands its command line over to them."""

from __future__ import annotations

from tests.benchmarks import accuracy_commands, speed_commands  # noqa: F401  their commands are those of the app
from tests.benchmarks.command_line import app

__all__ = ["app"]
