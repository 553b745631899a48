"""The owner's side of a supervisor: starts it, reads its messages, stops or detaches it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from deploy.embedded import state_file
from deploy.embedded.start_plan import AnyServer
from deploy.embedded.supervisor import STOP_SECONDS
from deploy.progress import Say
from engine.spec.errors import NewnormalError


class Owned:
    """A supervisor started by us, and the servers under it.

    Args:
        state: The state directory, which exists.
        servers: What to start.
    """

    def __init__(self, state: Path, servers: Sequence[AnyServer]) -> None:
        self._state = state
        fields = {server.name: asdict(server) for server in servers}
        plan = {"state": str(state), "servers": fields, "owner": os.getpid()}
        with (self._state / "logs" / "supervisor.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "deploy.embedded.supervisor", json.dumps(plan)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._state,  # not a directory that may go away, or hold modules of the same names
                start_new_session=True,  # a Ctrl-C in the terminal is for us: we then stop it in order
            )

    def wait(self, say: Say) -> state_file.Running | None:
        """Waits until all servers are ready; ``None`` if another supervisor was quicker."""
        assert self._process.stdout
        began = time.monotonic()
        try:
            for line in self._process.stdout:
                event = json.loads(line)
                if event["event"] == "waiting":
                    say(f"waiting for {' and '.join(event['servers'])}, {time.monotonic() - began:.0f} s")
                elif event["event"] == "ready":
                    return state_file.read(self._state)
                elif event["event"] == "error":
                    raise NewnormalError(*event["error"])
                elif event["event"] == "busy":
                    self.stop()
                    return None
            raise NewnormalError(
                "SERVER_FAILED", "the supervisor ended before the servers were up",
                str(self._state / "logs" / "supervisor.log"), "see the log", "no server is running",
            )  # fmt: skip
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stops the servers and waits for that."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS + 10)
        finally:
            self._process.stdout.close()

    def detach(self) -> state_file.Running:
        """Detaches the supervisor: its servers go on after this process."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(b"detach\n")
        self._process.stdin.flush()
        self._process.stdout.readline()
        running = state_file.read(self._state)
        if running is None:
            raise NewnormalError(
                "SERVER_FAILED", "the servers ended", str(self._state / "logs"), "see the logs", "not running"
            )
        self._process.returncode = 0  # no longer ours to wait for
        return running
