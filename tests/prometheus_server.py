"""A real Prometheus for tests, with history of its own where they give it one; without the program they are skipped."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.agents.agents import free_port

Labels = tuple[tuple[str, str], ...]
History = Mapping[Labels, list[tuple[int, float]]]
"""Times (epoch milliseconds) and values by labels, of which ``__name__`` is one."""


def programs() -> tuple[str, str]:
    """The paths of ``prometheus`` and ``promtool``."""
    found = shutil.which("prometheus"), shutil.which("promtool")
    if not (found[0] and found[1]):
        pytest.skip("no Prometheus is installed here; Debian: apt-get install --no-install-recommends prometheus")
    return found[0], found[1]


def open_metrics(history: History) -> str:
    """The history as text of OpenMetrics, without types: names stay as they are."""
    lines = []
    for name in sorted({dict(labels)["__name__"] for labels in history}):
        for labels, samples in history.items():
            if dict(labels)["__name__"] == name:
                inside = ",".join(f'{key}="{value}"' for key, value in labels if key != "__name__")
                lines += [f"{name}{{{inside}}} {value!r} {time / 1000:.3f}" for time, value in samples]
    return "\n".join([*lines, "# EOF", ""])


@contextmanager
def prometheus(
    folder: Path, history: History | None = None, *options: str, config: str = "global: {}\n"
) -> Iterator[str]:
    """The address of a Prometheus.

    Args:
        folder: For its files.
        history: What it has.
        options: Further options of the program.
        config: The content of its configuration.
    """
    program, tool = programs()
    data, text, file = folder / "data", folder / "history.om", folder / "prometheus.yml"
    folder.mkdir(parents=True, exist_ok=True)
    if history:
        text.write_text(open_metrics(history))
        made = [tool, "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)]
        subprocess.run(made, check=True, capture_output=True, timeout=300)
    file.write_text(config)
    address = f"127.0.0.1:{free_port()}"
    words = [program, f"--config.file={file}", f"--storage.tsdb.path={data}", f"--web.listen-address={address}"]
    words += ["--storage.tsdb.retention.time=10y", *options]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                if httpx.get(f"http://{address}/-/ready").status_code == 200:
                    break
            except httpx.HTTPError:
                pass
            if time.monotonic() > deadline or server.poll() is not None:
                pytest.fail((folder / "log").read_text()[-3000:])
            time.sleep(0.1)
        yield f"http://{address}"
    finally:
        server.terminate()
        server.wait(30)
