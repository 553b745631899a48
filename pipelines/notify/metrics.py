"""The figures of all channels as Prometheus metrics, over HTTP."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from engine.spec.errors import NewnormalError
from pipelines.notify.figures import ChannelFigures

_TRIES = 20
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
        found, now = self._figures(), time.time()
        for name, text in _COUNTERS.items():
            counter = CounterMetricFamily(f"newnormal_notify_{name}", text, labels=["channel"])
            for each in found:
                counter.add_metric([each.name], getattr(each, name))
            yield counter
        for name, text in _GAUGES.items():
            gauge = GaugeMetricFamily(f"newnormal_notify_{name}", text, labels=["channel"])
            for each in found:
                gauge.add_metric([each.name], getattr(each, name))
            yield gauge
        for field, (name, text) in _AGES.items():
            age = GaugeMetricFamily(f"newnormal_notify_{name}", text, labels=["channel"])
            for each in found:
                since = getattr(each, field)
                age.add_metric([each.name], 0.0 if since is None else max(0.0, now - since / 1000))
            yield age


class MetricsServer:
    """Answers ``/metrics`` in a thread of its own.

    Args:
        figures: Returns the figures of all channels, asked at each scrape.
        host: The address to listen on.
        port: The port, or the next free one if it is taken; 0: any.

    Attributes:
        url: Where the metrics are.

    Raises:
        NewnormalError: ``PORT_TAKEN`` if none of the next ports is free or the address is not ours.
    """

    def __init__(self, figures: Callable[[], Sequence[ChannelFigures]], host: str, port: int) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Figures(figures))
        for candidate in range(port, min(port + _TRIES, 65_536)) if port else [0]:
            try:
                self._server, self._thread = start_http_server(candidate, host, registry)
                break
            except OSError as error:
                last = error
                if error.errno != errno.EADDRINUSE:
                    break
        if not hasattr(self, "_server"):
            what, where = f"cannot listen at {host}:{port}: {last}", "notify.host, notify.port"
            raise NewnormalError("PORT_TAKEN", what, where, "a free port of this machine", "nothing was started")
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_port}/metrics"

    def close(self) -> None:
        """Ends answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
