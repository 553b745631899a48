"""The small programs of the image: what it installs, what it leaves out, and its health check."""

from __future__ import annotations

import json
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import pytest

from deploy.embedded.ports import HOST
from deploy.image.dependencies import dependencies
from deploy.image.health import problem
from deploy.image.slim import keep_one_machine, unused
from deploy.image.slim import main as slim

ROOT = Path(__file__).parents[3]


def test_the_image_installs_what_the_package_requires_and_nothing_for_development() -> None:
    named = dependencies(ROOT / "pyproject.toml")
    assert "pyspark==4.2.1" in named
    assert not {"pytest", "ruff", "mypy", "playwright"} & set(named)


def test_what_is_left_out_of_the_image_exists_under_these_names_in_the_pinned_packages() -> None:
    packages = Path(str(metadata.distribution("pyspark").locate_file("")))
    found = {path.relative_to(packages).as_posix() for path in unused(packages)}
    assert {"pandas/tests", "pyspark/jars/connect-repl"} <= found
    assert not any(name.startswith("pyspark/jars/spark-sql") for name in found)


def test_only_what_is_listed_is_deleted(tmp_path: Path) -> None:
    packages = tmp_path / "lib/python3.11/site-packages"
    for name in ("pandas/tests/a.py", "pandas/core/a.py", "scipy/stats/tests/a.py", "scipy/stats/a.py"):
        (packages / name).parent.mkdir(parents=True) if not (packages / name).parent.exists() else None
        (packages / name).write_text("x")
    slim(tmp_path)
    left = {path.relative_to(packages).as_posix() for path in packages.rglob("*.py")}
    assert left == {"pandas/core/a.py", "scipy/stats/a.py"}


@pytest.mark.parametrize(
    ("machine", "kept"),
    [
        ("x86_64", {"librocksdbjni-linux64.so", "linux/amd64/libzstd-jni.so", "native/Linux/x86_64/libsnappyjava.so"}),
        ("aarch64", {"librocksdbjni-linux-aarch64.so", "linux/aarch64/libzstd-jni.so"}),
    ],
)
def test_of_the_libraries_in_a_jar_those_of_this_machine_stay(machine: str, kept: set[str], tmp_path: Path) -> None:
    others = {
        "librocksdbjni-linux64-musl.so", "librocksdbjni-linux32.so", "librocksdbjni-osx-arm64.jnilib",
        "linux/ppc64/libzstd-jni.so", "freebsd/amd64/libzstd-jni.so", "native/Linux/x86_64-musl/libsnappyjava.so",
        "native/Linux/android-aarch64/libsnappyjava.so", "darwin/aarch64/liblz4-java.dylib", "win/amd64/a.dll",
    }  # fmt: skip
    here = {"librocksdbjni-linux64.so", "linux/amd64/libzstd-jni.so", "native/Linux/x86_64/libsnappyjava.so"}
    there = {"librocksdbjni-linux-aarch64.so", "linux/aarch64/libzstd-jni.so"}
    jar = tmp_path / "some.jar"
    with zipfile.ZipFile(jar, "w") as written:
        for name in sorted(here | there | others | {"org/rocksdb/Linux64.class"}):
            written.writestr(name, name)
    keep_one_machine(jar, machine)
    with zipfile.ZipFile(jar) as read:
        assert set(read.namelist()) == kept | {"org/rocksdb/Linux64.class"}
        assert all(read.read(name).decode() == name for name in read.namelist())


def test_the_health_check_asks_the_console_and_tells_its_reasons() -> None:
    status = [200]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status[0] if self.path == "/health" else 404)
            self.end_headers()
            self.wfile.write(json.dumps({"reasons": ["kafka: no answer for 15 s"]}).encode())

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = str(server.server_port)
        assert problem(port) == ""
        status[0] = 503
        assert "no answer for 15 s" in problem(port)
        server.shutdown()
    assert f"nothing answers at port {port}" in problem(port)
