"""Asks the console of this container whether the pipeline is well; the exit code is the answer, for Docker.

It runs every few seconds, so it imports nothing but the standard library.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy cannot reach our own address


def problem(port: str, timeout: float = 8.0) -> str:
    """Why the pipeline is not well, or ``""``.

    Args:
        port: Port of the console at 127.0.0.1.
        timeout: Longest time to wait for the answer, seconds.
    """
    try:
        with _DIRECT.open(f"http://127.0.0.1:{port}/health", timeout=timeout):
            return ""
    except urllib.error.HTTPError as error:
        return error.read(500).decode(errors="replace")
    except OSError as error:
        return f"no console at port {port}: {error}"


if __name__ == "__main__":
    sys.exit(problem(os.environ.get("NEWNORMAL_CONSOLE__PORT", "8880")) or 0)
