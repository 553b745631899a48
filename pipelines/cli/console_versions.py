"""Lists and compares the versions of a pipeline for the console."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.clock import now_ms
from engine.spec.errors import NewnormalError
from pipelines.cli.beside import beside
from pipelines.contracts.settings import Settings, load


class ConsoleVersions:
    """The versions of one pipeline; see `dashboards.console.versions.Versions`.

    Args:
        settings: Gives the settings, with the servers' addresses filled in; asked at each call.
        overrides: The values of the command line by dotted name, from which they were loaded.
    """

    def __init__(self, settings: Callable[[], Settings], overrides: dict[str, Any]) -> None:
        self._settings, self._overrides = settings, overrides

    def listed(self) -> list[dict[str, Any]]:
        """The versions, the oldest first.

        Raises:
            NewnormalError: As `pipelines.versions.registry.Registry.all`.
        """
        from pipelines.versions.overview import shown  # servers: only when it is asked
        from pipelines.versions.registry import Registry
        from pipelines.versions.used import differing

        settings = self._settings()
        known = Registry(settings).all()
        return [
            version.model_dump() | {"settings": differing(version, known), "shown": shown(version, settings)}
            for version in known.values()
        ]

    def compared(self, first: str, second: str) -> dict[str, Any]:
        """The comparison of two versions, as `pipelines.evaluation.comparison.plain_data.plain_data` returns it.

        Raises:
            NewnormalError: As `pipelines.evaluation.comparison.between.between`; ``COMPARISON_ENDED`` if the process
                that compares has died.
        """
        settings = self._settings()
        addresses = {"kafka.bootstrap": settings.kafka.bootstrap, "elasticsearch.url": settings.elasticsearch.url}
        ended = NewnormalError(
            "COMPARISON_ENDED", f"the process that compared {first} and {second} ended", "console",
            f"enough memory; `newnormal compare {first} {second} --from -2h` reads less", "nothing was compared",
        )  # fmt: skip
        return dict(beside(_compare, (first, second), self._overrides | addresses, name="comparison", ended=ended))


def _compare(names: tuple[str, str], overrides: dict[str, Any]) -> dict[str, Any]:
    from pipelines.evaluation.comparison.between import between  # only in the process beside
    from pipelines.evaluation.comparison.plain_data import plain_data

    comparison, unreadable = between(names, load(**overrides), overrides)
    return plain_data(comparison, unreadable, now_ms())
