"""Asks the console, or the gateway, of this container whether it is well; the exit code is the answer, for Docker.

It runs every few seconds, so it imports nothing but the standard library.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy cannot reach our own address


def problem(port: str, timeout: float = 8.0) -> str:
    """Why the pipeline or the gateway is not well, or ``""``.

    Args:
        port: Port of the console or the gateway at 127.0.0.1.
        timeout: Longest time to wait for the answer, seconds.
    """
    try:
        with _DIRECT.open(f"http://127.0.0.1:{port}/health", timeout=timeout):
            return ""
    except urllib.error.HTTPError as error:
        return error.read(500).decode(errors="replace")
    except OSError as error:
        return f"nothing answers at port {port}: {error}"


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("NEWNORMAL_CONSOLE__PORT", "8880")
    sys.exit(problem(given) or 0)
