"""Questions over MCP: all are read-only; answers are bounded in size and time; an error is a sentence with its code."""

from __future__ import annotations

import asyncio
import shlex
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client
from typer.main import get_command

from engine.spec.errors import REGISTRY, NewnormalError
from pipelines.cli.main import app
from pipelines.questions.answers import Answers, command
from pipelines.questions.server import AT_ONCE, mcp_server
from pipelines.why_not.steps import STEPS


class Slow(Answers):
    """Answers of a made-up size, after a made-up wait, or with an error."""

    def __init__(self, held: threading.Event) -> None:
        self._held, self.begun = held, 0

    def incidents(self, everything: bool = False, machine: str = "", limit: int = 20) -> dict[str, Any]:
        return {"incidents": ["x" * 100] * limit, "command": "newnormal incidents list"}

    def top(self, count: int = 10) -> dict[str, Any]:
        self.begun += 1
        self._held.wait(30)
        return {}

    def series(self, machine: str = "", limit: int = 50) -> dict[str, Any]:
        return {"series": ["é" * 100] * limit}

    def state(self, machine: str, metric: str) -> dict[str, Any]:
        raise NewnormalError("VIEW_SERIES_UNKNOWN", f"nothing is known of {machine}", "view", "a series that is judged")

    def compare(self, first: str, second: str) -> dict[str, Any]:
        raise ZeroDivisionError("a secret in a trace")


@pytest.fixture
def held() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def asked(held: threading.Event, name: str, **arguments: Any) -> tuple[bool, str]:
    """Whether the answer of a tool is an error, and its text."""

    async def ask() -> tuple[bool, str]:
        async with Client(mcp_server(Slow(held), seconds=1.0, most_bytes=5_000)) as client:
            result = await client.call_tool(name, arguments)
            return bool(result.is_error), result.content[0].text  # type: ignore[union-attr]

    return asyncio.run(ask())


def test_every_tool_says_what_it_answers_and_that_it_changes_nothing(held: threading.Event) -> None:
    async def tools() -> list[Any]:
        async with Client(mcp_server(Slow(held))) as client:
            return list((await client.list_tools()).tools)

    known = asyncio.run(tools())
    own = {name for name in vars(Answers) if not name.startswith("_")}
    assert {each.name for each in known} == own, "each answer is a tool, and no more"
    for each in known:
        assert each.annotations.read_only_hint
        assert each.description.endswith((".", "?"))


def test_an_answer_that_is_too_large_says_so_and_a_smaller_one_is_given(held: threading.Event) -> None:
    failed, text = asked(held, "incidents", limit=200)
    assert (failed, "ANSWER_TOO_LARGE: " in text) == (True, True)
    assert asked(held, "incidents", limit=5)[0] is False


def test_the_size_of_an_answer_is_that_of_its_bytes(held: threading.Event) -> None:
    failed, text = asked(held, "series", limit=30)  # 3,000 characters of two bytes each
    assert (failed, "ANSWER_TOO_LARGE: " in text) == (True, True)


def test_questions_that_are_asked_again_and_again_do_not_pile_up(held: threading.Event) -> None:
    answers = Slow(held)

    async def ask() -> list[bool]:
        async with Client(mcp_server(answers, seconds=0.5)) as client:
            results = [await asyncio.gather(*(client.call_tool("top", {}) for _ in range(6))) for _ in range(2)]
            held.set()
            return [bool(each.is_error) for some in results for each in some]

    assert asyncio.run(ask()) == [True] * 12
    assert answers.begun == AT_ONCE


def test_an_answer_that_takes_too_long_is_given_up_with_a_code(held: threading.Event) -> None:
    failed, text = asked(held, "top")
    assert (failed, "ANSWER_TOO_SLOW: no answer within 1 s" in text) == (True, True)


def test_an_error_is_a_sentence_with_its_code_and_one_that_nobody_foresaw_tells_nothing(held: threading.Event) -> None:
    failed, text = asked(held, "state", machine="nobody", metric="cpu")
    assert (failed, "VIEW_SERIES_UNKNOWN: nothing is known of nobody; accepted: a series" in text) == (True, True)
    failed, text = asked(held, "compare", first="v1", second="v2")
    assert (failed, "secret" in text) == (True, False)
    assert {"ANSWER_TOO_LARGE", "ANSWER_TOO_SLOW"} <= REGISTRY.keys()


@pytest.mark.parametrize(
    ("name", "wrong"), [("incidents", {"limit": 0}), ("incidents", {"limit": 10_000}), ("why", {})]
)
def test_a_wrong_question_is_refused(held: threading.Event, name: str, wrong: dict[str, Any]) -> None:
    assert asked(held, name, **wrong)[0]


def test_an_error_that_repeats_a_huge_question_is_short(held: threading.Event) -> None:
    failed, text = asked(held, "state", machine="x" * 90_000, metric="cpu")
    assert failed and len(text) < 5_000 and "VIEW_SERIES_UNKNOWN" in text


HOSTILE = ["web-1", "--view=http://evil.example", "-h", "$(reboot)", "a b", "x' OR '1'='1", "disk{path=/,a=b}", "ü`id`"]


@pytest.mark.parametrize("machine", HOSTILE)
@pytest.mark.parametrize("metric", HOSTILE)
def test_the_command_beside_an_answer_asks_just_what_was_asked_whatever_the_names_are(
    machine: str, metric: str
) -> None:
    """What a shell makes of the command is read by the program of the commands itself."""
    views = ["--view=http://view.example"]
    commands = [(command(("query", "windows", "-n", "5", *views), (machine, metric)), {"entity": machine, "n": 5})]
    commands += [(command(("why-not", "--as=v2"), (machine, metric, "-1h")), {"machine": machine, "version": "v2"})]
    arrived = STEPS[0].commands(machine, metric).strip("`").replace("`", "")
    if "`" not in machine + metric:
        commands += [(arrived, {"entity": machine, "metric": metric, "n": 60})]
    for text, wanted in commands:
        program, *words = shlex.split(text)
        assert program == "newnormal"
        got = parsed(words)
        assert {name: got[name] for name in wanted} == wanted and got["metric"] == metric
        assert got.get("view") in (None, [], (), [url.split("=")[1] for url in views])


def parsed(words: list[str]) -> dict[str, Any]:
    """The values that the program of the commands reads from words, without running a command."""
    found: Any = get_command(app)
    while hasattr(found, "commands"):
        found, words = found.commands[words[0]], words[1:]
    with found.make_context("newnormal", list(words)) as context:
        return dict(context.params)
