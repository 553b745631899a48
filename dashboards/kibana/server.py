"""Kibana over HTTP: its version, its spaces, and export and import of saved objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx

from dashboards.kibana.identity import DEFAULT_SPACE
from engine.spec.errors import NewnormalError

SavedObject = dict[str, Any]

ACCEPTED = "Kibana 8.19 or 9"
_NOW = "nothing was changed"


class Kibana:
    """One space of a Kibana.

    Args:
        url: Its address, with its base path if it has one.
        space: Id of the space.
        headers: Who asks.

    Raises:
        NewnormalError: ``DASHBOARD_SERVER_UNREACHABLE`` if the address is none (all methods: if nothing answers there);
            ``DASHBOARD_SERVER_FORBIDDEN`` if it wants another account (all methods).
    """

    def __init__(self, url: str, space: str, headers: dict[str, str]) -> None:
        self._url, self._space = url, space
        path = "" if space == DEFAULT_SPACE else f"/s/{space}"
        try:
            self._client = httpx.Client(
                base_url=url.rstrip("/"), headers={**headers, "kbn-xsrf": "newnormal"}, timeout=60, trust_env=False
            )
        except httpx.InvalidURL as error:
            raise self._unreachable(str(error)) from None
        self._api = f"{path}/api/saved_objects"

    def check(self) -> str:
        """Its version, after a look whether the space is there.

        Raises:
            NewnormalError: ``DASHBOARD_SERVER_VERSION``; ``DASHBOARD_SPACE_UNKNOWN``.
        """
        try:
            version = str(self._ask("GET", "/api/status").json()["version"]["number"])
            major, minor = (int(part) for part in version.split(".")[:2])
        except (ValueError, KeyError, TypeError):
            raise self._refused("what answers is no Kibana") from None
        if not (8, 19) <= (major, minor) < (10, 0):
            raise NewnormalError("DASHBOARD_SERVER_VERSION", f"it is Kibana {version}", self._url, ACCEPTED, _NOW)
        if self._space != DEFAULT_SPACE and self._ask("GET", f"/api/spaces/space/{self._space}").status_code == 404:
            what, accepted = f"there is no space {self._space!r}", "the id of a space, which is in its address"
            raise NewnormalError("DASHBOARD_SPACE_UNKNOWN", what, "--space", accepted, _NOW)
        return version

    def held(self, objects: Sequence[SavedObject]) -> dict[str, SavedObject]:
        """Those of some saved objects that are there, as they are there, by id.

        Raises:
            NewnormalError: ``DASHBOARD_SERVER_REFUSED``.
        """
        left = [{"type": saved["type"], "id": saved["id"]} for saved in objects]
        while left:
            reply = self._ask("POST", f"{self._api}/_export", json={"objects": left, "excludeExportDetails": True})
            if reply.status_code == 200:
                exported = [json.loads(line) for line in reply.text.splitlines() if line]
                return {saved["id"]: saved for saved in exported}
            absent = {error["id"] for error in self._absent(reply)}
            if not absent & {saved["id"] for saved in left}:
                raise self._refused(_reason(reply))
            left = [saved for saved in left if saved["id"] not in absent]
        return {}

    def put(self, objects: Sequence[SavedObject]) -> None:
        """Imports saved objects in one request, in place of those with their ids.

        Raises:
            NewnormalError: ``DASHBOARD_SERVER_REFUSED`` with Kibana's reasons.
        """
        text = "".join(json.dumps(saved) + "\n" for saved in objects)
        file = {"file": ("newnormal.ndjson", text.encode(), "application/ndjson")}
        reply = self._ask("POST", f"{self._api}/_import", params={"overwrite": "true"}, files=file)
        body = _body(reply)
        if reply.status_code != 200 or not body.get("success"):
            errors = [f"{error.get('title')}: {error.get('error')}" for error in body.get("errors", ())]
            raise self._refused("; ".join(errors) or _reason(reply))

    def close(self) -> None:
        """Ends the connection."""
        self._client.close()

    def _ask(self, method: str, path: str, **content: Any) -> httpx.Response:
        try:
            reply = self._client.request(method, path, **content)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise self._unreachable(str(error)) from None
        if reply.status_code in (401, 403):
            accepted = (
                "KIBANA_CREDENTIALS or --credentials: an account that may read and write saved objects of the space"
            )
            what = f"{reply.status_code} for {method} {path}: {_reason(reply)}"
            raise NewnormalError("DASHBOARD_SERVER_FORBIDDEN", what, self._url, accepted, _NOW)
        return reply

    def _unreachable(self, why: str) -> NewnormalError:
        return NewnormalError("DASHBOARD_SERVER_UNREACHABLE", why, self._url, "http://host:port of a Kibana", _NOW)

    def _refused(self, why: str) -> NewnormalError:
        return NewnormalError("DASHBOARD_SERVER_REFUSED", why, self._url, ACCEPTED, "see what it says")

    @staticmethod
    def _absent(reply: httpx.Response) -> list[dict[str, Any]]:
        objects = _body(reply).get("attributes", {}).get("objects", [])
        return [each for each in objects if each.get("error", {}).get("statusCode") == 404]


def _body(reply: httpx.Response) -> dict[str, Any]:
    try:
        body = reply.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _reason(reply: httpx.Response) -> str:
    return str(_body(reply).get("message") or reply.text[:200] or reply.status_code)
