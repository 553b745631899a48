"""Grafana over HTTP: its version, folders, data sources and dashboards.

The requests are those of grafana-client, which is not used (docs/decisions/0018-grafana-over-httpx.md).
"""

from __future__ import annotations

from typing import Any

import httpx

from engine.spec.errors import NewnormalError

Model = dict[str, Any]

ACCEPTED = "Grafana 10.4 or newer"
_NOW = "nothing was changed, or the rest of what was to be installed is missing: say the command again"


class Grafana:
    """A Grafana.

    Args:
        url: Its address, with its path if it has one.
        headers: Who asks.

    Raises:
        NewnormalError: ``DASHBOARD_SERVER_UNREACHABLE``, ``DASHBOARD_SERVER_FORBIDDEN`` or ``DASHBOARD_SERVER_REFUSED``
            (all methods).
    """

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._url = url
        try:
            self._client = httpx.Client(base_url=f"{url.rstrip('/')}/api", headers=headers, timeout=60, trust_env=False)
        except httpx.InvalidURL as error:
            raise self._unreachable(str(error)) from None

    def check(self) -> str:
        """Its version.

        Raises:
            NewnormalError: ``DASHBOARD_SERVER_VERSION``.
        """
        version = str((self._ask("GET", "/health") or {}).get("version", ""))
        try:
            major, minor = (int(part) for part in version.split(".")[:2])
        except ValueError:
            raise self._refused("what answers is no Grafana, or does not tell its version") from None
        if (major, minor) < (10, 4):
            raise NewnormalError("DASHBOARD_SERVER_VERSION", f"it is Grafana {version}", self._url, ACCEPTED, _NOW)
        return version

    def folder(self, uid: str) -> bool:
        """Whether there is a folder."""
        return self._ask("GET", f"/folders/{uid}") is not None

    def make_folder(self, uid: str, title: str) -> None:
        """Creates a folder."""
        self._ask("POST", "/folders", {"uid": uid, "title": title})

    def data_source(self, uid: str) -> Model | None:
        """A data source."""
        return self._ask("GET", f"/datasources/uid/{uid}")

    def make_data_source(self, model: Model) -> None:
        """Creates a data source."""
        self._ask("POST", "/datasources", model)

    def dashboard(self, uid: str) -> tuple[Model, str] | None:
        """A dashboard and the uid of its folder."""
        found = self._ask("GET", f"/dashboards/uid/{uid}")
        return (found["dashboard"], found["meta"].get("folderUid", "")) if found else None

    def put_dashboard(self, model: Model, folder: str, message: str) -> None:
        """Creates a dashboard, or makes a new version of it.

        Args:
            model: Its JSON model.
            folder: Uid of its folder.
            message: What the list of versions says.
        """
        body = {"dashboard": {**model, "id": None}, "folderUid": folder, "message": message, "overwrite": True}
        self._ask("POST", "/dashboards/db", body)

    def close(self) -> None:
        """Ends the connection."""
        self._client.close()

    def _ask(self, method: str, path: str, body: Model | None = None) -> Model | None:
        """The answer; ``None`` if there is no such thing."""
        try:
            reply = self._client.request(method, path, json=body)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise self._unreachable(str(error)) from None
        try:
            found = reply.json()
        except ValueError:
            found = {}
        why = found.get("message", reply.status_code) if isinstance(found, dict) else reply.status_code
        if reply.status_code in (401, 403):
            accepted = (
                "GRAFANA_CREDENTIALS or --credentials: an account that may write folders, data sources, dashboards"
            )
            what = f"{reply.status_code} for {method} {path}: {why}"
            raise NewnormalError("DASHBOARD_SERVER_FORBIDDEN", what, self._url, accepted, _NOW)
        if reply.status_code == 404 and method == "GET":
            return None
        if reply.status_code != 200 or not isinstance(found, dict):
            raise self._refused(f"{method} {path}: {why}")
        return found

    def _unreachable(self, why: str) -> NewnormalError:
        return NewnormalError("DASHBOARD_SERVER_UNREACHABLE", why, self._url, "http://host:port of a Grafana", _NOW)

    def _refused(self, why: str) -> NewnormalError:
        return NewnormalError("DASHBOARD_SERVER_REFUSED", why, self._url, ACCEPTED, "see what it says")
