"""Asks the running state view about one series, for the console's page of that series."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings


def state_view(settings: Settings) -> Callable[[str, str], dict[str, Any]]:
    """What asks the view that the settings name; see `dashboards.console.belief.AskView`.

    Args:
        settings: The settings of the pipeline.
    """
    from pipelines.query.view.client import ViewClient  # noqa: PLC0415  HTTP: only where a console asks

    def ask(entity: str, metric: str) -> dict[str, Any]:
        client = ViewClient.of(settings.view, None)  # a token that cannot be read is no reason to end the pipeline
        answers = [_known(client, path, entity, metric) for path in ("/windows", "/state")]
        windows, state = answers
        age = next((answer["age"] for answer in answers if answer), None)
        return {"windows": windows.get("windows", []), "state": state.get("state"), "age": age}

    return ask


def _known(client: Any, path: str, entity: str, metric: str) -> dict[str, Any]:
    """The view's answer; empty if it does not know the series."""
    more = {"n": 1_000} if path == "/windows" else {}
    try:
        return dict(client.one(path, entity=entity, metric=metric, **more))
    except NewnormalError as error:
        if error.code != "VIEW_SERIES_UNKNOWN":
            raise
        return {}
