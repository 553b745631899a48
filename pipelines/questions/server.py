"""The questions as tools of an MCP server: read-only, bounded in size and time, errors as sentences with codes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from importlib import metadata
from typing import Annotated, Any

import anyio
import orjson
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from engine.spec.errors import NewnormalError
from pipelines.questions.answers import Answers

MOST_BYTES = 100_000
"""The largest answer."""

SECONDS = 60.0
"""The longest time for an answer."""

AT_ONCE = 4
"""The most questions that are worked on at once, with those that were given up; others wait."""

_LONGEST_ERROR = 2_000
"""The most characters of an error, which may repeat what was asked."""

_ABOUT = (
    "Newnormal watches machines, and says what is novel. Ask it which incidents there are, why something was said or "
    "was not said, and what is believed of a series. Times are ISO 8601 in UTC, or from now such as -2h. Each answer "
    "has the command that gives the same. Nothing is changed by a question."
)
Machine = Annotated[str, Field(description="the machine, exactly as it is called")]
Metric = Annotated[str, Field(description="the metric with its labels, e.g. cpu.util, net.bytes_sent{interface=eth0}")]
Time = Annotated[str, Field(description="when it was: ISO 8601, or a time from now such as -2h")]
Within = Annotated[str, Field(description="for how long from then on, e.g. 5m; at most 1d")]
Id = Annotated[str, Field(description="id of the incident, or the beginning of it")]
Few = Annotated[int, Field(ge=1, le=200, description="how many at most")]


def mcp_server(answers: Answers, seconds: float = SECONDS, most_bytes: int = MOST_BYTES) -> MCPServer:
    """A server with a tool for each question.

    Args:
        answers: Answers them.
        seconds: The longest time for an answer.
        most_bytes: The largest answer.
    """
    server = MCPServer(
        "newnormal",
        instructions=_ABOUT,
        version=metadata.version("newnormal"),
        log_level="WARNING",
        subscriptions=False,
    )
    read_only = ToolAnnotations(read_only_hint=True, open_world_hint=False)

    def tool(asked: Callable[..., Awaitable[str]]) -> None:
        server.add_tool(_guarded(asked, seconds, most_bytes), annotations=read_only, structured_output=False)

    threads = ThreadPoolExecutor(AT_ONCE, "question")  # what is given up has its thread until it has ended

    async def of(question: Callable[..., dict[str, Any]], *arguments: Any) -> str:
        answer = await asyncio.wrap_future(threads.submit(question, *arguments))
        return orjson.dumps(answer).decode()

    @tool
    async def incidents(
        everything: Annotated[bool, Field(description="also those that are over")] = False,
        machine: Annotated[str, Field(description="only those with this machine; empty: all")] = "",
        limit: Few = 20,
    ) -> str:
        """Which incidents are there? The last opened first."""
        return await of(answers.incidents, everything, machine, limit)

    @tool
    async def why(incident: Id) -> str:
        """Why was this told? What happened, where it may have begun, its machines, series and changes in logs."""
        return await of(answers.why, incident)

    @tool
    async def why_not(machine: Machine, metric: Metric, time: Time, within: Within = "5m") -> str:
        """Why was nobody alerted? The step between machine and person at which it ended, with the numbers."""
        return await of(answers.why_not, machine, metric, time, within)

    @tool
    async def series(
        machine: Annotated[str, Field(description="beginning of the machines' names; empty: all")] = "", limit: Few = 50
    ) -> str:
        """Which series are there, and what is believed of each now?"""
        return await of(answers.series, machine, limit)

    @tool
    async def state(machine: Machine, metric: Metric) -> str:
        """What is believed of one series now: what is typical, its band, whether something is open?"""
        return await of(answers.state, machine, metric)

    @tool
    async def windows(machine: Machine, metric: Metric, last: Few = 30) -> str:
        """What were the last values of one series, and what was said of them?"""
        return await of(answers.windows, machine, metric, last)

    @tool
    async def verdicts(machine: Machine, metric: Metric, time: Time, within: Within = "5m") -> str:
        """What was said of one series at a time, and why?"""
        return await of(answers.verdicts, machine, metric, time, within)

    @tool
    async def top(count: Few = 10) -> str:
        """What is the most abnormal now, and how many series are there by kind?"""
        return await of(answers.top, count)

    @tool
    async def full(count: Few = 10) -> str:
        """What will be full next (disks, memory, quotas, certificates), and when, with 95 % between two times?"""
        return await of(answers.full, count)

    @tool
    async def compare(
        first: Annotated[str, Field(description="a version, e.g. v1")],
        second: Annotated[str, Field(description="another version, e.g. v2")],
    ) -> str:
        """How do two versions differ: incidents, messages, alarms, precision and recall?"""
        return await of(answers.compare, first, second)

    @tool
    async def similar(incident: Id) -> str:
        """Which earlier incidents were like this one, and what did operators note of them?"""
        return await of(answers.similar, incident)

    return server


def _guarded(asked: Callable[..., Awaitable[str]], seconds: float, most_bytes: int) -> Callable[..., Awaitable[str]]:
    """A tool that answers in time and in bounds, or with a sentence that has a code."""

    @wraps(asked)
    async def answered(**arguments: Any) -> str:
        try:
            with anyio.fail_after(seconds):
                text = await asked(**arguments)
            if (size := len(text.encode())) > most_bytes:
                what = f"the answer has {size:,} bytes, more than {most_bytes:,}"
                raise NewnormalError("ANSWER_TOO_LARGE", what, asked.__name__, "a smaller limit, or one machine")
        except TimeoutError:
            accepted = "a shorter time, or the command itself"
            late = NewnormalError("ANSWER_TOO_SLOW", f"no answer within {seconds:g} s", asked.__name__, accepted)
            raise ToolError(late.in_one_line) from None
        except NewnormalError as error:
            raise ToolError(error.in_one_line[:_LONGEST_ERROR]) from None
        return text

    return answered
