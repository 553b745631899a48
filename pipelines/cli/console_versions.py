"""Lists and compares the versions of a pipeline for the console, in a process of its own.

A comparison reads all verdicts of two versions. In the process of the pipeline it would take time from the jobs and
keep memory; a process beside it, which has the lowest priority and ends afterwards, does neither.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from engine.clock import now_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings, load

_LOWEST = 19


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
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe(duplex=False)
        arguments = (there, (first, second), self._overrides | addresses)
        process = context.Process(target=_compare, args=arguments, daemon=True, name="comparison")
        process.start()
        there.close()
        try:
            answer = here.recv()
        except (EOFError, OSError):
            process.join()
            what = f"the process that compared {first} and {second} ended with {process.exitcode}"
            accepted = f"enough memory; `newnormal compare {first} {second} --from -2h` reads less"
            raise NewnormalError("COMPARISON_ENDED", what, "console", accepted, "nothing was compared") from None
        finally:
            here.close()
        process.join()
        if isinstance(answer, NewnormalError):
            raise answer
        return dict(answer)


def _compare(answers: Connection, names: tuple[str, str], overrides: dict[str, Any]) -> None:
    """What the process does: it sends the comparison, or the error."""
    os.nice(_LOWEST)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the console, and that ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from pipelines.evaluation.comparison.between import between  # only in this process
    from pipelines.evaluation.comparison.plain_data import plain_data

    try:
        comparison, unreadable = between(names, load(**overrides), overrides)
        answers.send(plain_data(comparison, unreadable, now_ms()))
    except NewnormalError as error:
        answers.send(error)


def _end_with_parent() -> None:
    """Ends this process when the one that started it has ended, however that came about."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
    os._exit(1)
