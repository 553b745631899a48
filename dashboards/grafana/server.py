"""Grafana by grafana-client: its version, folders, data sources and dashboards, and in words what does not work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grafana_client import GrafanaApi, HeaderAuth
from grafana_client.client import GrafanaException
from requests import JSONDecodeError, RequestException, TooManyRedirects

from engine.spec.errors import NewnormalError

Model = dict[str, Any]

ACCEPTED = "Grafana 10.4 or newer"
_NOW = "nothing was changed, or the rest of what was to be installed is missing: say the command again"
_NO_GRAFANA = "what answers is no Grafana, or does not tell its version"


class Grafana:
    """A Grafana.

    Args:
        url: Its address, with its path if it has one.
        headers: The header ``Authorization``; empty if nothing says who asks.

    Raises:
        NewnormalError: ``DASHBOARD_SERVER_UNREACHABLE``, ``DASHBOARD_SERVER_FORBIDDEN`` or ``DASHBOARD_SERVER_REFUSED``
            (all methods).
    """

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._url = url
        login = HeaderAuth("Authorization", headers["Authorization"]) if headers else None
        self._api = GrafanaApi(login, timeout=60)
        # not `from_url`: it loses the brackets of IPv6, and lets the address switch off the check of certificates
        self._api.client.url = f"{url.rstrip('/')}/api"
        self._api.client.s.trust_env = False  # neither proxies nor logins of the environment
        self._api.client.s.max_redirects = 0  # a redirected POST would become a GET, which writes nothing

    def check(self) -> str:
        """Its version.

        Raises:
            NewnormalError: ``DASHBOARD_SERVER_VERSION``.
        """
        version = str(self._ask(self._api.health.check).get("version", ""))
        try:
            major, minor = (int(part) for part in version.split(".")[:2])
        except ValueError:
            raise self._refused(_NO_GRAFANA) from None
        if (major, minor) < (10, 4):
            raise NewnormalError("DASHBOARD_SERVER_VERSION", f"it is Grafana {version}", self._url, ACCEPTED, _NOW)
        return version

    def folder(self, uid: str) -> bool:
        """Whether there is a folder."""
        return self._find(self._api.folder.get_folder, uid) is not None

    def make_folder(self, uid: str, title: str) -> None:
        """Creates a folder."""
        self._ask(self._api.folder.create_folder, title, uid)

    def data_source(self, uid: str) -> Model | None:
        """A data source."""
        return self._find(self._api.datasource.get_datasource_by_uid, uid)

    def make_data_source(self, model: Model) -> None:
        """Creates a data source."""
        self._ask(self._api.datasource.create_datasource, model)

    def dashboard(self, uid: str) -> tuple[Model, str] | None:
        """A dashboard and the uid of its folder."""
        answer = self._find(self._api.dashboard.get_dashboard, uid)
        return (answer["dashboard"], answer["meta"].get("folderUid", "")) if answer else None

    def put_dashboard(self, model: Model, folder: str, message: str) -> None:
        """Creates a dashboard, or makes a new version of it.

        Args:
            model: Its JSON model.
            folder: Uid of its folder.
            message: What the list of versions says.
        """
        body = {"dashboard": {**model, "id": None}, "folderUid": folder, "message": message, "overwrite": True}
        self._ask(self._api.dashboard.update_dashboard, body)

    def close(self) -> None:
        """Ends the connection."""
        self._api.client.s.close()

    def _find(self, request: Callable[[str], Any], uid: str) -> Model | None:
        """The object with a uid; ``None`` if there is no such thing."""
        try:
            return self._answer(request, uid)
        except GrafanaException as error:
            if error.status_code == 404:
                return None
            raise self._explained(error) from None

    def _ask(self, request: Callable[..., Any], *content: Any) -> Model:
        try:
            return self._answer(request, *content)
        except GrafanaException as error:
            raise self._explained(error) from None

    def _answer(self, request: Callable[..., Any], *content: Any) -> Model:
        try:
            answer = request(*content)
        except TooManyRedirects:
            raise self._refused("it redirects to another address: use that one") from None
        except JSONDecodeError:
            raise self._refused(_NO_GRAFANA) from None
        except (RequestException, ValueError) as error:
            what = str(error)
            raise NewnormalError(
                "DASHBOARD_SERVER_UNREACHABLE", what, self._url, "http://host:port of a Grafana", _NOW
            ) from None
        if not isinstance(answer, dict):
            raise self._refused(_NO_GRAFANA)
        return answer

    def _explained(self, error: GrafanaException) -> NewnormalError:
        reply = error.response
        why = f"{error.status_code}: {reply.get('message', '') if isinstance(reply, dict) else ''}".rstrip(": ")
        if error.status_code not in (401, 403):
            return self._refused(why)
        accepted = "GRAFANA_CREDENTIALS or --credentials: an account that may write folders, data sources, dashboards"
        return NewnormalError("DASHBOARD_SERVER_FORBIDDEN", why, self._url, accepted, _NOW)

    def _refused(self, why: str) -> NewnormalError:
        return NewnormalError("DASHBOARD_SERVER_REFUSED", why, self._url, ACCEPTED, "see what it says")
