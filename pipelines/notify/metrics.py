"""The figures of all channels as Prometheus metrics, over HTTP: for this machine, or for who knows the token."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pipelines.contracts.access_token import access_token
from pipelines.contracts.setting_types import is_loopback
from pipelines.contracts.settings import NotifySettings
from pipelines.notify.figures import ChannelFigures
from pipelines.serving.hosts import allowed
from pipelines.serving.server import WebServer, listening
from pipelines.serving.tokens import has_token

_COUNTERS = {
    "sent": "Messages that the channel took",
    "failed": "Attempts at which the channel did not take a message",
    "given_up": "Messages that the channel will never take, and that are not sent again",
}
_GAUGES = {
    "waiting": "Incidents that the channel has to be told of now, and was not yet",
    "suppressed": "Incidents that quiet hours or the rate hold back",
}
_AGES = {
    "oldest": ("oldest_waiting_seconds", "For how long the oldest of the waiting incidents has waited; 0: none waits"),
    "failing_since": ("failing_seconds", "For how long the channel has not taken messages; 0: it works"),
}


class _Figures(Collector):
    def __init__(self, figures: Callable[[], Sequence[ChannelFigures]]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        channels, now = self._figures(), time.time()
        for name, text in _COUNTERS.items():
            counter = CounterMetricFamily(f"newnormal_notify_{name}", text, labels=["channel"])
            for channel in channels:
                counter.add_metric([channel.name], getattr(channel, name))
            yield counter
        for name, text in _GAUGES.items():
            gauge = GaugeMetricFamily(f"newnormal_notify_{name}", text, labels=["channel"])
            for channel in channels:
                gauge.add_metric([channel.name], getattr(channel, name))
            yield gauge
        for field, (name, text) in _AGES.items():
            age = GaugeMetricFamily(f"newnormal_notify_{name}", text, labels=["channel"])
            for channel in channels:
                since = getattr(channel, field)
                age.add_metric([channel.name], 0.0 if since is None else max(0.0, now - since / 1000))
            yield age


class MetricsServer:
    """Answers ``/metrics`` in a thread of its own.

    Args:
        figures: Returns the figures of all channels, asked at each scrape.
        settings: Where it listens, at the port or the next free one, and who is answered.

    Attributes:
        url: Where the metrics are.

    Raises:
        NewnormalError: ``PORT_TAKEN`` if none of the next ports is free or the address is not ours; ``NOTIFY_TOKEN``.
    """

    def __init__(self, figures: Callable[[], Sequence[ChannelFigures]], settings: NotifySettings) -> None:
        app = _app(figures, settings, access_token(settings))
        self._server = WebServer(app, listening(settings.host, settings.port, "notify"))
        self.url = f"{self._server.url}/metrics"

    def close(self) -> None:
        """Ends answering."""
        self._server.stop()


def _app(figures: Callable[[], Sequence[ChannelFigures]], settings: NotifySettings, token: str) -> FastAPI:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(figures))
    closed = bool(token) or not is_loopback(settings.reached)
    app = FastAPI(title="Newnormal notifications", docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/metrics")
    def metrics(request: Request) -> Response:
        """Where there is a token, no web page knows it; else no name may lead a page here."""
        if closed and not (token and has_token(request.headers.get("authorization", ""), token)):
            told = "notify.token is wanted, as Authorization: Bearer TOKEN"
            return Response(told, 401, {"WWW-Authenticate": "Bearer"})
        if not closed and not allowed(request.headers.get("host", "")):
            return Response("the request names another host; accepted: localhost, or notify.token", 403)
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return app
