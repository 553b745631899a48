"""A view inside of a process that serves the console: it follows the topics itself, in a thread.

So a console shows what is believed of each series without a second command. It knows all partitions; where the topics
are large, a `newnormal view` of several processes does that, and `view.embedded` is false.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Self

import structlog
from confluent_kafka import KafkaException

from engine.locks import try_lock
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.query.view.answers import NEEDED, Answers
from pipelines.query.view.follower import Follower

log = structlog.get_logger()


@contextmanager
def own_folder(views: Path, name: str) -> Iterator[Path]:
    """A context manager: the first of the folders ``name``, ``name-2``, ``name-3``, … that nobody else holds.

    Whoever starts again alone finds the folder from before. A folder is free again however its holder dies.

    Args:
        views: The folder of all views of a version.
        name: Name of the view.
    """
    for number in count(1):
        folder = views / (name if number == 1 else f"{name}-{number}")
        if (held := try_lock(folder / "lock")) is None:
            continue
        with held:
            if number > 1:
                log.info(
                    "another process follows the topics under the same name; this one keeps its own", folder=str(folder)
                )
            yield folder
        return


_AGAIN = 2.0
"""Seconds until topics that are not there yet, or a Kafka that does not answer, are tried again."""

_LOOK = 30.0
"""Seconds between two looks for a promotion."""

_WINDOWS = 1_000


class Followed:
    """A context manager that follows the topics of one version and answers the console; see `Beliefs` there.

    Args:
        settings: Gives the settings of the version to follow, with the address of Kafka filled in; asked again now and
            then, so that a promotion is seen. It may raise `NewnormalError` as long as there are no servers.
        name: Name of the folder of its database among those of the views; see `own_folder`.
    """

    def __init__(self, settings: Callable[[], Settings], name: str) -> None:
        self._settings, self._name = settings, name
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._answers: Answers | None = None
        self._why = self._not_yet()
        self._thread = threading.Thread(target=self._run, daemon=True, name="state view")

    def __enter__(self) -> Self:
        """Begins to read."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends reading; returns when the database is closed."""
        self._ended.set()
        self._thread.join(10)

    def series(self, entity: str, metric: str) -> dict[str, Any]:
        """State, last windows and age of one series.

        Raises:
            NewnormalError: If the topics cannot be read; the reason (so do all answers).
        """
        with self._lock:
            view = self._view()
            windows, state = view.windows(entity, metric, _WINDOWS), view.state(entity, metric)
            age = view.age(entity) if windows or state else None
            return {"state": state, "windows": windows, "age": age, "needed": NEEDED}

    def machine(self, entity: str, most: int) -> list[dict[str, Any]]:
        """The series of a machine."""
        with self._lock:
            return self._view().machine(entity, most)

    def machines(self, most: int) -> list[str]:
        """Names of machines."""
        with self._lock:
            return self._view().machines(most)

    def full(self, most: int) -> list[dict[str, Any]]:
        """The states of the series that will be full, the next first."""
        with self._lock:
            return self._view().full(most)

    def site(self) -> dict[str, Any]:
        """How many machines report, and which are learned."""
        with self._lock:
            return self._view().site()

    def _view(self) -> Answers:
        if self._answers is None:
            raise self._why
        return self._answers

    @staticmethod
    def _not_yet() -> NewnormalError:
        return NewnormalError("VIEW_UNREACHABLE", "the console has not read the topics yet", "state view")

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                settings = self._settings()
                with own_folder(settings.folder("view"), self._name) as folder:
                    self._serve(Follower(settings, folder=folder), settings)
            except NewnormalError as error:
                self._why = error
            except KafkaException as error:
                self._why = NewnormalError("KAFKA_UNREACHABLE", str(error), "kafka.bootstrap")
            except Exception as error:  # a full disk, say: the jobs of this process go on, and so does its console
                if str(error) != self._why.what:  # once, not every two seconds
                    log.warning(
                        "the console cannot follow what the detector believes; it tries again", reason=str(error)
                    )
                self._why = NewnormalError("VIEW_UNUSABLE", str(error), "view.embedded")
            else:
                continue
            self._ended.wait(_AGAIN)

    def _serve(self, follower: Follower, settings: Settings) -> None:
        self._answers = Answers(follower.database, settings, follower.partitions, follower.part)
        self._why = self._not_yet()
        try:
            self._follow(follower, settings)
        finally:
            with self._lock:
                self._answers = None
                follower.close()

    def _follow(self, follower: Follower, settings: Settings) -> None:
        """Reads until the end, or until another version is to be followed, or one with other windows."""
        looked = time.monotonic()
        while not self._ended.is_set():
            follower.go_on(self._ended, "the console")
            if time.monotonic() > looked + _LOOK:
                looked = time.monotonic()
                with suppress(NewnormalError):
                    shown = self._settings()
                    if (shown.version, shown.window) != (settings.version, settings.window):
                        return
