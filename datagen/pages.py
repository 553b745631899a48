"""Reads pages of metrics in Prometheus' text format, such as the one on which this pipeline says how it is itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

import httpx
from prometheus_client.parser import text_string_to_metric_families

from engine.spec.errors import NewnormalError
from pipelines.contracts.records.telemetry import MetricKind
from pipelines.contracts.web_answers import AS_IT_IS, whole

Samples = list[tuple[str, float, MetricKind]]
"""Names, values and kinds of metrics."""

_SECONDS = 2.0
_MOST_BYTES = 16_000_000
_SUMMED, _SUMS = ("histogram", "summary"), ("_count", "_sum", "_bucket")


class Pages:
    """Pages that are read at each sample of the agent.

    Args:
        urls: Their addresses.
        tell: Is told, in a sentence, when a page can no longer be read, and when it can be again.

    Raises:
        NewnormalError: ``SETTING_INVALID`` if something is no address.
    """

    def __init__(self, urls: Sequence[str], tell: Callable[[str], None]) -> None:
        for url in urls:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                accepted = "an address such as http://127.0.0.1:8880/metrics"
                raise NewnormalError("SETTING_INVALID", url, "agent --scrape", accepted, "nothing was started")
        self._urls, self._tell, self._failing = urls, tell, set[str]()
        self._client = httpx.Client(timeout=_SECONDS, trust_env=False, headers=AS_IT_IS)

    def samples(self) -> Samples:
        """The samples of all pages that can be read now."""
        read: Samples = []
        for url in self._urls:
            try:
                read += samples_of(self._text(url), str(urlsplit(url).port or ""))
            except (httpx.HTTPError, ValueError) as error:
                if url not in self._failing:
                    self._failing.add(url)
                    self._tell(f"{url} cannot be read, its metrics are left out: {error}")
            else:
                if url in self._failing:
                    self._failing.remove(url)
                    self._tell(f"{url} is read again")
        return read

    def _text(self, url: str) -> str:
        with self._client.stream("GET", url) as answer:
            answer.raise_for_status()
            return whole(answer, _MOST_BYTES, _SECONDS).decode()


def samples_of(text: str, port: str = "") -> Samples:
    r"""The samples of a page.

    Args:
        text: Its text.
        port: The port of its server, which tells several programs of a machine apart.

    Raises:
        ValueError: If the text is no such page.

    >>> samples_of('# TYPE read_total counter\nread_total{job="sink"} 3\nlag 0.5\n', "8880")
    [('read_total{job=sink,port=8880}', 3.0, 'counter'), ('lag{port=8880}', 0.5, 'gauge')]
    """
    return list(_samples(text, {"port": port} if port else {}))


def _samples(text: str, own: dict[str, str]) -> Iterator[tuple[str, float, MetricKind]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.endswith("_created"):
                continue
            summed = family.type in _SUMMED and sample.name.endswith(_SUMS)
            kind: MetricKind = "counter" if summed or family.type == "counter" else "gauge"
            labels = ",".join(f"{name}={value}" for name, value in sorted((sample.labels | own).items()))
            yield f"{sample.name}{{{labels}}}" if labels else sample.name, float(sample.value), kind
