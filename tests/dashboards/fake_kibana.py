"""A server that answers as Kibana's API documentation says: status, spaces, export and import of saved objects."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "ApiKey c2VjcmV0"


@dataclass
class Held:
    """What the server holds: objects by space, type and id; and how often something was imported."""

    version: str = "8.19.3"
    spaces: tuple[str, ...] = ("default", "ops")
    objects: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    imports: int = 0
    writable: bool = True
    url: str = ""


@contextmanager
def kibana(held: Held) -> Iterator[Held]:
    """Runs the server at a free port of this machine."""
    handler = type("Handler", (_Handler,), {"held": held})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    held.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    held: Held

    def do_GET(self) -> None:
        if self._unknown():
            return
        if self.path == "/api/status":
            self._send(200, {"name": "kibana", "version": {"number": self.held.version}})
        elif self.path.startswith("/api/spaces/space/"):
            name = self.path.rsplit("/", 1)[1]
            known = name in self.held.spaces
            self._send(200 if known else 404, {"id": name} if known else {"statusCode": 404, "error": "Not Found"})
        else:
            self._send(404, {"statusCode": 404})

    def do_POST(self) -> None:
        if self._unknown():
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if "kbn-xsrf" not in self.headers:
            self._send(400, {"statusCode": 400, "message": "Request must contain a kbn-xsrf header."})
            return
        address = urlsplit(self.path)
        space = address.path.split("/")[2] if address.path.startswith("/s/") else "default"
        if address.path.endswith("/_export"):
            self._export(space, json.loads(body))
        else:
            self._import(space, body, parse_qs(address.query))

    def _export(self, space: str, wanted: dict[str, Any]) -> None:
        keys = [(space, each["type"], each["id"]) for each in wanted["objects"]]
        absent = [key for key in keys if key not in self.held.objects]
        if absent:
            errors = [{"type": t, "id": i, "error": {"statusCode": 404, "error": "Not Found"}} for _, t, i in absent]
            message = "Error fetching objects to export"
            self._send(400, {"statusCode": 400, "message": message, "attributes": {"objects": errors}})
            return
        lines = [json.dumps(self.held.objects[key]) for key in keys]
        self._reply(200, "\n".join(lines).encode(), "application/ndjson")

    def _import(self, space: str, body: bytes, query: dict[str, list[str]]) -> None:
        if not self.held.writable:
            self._send(403, {"statusCode": 403, "message": "Unable to bulk_create dashboard"})
            return
        part = body.split(b"\r\n\r\n", 1)[1].rsplit(b"\r\n--", 1)[0]
        objects = [json.loads(line) for line in part.splitlines() if line]
        taken = [each for each in objects if (space, each["type"], each["id"]) in self.held.objects]
        if taken and query.get("overwrite") != ["true"]:
            errors = [{"id": each["id"], "error": {"type": "conflict"}} for each in taken]
            self._send(200, {"success": False, "successCount": 0, "errors": errors})
            return
        self.held.imports += 1
        for each in objects:
            if each["type"] == "dashboard":  # a default that a later Kibana adds when it migrates an object
                each["attributes"]["controlGroupInput"].setdefault("autoApply", True)
            each |= {"updated_at": f"2026-01-01T00:00:{self.held.imports:02}Z", "version": f"W{self.held.imports}"}
            self.held.objects[space, each["type"], each["id"]] = each
        self._send(200, {"success": True, "successCount": len(objects)})

    def _unknown(self) -> bool:
        if self.headers.get("Authorization") == KEY:
            return False
        self._send(401, {"statusCode": 401, "message": "missing authentication credentials"})
        return True

    def _send(self, status: int, body: dict[str, Any]) -> None:
        self._reply(status, json.dumps(body).encode(), "application/json")

    def _reply(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing: the test's output is not the server's log."""
