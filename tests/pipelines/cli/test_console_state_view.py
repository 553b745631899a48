"""The console of a running pipeline asks a real state view about one series."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.embedded.endpoints import Endpoints
from engine.spec.errors import NewnormalError
from pipelines.cli.state_view import AskedView
from pipelines.contracts.settings import load
from pipelines.query.view.app import create_app
from pipelines.serving.server import serve
from tests.pipelines.query.view_topics import Own, produce, state, with_topics


@pytest.mark.servers
def test_it_gives_what_the_view_says_of_a_series_and_nothing_of_one_that_it_does_not_know(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    settings = with_topics(endpoints, tmp_path)
    produce(settings, [state("a/b%", "c?d#", 3)])
    own = Own(settings)
    own.read_all()
    server = serve(create_app(own), port=0)
    try:
        ask = AskedView(load(**{"view.port": int(server.url.rsplit(":", 1)[1])})).series
        found = ask("a/b%", "c?d#")
        assert (found["state"], found["windows"]) == (state("a/b%", "c?d#", 3), [])
        assert found["age"]["messages_behind"] == 0
        assert ask("nobody", "cpu") == {"state": None, "windows": [], "age": None, "needed": 0}
    finally:
        server.stop()
        own.follower.close()


def test_a_view_that_does_not_run_is_said_to_be_so() -> None:
    ask = AskedView(load(**{"view.port": 9})).series
    with pytest.raises(NewnormalError) as error:
        ask("web-1", "cpu")
    assert error.value.code == "VIEW_UNREACHABLE"
