"""What the console asks about beliefs: a view in its own process, or the state view that runs beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import FIRST

if TYPE_CHECKING:
    from dashboards.console import Beliefs
    from pipelines.versions.version import Version


class AskedView:
    """Asks the state view over HTTP; see `dashboards.console.belief.Beliefs`.

    Args:
        settings: The settings of the pipeline, which name the view.
    """

    def __init__(self, settings: Settings) -> None:
        from pipelines.query.view.client import ViewClient  # HTTP: only where a console asks

        self._client: Callable[[], ViewClient] = lambda: ViewClient.of(settings.view, None)
        # made for each question: a token that cannot be read is no reason to end the pipeline

    def series(self, entity: str, metric: str) -> dict[str, Any]:
        """State, last windows and age of one series."""
        windows, state = (self._known(path, entity, metric) for path in ("/windows", "/state"))
        age = next((answer["age"] for answer in (windows, state) if answer), None)
        told = {"windows": windows.get("windows", []), "needed": windows.get("needed", 0)}
        return told | {"state": state.get("state"), "age": age}

    def machine(self, entity: str, most: int) -> list[dict[str, Any]]:
        """The series of a machine."""
        return list(self._client().one("/machine", entity=entity, limit=most)["series"])

    def machines(self, most: int) -> list[str]:
        """Names of machines."""
        return list(self._client().one("/machines", limit=most)["machines"])

    def full(self, most: int) -> list[dict[str, Any]]:
        """The states of the series that will be full, the next first."""
        found = self._client().every("/full", k=most)["states"]
        return sorted(found, key=lambda each: each["full_median"])[:most]

    def site(self) -> dict[str, Any]:
        """How many machines report, and which are learned."""
        return self._client().one("/site")

    def __enter__(self) -> Self:
        """Nothing is held."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def _known(self, path: str, entity: str, metric: str) -> dict[str, Any]:
        """The view's answer; empty if it does not know the series."""
        more = {"n": 1_000} if path == "/windows" else {}
        try:
            return self._client().one(path, entity=entity, metric=metric, **more)
        except NewnormalError as error:
            if error.code != "VIEW_SERIES_UNKNOWN":
                raise
            return {}


def state_view(settings: Settings, here: bool) -> Beliefs:
    """What the console of a running pipeline asks.

    Args:
        settings: The settings of the pipeline's version, with the servers' addresses filled in.
        here: True if the detector runs in this process; of several processes with a console each only that one follows.
    """
    return beliefs(settings, lambda: settings, "run", runs=True) if here else AskedView(settings)


def beliefs(settings: Settings, running: Callable[[], Settings], name: str, *, runs: bool = False) -> Beliefs:
    """What a console asks: itself, or with `view.embedded` off the state view.

    Args:
        settings: The settings.
        running: Gives them with the servers' addresses filled in; may raise `NewnormalError`.
        name: Name of the folder of a view of its own; a second process with this name has another, see `own_folder`.
        runs: True if this process runs the version of the settings, so that these are what it computes with.
    """
    if not settings.view.embedded:
        return AskedView(settings)
    from pipelines.query.view.followed import Followed  # Kafka: only where a console follows

    return Followed(lambda: _shown(running(), runs), name)


def _shown(settings: Settings, runs: bool) -> Settings:
    """The settings of the version whose documents the console shows."""
    from pipelines.versions.promotion import shown_version  # servers: only when it is asked
    from pipelines.versions.registry import Registry

    if settings.version != FIRST or not settings.elasticsearch.url:
        return settings
    name = shown_version(settings) or FIRST
    known = None if name == FIRST and runs else Registry(settings).all().get(name)
    return as_it_ran(settings, known) if known else settings


def as_it_ran(settings: Settings, version: Version) -> Settings:
    """The settings of a version, with the windows with which it has computed: others would have other places.

    Args:
        settings: The settings of the first version, as this process knows them.
        version: The version.
    """
    kept = version.ran | version.settings
    window = {name: kept[f"window.{name}"] for name in type(settings.window).model_fields if f"window.{name}" in kept}
    mine = settings.of(version.names, version.end)
    return mine.model_copy(update={"window": mine.window.model_validate(mine.window.model_dump() | window)})
