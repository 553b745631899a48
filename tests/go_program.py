"""Builds a program from its Go module, once; it stays in the user's cache.

Go checks the bytes of all modules against its public database of checksums. What it has compiled when its time is over
stays in its own cache, so another call goes on there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from engine.locks import locked


def build(target: Path, package: str, options: Sequence[str], seconds: float) -> Path:
    """The path of a program, after building it if it is not there yet; safe in several processes at once.

    Args:
        target: Where the program is kept.
        package: Its package with its version, such as ``example.org/tool/cmd/tool@v1.2.3``.
        options: Of ``go install``.
        seconds: For how long Go may work.

    Raises:
        OSError: There is no Go.
        subprocess.SubprocessError: Go could not fetch or compile the module, and has said why; or it took too long.
    """
    with locked(target.parent / ".lock"):
        if not target.exists():
            go = shutil.which("go", path=f"{os.environ.get('PATH', '')}:/usr/local/go/bin")
            if go is None:
                raise FileNotFoundError("no Go is installed")
            with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                environment = os.environ | {"GOBIN": folder, "CGO_ENABLED": "0"}
                subprocess.run(
                    [go, "install", "-trimpath", *options, package], env=environment, check=True, timeout=seconds
                )
                name = package.partition("@")[0].rpartition("/")[2]
                Path(folder, name).rename(target)
    return target
